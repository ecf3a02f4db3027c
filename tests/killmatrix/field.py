"""A demo server to be shot at: its keeper, its model, its history, and the processes that are the victims."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from letta_tui.commands.keeper_port import KeeperAdapter
from letta_tui.conversation.reconcile import Policy
from letta_tui.keeper.client import KeeperError, KeeperStatus, ensure_keeper, find_keeper, stop_keeper
from letta_tui.ledger.store import Ledger
from letta_tui.paths import Paths, resolve
from letta_tui.practice.demo import DemoSetup, furnish, prepare
from letta_tui.worker.config import Hands, Target, WorkerConfig
from letta_tui.worker.crashpoints import VARIABLE, WHO
from tests.support.seat import Seat
from tests.support.server import PlainSocket

STRANGE = Policy(tested=())
"""A client that has never seen this version of the server, so that it counts on none of its habits."""

PATIENCE = 90.0  # seconds for a process to end


class Field:
    """Everything in ``folder``. One at a time in a process, since the folder is named by the environment."""

    def __init__(self, folder: Path) -> None:
        os.environ["LETTA_TUI_DATA_DIR"] = str(folder)
        self.paths = resolve("demo")
        self.setup: DemoSetup = prepare(self.paths)
        self.agent = ""
        self.started: list[subprocess.Popen[str]] = []
        self._windows = 0
        self._log_read = 0
        self._asked: list[str] = []  # the person's text of each run the model was asked for

    async def close(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()  # it would start a keeper again
                process.wait()
        await stop_keeper(self.setup.paths)

    async def revive(self) -> None:
        """Keeper, server and model, started again if they died, as the next window would."""
        for left in range(30, -1, -1):
            try:
                self.agent = await furnish(self.setup)
            except KeeperError:
                # A keeper needs a moment to notice that its server was killed.
                if not left:
                    raise
                await asyncio.sleep(0.3)
            else:
                return

    # --- processes of ours ---

    def start(
        self, *arguments: str, crash: str = "", who: str = "0", strange: bool = False
    ) -> subprocess.Popen[str]:
        env = {**os.environ, VARIABLE: crash, WHO: who, "STRANGE": "yes" if strange else ""}
        argv, pipe = [sys.executable, "-m", *arguments], subprocess.PIPE
        self.started.append(subprocess.Popen(argv, env=env, stdout=pipe, stderr=pipe, text=True))
        return self.started[-1]

    def command(
        self, message_id: str, conversation: str, text: str, crash: str = "", who: str = "0"
    ) -> subprocess.Popen[str]:
        return self.start(
            "letta_tui", "--profile", "demo", "send", "--agent", self.agent, "--conversation", conversation,
            "--id", message_id, "--json", "--timeout", "30", text, crash=crash, who=who,
        )  # fmt: skip

    def window(
        self,
        conversation: str,
        steps: Sequence[Sequence[str]],
        crash: str = "",
        who: str = "0",
        strange: bool = False,
    ) -> subprocess.Popen[str]:
        told = (self.agent, conversation, json.dumps(steps))
        return self.start("tests.killmatrix.window", *told, crash=crash, who=who, strange=strange)

    async def victims(self, names: Sequence[str]) -> str:
        """Process ids for ``WHO``: others before the window, which is 0."""
        if tuple(names) == ("window",):
            return "0"
        status = await self.status()
        pids = {"keeper": status.pid, "server": status.server_pid or 0, "window": 0}
        assert pids["server"], status
        return ",".join(str(pids[name]) for name in names)

    def seat(self, target: Target, policy: Policy | None = None) -> Seat:
        """A window in this process."""
        self._windows += 1
        return Seat.start(config(self.paths, self.setup, target, f"back-{self._windows}", policy))

    # --- what is true ---

    async def status(self) -> KeeperStatus:
        handle = await find_keeper(self.setup.paths) or await ensure_keeper(
            self.setup.paths, self.setup.options
        )
        try:
            return await handle.status()
        finally:
            await handle.close()

    async def socket(self) -> PlainSocket:
        return PlainSocket((await self.status()).server_url, self.setup.paths.token.read_text().strip())

    async def conversation(self) -> str:
        async with await self.socket() as socket:
            answer = await socket.ask("conversation_create", body={"agent_id": self.agent})
        return str(answer["conversation"]["id"])

    async def history(self, conversation: str) -> list[dict[str, Any]]:
        """All rows, oldest first."""
        async with await self.socket() as socket:
            query = {"agent_id": self.agent, "limit": 200}
            answer = await socket.ask("conversation_messages_list", conversation_id=conversation, query=query)
        rows: list[dict[str, Any]] = answer["messages"]
        return rows[::-1]

    def runs(self, mark: str) -> int:
        """How often the model was asked first for an input with ``mark`` in it. An input whose turn was cut
        off is in what the model is asked for the next one too, above it: that is no run of it."""
        log = self.paths.data / "demo" / "model.jsonl"
        with suppress(FileNotFoundError), log.open() as lines:
            lines.seek(self._log_read)
            while line := lines.readline():
                if not line.endswith("\n"):
                    break
                self._log_read = lines.tell()
                entry = json.loads(line)
                if entry["event"] == "request" and entry["reply"] == 0 and entry["tools"]:
                    self._asked.append(entry["user"])
        asked = [text for text in self._asked if mark in text]
        return sum(number == 0 or mark in text.splitlines()[-1] for number, text in enumerate(asked))

    def emptied(self, conversation: str) -> bool:
        """Whether the server has left the conversation's file without a byte (0.34.12 writes it in place)."""
        name = base64.urlsafe_b64encode(f"conversation:{conversation}".encode()).decode().rstrip("=")
        file = self.paths.data / "demo" / "backend" / "conversations" / name / "conversation.json"
        return file.exists() and file.stat().st_size == 0

    def ledger(self) -> Ledger:
        return Ledger.open(self.paths.ledger, Hands().stamp)


def config(
    paths: Paths, setup: DemoSetup, target: Target, window_id: str, policy: Policy | None = None
) -> WorkerConfig:
    return WorkerConfig(
        ledger_path=paths.ledger,
        keeper=KeeperAdapter(setup.paths, setup.options, "demo"),
        cwd=str(setup.scratch),
        target=target,
        window_id=window_id,
        policy=policy or Policy(),
    )


async def finish(process: subprocess.Popen[str], seconds: float = PATIENCE) -> tuple[str, str]:
    """Its output. One that does not end is killed."""
    try:
        return await asyncio.to_thread(process.communicate, timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return await asyncio.to_thread(process.communicate)
