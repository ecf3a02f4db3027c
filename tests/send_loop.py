"""``letta-tui send --id`` in a shell-like loop with random kill -9, on the real server.

``python -m tests.send_loop --runs 200 [--seed N] [--jobs N]``. Each message has an id; its command is
started, killed at a random moment or not, and started again with the same id until it has been left alone.
Then the exit code has to be the truth about what the server's history and the model's log say:

* no prompt ran twice, whatever was killed;
* none is lost: what was left alone ends delivered, or with a code and words that say that it is not;
* 0 means delivered and answered, 1 not delivered, 3 delivered and failed, 5 nobody can say.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import sys
import tempfile
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.server import RealServer, isolated_env, real_server

MOST_KILLS = 3  # of one message


@dataclass
class Counts:
    started: int = 0
    killed: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def line(self) -> str:
        codes = ", ".join(f"{count} × exit {code}" for code, count in sorted(self.codes.items()))
        return (
            f"{sum(self.codes.values())} messages, {self.started} commands, {self.killed} killed; {codes}; "
            f"{len(self.violations)} violations"
        )


@dataclass
class Loop:
    server: RealServer
    folder: Path
    chance: random.Random
    kill: float  # how often a command is killed, 0 to 1
    counts: Counts = field(default_factory=Counts)
    usual: float = 4.0  # seconds a command takes that is left alone

    @property
    def env(self) -> dict[str, str]:
        return isolated_env(self.folder) | {"LETTA_TUI_DATA_DIR": str(self.folder / "data")}

    async def command(self, *arguments: str, dies_after: float | None = None) -> tuple[int, str, str]:
        """Run ``letta-tui``; killed after so many seconds if it is still there."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "letta_tui", *arguments,
            env=self.env, cwd=Path(__file__).parents[1], stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        reading = asyncio.create_task(process.communicate())
        if dies_after is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(reading), dies_after)
            if process.returncode is None:
                process.kill()
        out, err = await asyncio.wait_for(reading, 120)
        assert process.returncode is not None
        return process.returncode, out.decode(), err.decode()

    async def message(self, number: int) -> None:
        """One message from its first command to the one that was left alone, and what is true of it."""
        name, mark = str(uuid.uuid4()), f"loop{number}x{uuid.uuid4().hex[:8]}"
        server = ["--url", self.server.url, "--token-file", str(self.server.token_file)]
        text = f"{mark} [[words {self.chance.choice((1, 20, 60))} rate=80]]"
        kills = 0
        while True:
            dies = kills < MOST_KILLS and self.chance.random() < self.kill
            after = self.chance.uniform(0.1, 1.1) * self.usual if dies else None
            began = time.monotonic()
            arguments = ("send", *server, "--agent", self.server.agent_id, "--id", name, "--json", text)
            code, out, err = await self.command(*arguments, dies_after=after)
            self.counts.started += 1
            if code != -9:
                break
            kills += 1
            self.counts.killed += 1
        if after is None:
            self.usual += 0.2 * (time.monotonic() - began - self.usual)
        self.counts.codes[code] += 1
        for wrong in await self.wrong_with(name, mark, code, out, err):
            self.counts.violations.append(f"{name} ({kills} kills): {wrong}")

    async def wrong_with(self, name: str, mark: str, code: int, out: str, err: str) -> list[str]:
        try:
            data: dict[str, Any] = json.loads(out)
        except ValueError:
            return [f"exit {code} without a report: {err or out}"]
        wrong: list[str] = []
        runs = self.server.runs(mark)
        if runs > 1:
            wrong.append(f"ran {runs} times")
        rows = 0
        if data["conversation"]:
            history = await self.server.history(data["conversation"])
            rows = sum(row.get("otid") == name for row in history if row["message_type"] == "user_message")
        if rows > 1:
            wrong.append(f"{rows} rows in history")
        delivered = rows == 1
        if data["exit_code"] != code or data["success"] != (code == 0):
            wrong.append(f"exit {code}, but the report says {data['exit_code']}")
        if code in (0, 3) and not delivered:
            wrong.append(f"exit {code}, and history lacks it")
        if code == 1 and (delivered or runs):
            wrong.append("exit 1, and yet it was delivered")
        if code not in (0, 1, 3, 5):
            wrong.append(f"exit {code}: {err}")
        if code == 0 and not data["result"]:
            wrong.append("exit 0 without an answer")
        return wrong

    async def run(self, runs: int, jobs: int, *, show: bool) -> Counts:
        waiting = iter(range(runs))

        async def job() -> None:
            for number in waiting:
                await self.message(number)
                if show and (number + 1) % 10 == 0:
                    print(f"… {self.counts.line()}", flush=True)

        try:
            await asyncio.gather(*(job() for _ in range(jobs)))
            # Once more, all of them: the second report is the first, and nothing runs.
            listed = json.loads((await self.command("ledger", "--json"))[1])
            for row in self.chance.sample(listed, min(5, len(listed))):
                code, out, _ = await self.command("send", "--id", row["client_message_id"], "--json")
                if code == 0 and json.loads(out)["delivery"] != row["state"]:
                    self.counts.violations.append(f"{row['client_message_id']}: told differently later")
        finally:
            await self.command("keeper", "stop")
        return self.counts


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1, help="messages under way at once")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--kill", type=float, default=0.6, help="how often a command is killed")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="send-loop-") as name:
        folder = Path(name)
        with real_server(folder / "server") as server:
            for each in ("home", "data"):
                (folder / each).mkdir()
            print(f"seed {args.seed}", flush=True)
            loop = Loop(server, folder, random.Random(args.seed), args.kill)
            counts = asyncio.run(loop.run(args.runs, args.jobs, show=True))
    for wrong in counts.violations:
        print(wrong)
    print(counts.line())
    return 1 if counts.violations else 0


if __name__ == "__main__":
    os.umask(0o077)
    raise SystemExit(main())
