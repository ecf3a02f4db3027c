"""When the desktop is told of something, with which words, and by which program."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from letta_tui.keeper.ends import End
from letta_tui.keeper.notify import Manners, command_for, words_for
from letta_tui.keeper.options import KeeperOptions, KeeperPaths
from letta_tui.keeper.process import Keeper
from tests.support.server import until

APPROVAL = End(1.0, "approval", "a", "c", tools=("Bash",))
LONG = End(1.0, "turn", "a", "c", stop_reason="end_turn", seconds=12.0, tools=("Bash",))
SHORT = End(1.0, "turn", "a", "c", stop_reason="end_turn", seconds=2.0)
FAILED = End(1.0, "turn", "a", "c", stop_reason="error", seconds=2.0, words="no credits")


@pytest.mark.parametrize(
    ("end", "plain", "detailed"),
    [
        (APPROVAL, "A tool call waits for you.", "Bash waits for your answer."),
        (LONG, "The turn has ended.", "The turn has ended."),
        (SHORT, "", ""),
        (FAILED, "The turn failed.", "The turn failed: no credits"),
        (End(1.0, "turn", "a", "c", stop_reason="cancelled", seconds=99.0), "", ""),
        (End(1.0, "left", "a", "c"), "", ""),
    ],
)
def test_words(end: End, plain: str, detailed: str) -> None:
    assert words_for(end, Manners()) == plain
    assert words_for(end, Manners(details=True)) == detailed
    assert words_for(end, Manners(on=False, details=True)) == ""


def test_the_program_is_the_one_of_the_desktop_there_is() -> None:
    def which(name: str) -> str:
        return f"/bin/{name}"

    screen = {"DISPLAY": ":0"}
    assert command_for("x", {}, "linux", which) is None  # no desktop, though the program is there
    assert command_for("x", screen, "linux", lambda name: None) is None
    command = command_for("-x \x1b[2J\n" + "y" * 999, screen, "linux", which)
    assert command is not None
    assert command[0] == "/bin/notify-send"
    assert command[command.index("--") :][:2] == ["--", "letta-tui"]  # words are no options
    assert command[-1].isprintable()
    assert len(command[-1]) == 200
    mac = command_for('say "hi"', {}, "darwin", which)
    assert mac is not None
    assert mac[0] == "/bin/osascript"
    assert mac[-1] == 'say "hi"'
    assert 'say "hi"' not in mac[2]  # an argument, never a part of the script


async def test_a_keeper_calls_only_when_no_window_shows_the_conversation(tmp_path: Path) -> None:
    said = tmp_path / "said"
    program = tmp_path / "bin" / "notify-send"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv), file=open({str(said)!r}, 'a'))\n"
    )
    program.chmod(0o755)
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{program.parent}{os.pathsep}{path}"
    try:
        paths = KeeperPaths(tmp_path / "state", tmp_path / "run")
        keeper = Keeper(paths, KeeperOptions(url="ws://127.0.0.1:1/ws"), {**os.environ, "DISPLAY": ":0"})
        paths.state.mkdir()
        keeper._note([APPROVAL, SHORT])
        await until(said.exists)
        await until(said.read_text)
        keeper._handed_over = True  # the next keeper calls
        keeper._note([APPROVAL])
        for what in ("failed", "failed", "nonsense"):  # two windows that nobody sees, and a newer one
            keeper.call(("agent-1", "conv-1"), what)
        await until(lambda: said.read_text().count("\n") == 2)
    finally:
        os.environ["PATH"] = path
    lines = [json.loads(line)[-1] for line in said.read_text().splitlines()]
    assert lines == ["A tool call waits for you.", "The turn failed."]


def test_manners_travel_to_the_keeper() -> None:
    options = KeeperOptions(notify=False, notify_after=3.0, notify_details=True)
    assert KeeperOptions.from_json(options.to_json()) == options
    assert KeeperOptions.from_json("{}") == KeeperOptions()
