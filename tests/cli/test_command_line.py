"""What is typed, what is answered: names, mistakes, exit codes, speed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from letta_tui import __version__, cli
from letta_tui.commands import errors
from letta_tui.commands.parser import command_names
from letta_tui.commands.tree import build
from letta_tui.ledger.store import Ledger
from letta_tui.ledger.values import Place
from letta_tui.paths import resolve
from letta_tui.worker.config import Hands
from tests.cli.conftest import Run


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ledgr", "There is no command 'ledgr'. Did you mean `letta-tui ledger`?"),
        ("nonsense", "`letta-tui --help` shows what is possible."),
        ("--urll ws://x", "There is no option --urll. Did you mean --url?"),
        ("--token abc", "others can read a command line"),
        ("--token=abc", "others can read a command line"),
        ("--mode free", "invalid choice: 'free'"),
        ("--new --conversation c", "--new and --conversation contradict"),
        ("--new --default", "--new and --default contradict"),
        ("--default --conversation c", "--default and --conversation contradict"),
        ("--token-file x", "--token-file belongs to --url"),
        ("--new ledger", "--new means nothing to `letta-tui ledger`"),
        ("--agent", "expected one argument"),
        ("keeper", "required: action"),
        ("keeper pause", "invalid choice: 'pause'"),
        ("--profile ../x ledger", "no name for a profile"),
        ("--profile nowhere ledger", "There is no profile 'nowhere'"),
        ("send --timeout soon hi", "'soon' is no number of seconds"),
        ("send --timeout -3 hi", "no number of seconds above zero"),
    ],
)
def test_a_wrong_line_is_told_in_one_sentence(run: Run, line: str, words: str) -> None:
    done = run(*line.split())
    assert done.code == errors.USAGE
    assert words in done.one_sentence()
    assert "abc" not in done.err


def test_an_empty_value_is_no_value(run: Run) -> None:
    assert "--agent needs a value" in run("--agent", "").one_sentence()


def test_help_names_every_command(run: Run) -> None:
    done = run("--help")
    assert done.code == 0
    for name in command_names(build()):
        assert name in done.out


@pytest.mark.parametrize("name", command_names(build()))
def test_every_command_has_help(run: Run, name: str) -> None:
    done = run(name, "--help")
    assert done.code == 0
    assert f"letta-tui {name}" in done.out


SLOW_TO_LOAD = ("textual", "rich", "websockets", "asyncio", "sqlite3")


def loaded_by(code: str) -> tuple[str, list[str]]:
    """What the code prints, and which of the modules that take long to load it loaded."""
    code += f"; import sys; print('loaded', *[m for m in {SLOW_TO_LOAD} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    out, _, names = done.stdout.rpartition("loaded")
    return out, names.split()


def test_the_version_comes_at_once() -> None:
    out, loaded = loaded_by("from letta_tui.cli import main; main(['--version'])")
    assert out == f"letta-tui {__version__}\n"
    assert loaded == []


def test_looking_at_help_loads_neither_the_view_nor_the_network() -> None:
    _, loaded = loaded_by("from letta_tui.commands.parser import parse; parse(['ledger', '--json'])")
    assert loaded == []


def test_an_unforeseen_error_leaves_a_log_and_no_traceback(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from letta_tui.commands import profiles

    def broken(args: object) -> int:
        raise RuntimeError("the flux\ncapacitor")

    monkeypatch.setattr(profiles, "run", broken)
    done = run("profiles", "--json")
    assert done.code == errors.FAILED
    assert "RuntimeError: the flux" in done.one_sentence()
    log = folder / "profiles" / "default" / "state" / "letta-tui.log"
    assert str(log) in done.err
    assert "capacitor" in log.read_text()
    assert log.stat().st_mode & 0o077 == 0


def test_ctrl_c_is_no_error_message(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from letta_tui.commands import profiles

    def interrupted(args: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(profiles, "run", interrupted)
    done = run("profiles")
    assert (done.code, done.err) == (errors.INTERRUPTED, "")


def test_a_reader_that_leaves_is_no_error() -> None:
    line = f"{sys.executable} -m letta_tui --help | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert done.stderr == ""


def test_the_chat_needs_a_terminal(run: Run) -> None:
    done = run()
    assert done.code == errors.USAGE
    assert "needs a terminal" in done.one_sentence()


def test_profiles_are_listed(run: Run, folder: Path) -> None:
    folder.mkdir()
    (folder / "config.toml").write_text("[profiles.work]\nkind = 'direct'\nurl = 'ws://127.0.0.1:1'\n")
    done = run("profiles")
    assert "work" in done.out
    assert "ws://127.0.0.1:1" in done.out
    assert '"name": "work"' in run("profiles", "--json").out


def test_a_broken_config_is_a_usage_error(run: Run, folder: Path) -> None:
    folder.mkdir()
    (folder / "config.toml").write_text("profile = ")
    done = run("ledger")
    assert done.code == errors.USAGE
    assert "not valid TOML" in done.one_sentence()


def test_looking_creates_nothing(run: Run, folder: Path) -> None:
    assert run("ledger", "--json").out.strip() == "[]"
    assert run("conversations", "--json").out.strip() == "[]"
    assert run("ledger").out == "Nothing has been sent yet.\n"
    assert "nothing to explain" in run("explain").one_sentence()
    assert not folder.exists()


@pytest.mark.parametrize("command", ["explain", "ledger", "ledger --json", "ledger export", "conversations"])
def test_a_ledger_that_cannot_be_written_is_only_read(run: Run, folder: Path, command: str) -> None:
    paths = resolve("default")
    place = Place("a", "agent-1", "local-conv-1")
    with Ledger.open(paths.ledger, Hands().stamp) as ledger:
        ledger.prepare(place, "first words", "m1", anchor=None)
    paths.ledger.with_name(f"{paths.ledger.name}.lock").unlink()
    paths.ledger.with_name(f"{paths.ledger.name}.lock").mkdir()  # as on a read-only disk, also for root
    done = run(*command.split())
    assert done.code == errors.OK
    assert done.one_sentence().endswith("It is only read.")
    assert "local-conv-1" in done.out
    assert "cannot be written" in run("ledger", "redact", "m1").one_sentence()


def test_the_entry_point_is_the_module() -> None:
    assert cli.main.__module__ == "letta_tui.cli"


def test_exit_codes_are_in_the_readme() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    codes = [value for name, value in vars(errors).items() if name.isupper() and isinstance(value, int)]
    assert not [code for code in codes if f"| {code} |" not in readme]
