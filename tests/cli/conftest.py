"""A data folder of the test's own, and a way to run a command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from letta_tui.cli import main


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: str
    err: str

    def one_sentence(self) -> str:
        """What was said on standard error; exactly one line that ends like a sentence."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("letta-tui: ")
        assert lines[0].endswith((".", "?")), lines[0]
        assert "Traceback" not in self.err
        return lines[0].removeprefix("letta-tui: ")


Run = Callable[..., Done]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Everything of ours lives below it; a keeper that a test started is ended."""
    data = tmp_path / "data"
    monkeypatch.setenv("LETTA_TUI_DATA_DIR", str(data))
    monkeypatch.delenv("LETTA_CLI_PATH", raising=False)
    monkeypatch.delenv("LETTA_API_KEY", raising=False)
    yield data
    if data.exists():
        main(["keeper", "stop"])


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """``run("ledger", "--json")`` runs the command line in this process."""

    def go(*arguments: str) -> Done:
        capsys.readouterr()
        try:
            code = main(arguments)
        except SystemExit as end:  # argparse leaves this way after --help
            code = end.code if isinstance(end.code, int) else 1
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return go
