"""One demo for all: its server starts once, each test has a conversation of its own."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.server import LETTA, person_env
from tests.terminal.screen import Terminal

READY = "Connected"


@dataclass
class Demo:
    """``letta-tui demo`` with everything below ``folder``."""

    folder: Path

    @property
    def env(self) -> dict[str, str]:
        env = person_env(self.folder / "home", self.folder / "data")
        return env | {"COLORTERM": "truecolor"}

    @property
    def profile(self) -> Path:
        return self.folder / "data" / "profiles" / "demo"

    @property
    def scratch(self) -> Path:
        return self.profile / "demo" / "scratch"

    def open(self, *arguments: str, size: tuple[int, int] = (100, 30)) -> Terminal:
        """Start the program; ``--new`` is a conversation of the test's own."""
        argv = [sys.executable, "-m", "letta_tui", "demo", *arguments]
        return Terminal(argv, self.env, self.folder, size)

    def ready(self, *arguments: str, size: tuple[int, int] = (100, 30)) -> Terminal:
        """The same, and wait until it is connected."""
        terminal = self.open(*arguments, size=size)
        try:
            terminal.wait(READY, timeout=60)
            terminal.wait("F1 help")
        except BaseException:
            terminal.__exit__()
            raise
        return terminal

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "letta_tui", "--profile", "demo", *arguments]
        return subprocess.run(
            argv, env=self.env, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False
        )

    def ledger(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(self.command("ledger", "--json").stdout)
        return rows

    def draft_saved(self, text: str) -> bool:
        """Whether it is on disk, of which there is nothing on the screen to see."""
        with closing(sqlite3.connect(self.profile / "ledger.sqlite3")) as database:
            return database.execute("SELECT 1 FROM drafts WHERE text = ?", (text,)).fetchone() is not None

    def keeper(self) -> dict[str, Any]:
        status: dict[str, Any] = json.loads(self.command("keeper", "status", "--json").stdout)
        return status

    def runs(self, mark: str) -> int:
        """How often the model was asked to answer a message with ``mark`` (tool rounds count once)."""
        log = self.profile / "demo" / "model.jsonl"
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        return sum(1 for x in lines if x["event"] == "request" and x["reply"] == 0 and mark in x["user"])

    def leftovers(self) -> list[str]:
        """Processes of this demo that are alive."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.status() == psutil.STATUS_ZOMBIE:
                    continue
                if process.environ().get("LETTA_TUI_DATA_DIR") == str(self.folder / "data"):
                    found.append(" ".join(process.cmdline()))
            except psutil.Error:
                continue
        return found


@pytest.fixture(scope="session")
def demo() -> Iterator[Demo]:
    if not LETTA.exists():
        pytest.skip("the real server is not installed (pip install 'letta-tui[server]')")
    # Short, so that the sockets are below it as well.
    folder = Path(tempfile.mkdtemp(prefix="letta-tui-test-"))
    one = Demo(folder)
    try:
        yield one
        one.command("keeper", "stop")
        assert one.leftovers() == []
    finally:
        one.command("keeper", "stop")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def mark() -> str:
    """A word that is in no other test's messages."""
    return f"m{uuid.uuid4().hex[:10]}"
