"""``letta-tui send --id`` in a shell-like loop with random kill -9, on the real server.

``python -m tests.send_loop --runs 200 [--seed N] [--jobs N]``. Each message has an id; its command is
started, killed at a random moment or not, and started again with the same id until it has been left alone.
The messages are of several kinds, and what their exit codes say is compared with the server's history, its
open approvals and the model's log:

======== ==================================================================================================
answer   an ordinary one: 0, or another code with the words and the state that it claims
fail     the model answers with an error: 3
approve  the server's shell tool asks: 4, and it waits on the server; half of them are then allowed by
         somebody else, and the same command again says 0; the tool has run once
own      a tool of the person's own that nobody has to allow: 0
own-asks one that somebody has to allow, in a mode in which the server asks or in one in which it does not:
         4, it was not run, and the turn was stopped
vanish   the server is killed while the command is under way, and comes back later: 0, 1 or 5 while it is
         away; then the truth, and a second run by the server itself is told. What it has of the message on
         its disk between its two lives is read: an answer that was received but is not there is its loss
         ("forgot"), and anything else that its history lacks later is a violation
======== ==================================================================================================

In all of them: no prompt ran twice, none is lost, and the second report is the first.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.leftovers import Left, left_by, plain
from tests.support.server import RealServer, isolated_env, real_server, until
from tests.support.tally import Counts

MOST_KILLS = 3  # of one message
KINDS = {"answer": 8, "fail": 3, "approve": 3, "own": 2, "own-asks": 2, "vanish": 2}
EXPECTED = {"fail": {3}, "approve": {4}, "own-asks": {4}}  # where nothing but this is the truth

CONFIG = """
[profiles.default.tools.weather]
description = "Tells the weather."
command = ["sh", "-c", "echo x >> {runs}/$(cat | tr -dc a-z0-9); echo sunny"]
parameters = {{ type = "object", properties = {{ mark = {{ type = "string" }} }} }}
approval = "auto"

[profiles.default.tools.careful]
description = "The same, but it asks."
command = ["sh", "-c", "echo x >> {runs}/$(cat | tr -dc a-z0-9); echo careful"]
parameters = {{ type = "object", properties = {{ mark = {{ type = "string" }} }} }}
"""


@dataclass
class Loop:
    """``mortal`` is a server that the loop may kill; without one there are no such messages."""

    server: RealServer
    folder: Path
    chance: random.Random
    kill: float  # how often a command is killed, 0 to 1
    mortal: RealServer | None = None
    counts: Counts = field(default_factory=Counts)
    show: bool = False  # each violation at once
    usual: float = 4.0  # seconds a command takes that is left alone
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        for each in ("home", "data", "runs"):
            (self.folder / each).mkdir(exist_ok=True)
        (self.folder / "data" / "config.toml").write_text(CONFIG.format(runs=self.folder / "runs"))

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
            try:
                await asyncio.wait_for(asyncio.shield(reading), dies_after)
            except TimeoutError:
                # Not ``process.kill``: that polls, and takes the exit code of one that has just ended away.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
        out, err = await asyncio.wait_for(reading, 180)
        assert process.returncode is not None
        return process.returncode, out.decode(), err.decode()

    async def message(self, number: int, kind: str = "") -> None:
        """One message from its first command to the one that was left alone, and what is true of it."""
        kinds = [k for k in KINDS if k != "vanish" or self.mortal is not None]
        kind = kind or self.chance.choices(kinds, [KINDS[k] for k in kinds])[0]
        one = Message(self, kind, str(uuid.uuid4()), f"loop{number}x{uuid.uuid4().hex[:8]}")
        self.counts.messages += 1
        if kind == "vanish":
            async with self._one_at_a_time:
                await one.vanish()
        else:
            await one.go()

    async def run(self, runs: int, jobs: int, *, kinds: Sequence[str] = (), minutes: float = 1e6) -> Counts:
        waiting = iter(range(runs))
        ends = time.monotonic() + 60 * minutes

        async def job() -> None:
            for number in waiting:
                if time.monotonic() > ends:
                    return
                await self.message(number, kinds[number] if number < len(kinds) else "")
                if self.show and (number + 1) % 10 == 0:
                    print(f"… {self.counts.line()}", flush=True)

        try:
            await asyncio.gather(*(job() for _ in range(jobs)))
            # Once more, some of them: the second report is the first, and nothing runs.
            listed = json.loads((await self.command("ledger", "--json"))[1])
            for row in self.chance.sample(listed, min(5, len(listed))):
                code, out, _ = await self.command("send", "--id", row["client_message_id"], "--json")
                if code == 0 and json.loads(out)["delivery"] != row["state"]:
                    self.counts.violations.append(f"{row['client_message_id']}: told differently later")
        finally:
            await self.command("keeper", "stop")
        return self.counts


@dataclass
class Message:
    loop: Loop
    kind: str
    name: str
    mark: str
    kills: int = 0
    mode: str = "standard"
    words: int = 0  # of the answer
    left: dict[str, Left] = field(default_factory=dict)  # by conversation: on the disk of a killed server

    def __post_init__(self) -> None:
        self.words = self.loop.chance.choice((1, 20, 60) if self.kind != "vanish" else (40, 120))

    @property
    def answer(self) -> str:
        """What the model says in the end, as ``plain`` tells it."""
        spoken = " ".join(f"w{number:04d}" for number in range(self.words))
        return "done" if self.kind in ("approve", "own", "own-asks") else spoken

    @property
    def server(self) -> RealServer:
        if self.kind == "vanish":
            assert self.loop.mortal is not None
            return self.loop.mortal
        return self.loop.server

    @property
    def text(self) -> str:
        call = json.dumps({"mark": self.mark})
        return f"{self.mark} " + {
            "fail": "[[http 400 no such thing]]",
            "approve": f"[[run echo x >> {self.server.work / self.mark} ==> say done]]",
            "own": f"[[call weather {call} ==> say done]]",
            "own-asks": f"[[call careful {call} ==> say done]]",
        }.get(self.kind, f"[[words {self.words} rate=80]]")

    def arguments(self, text: str) -> list[str]:
        server = ["--url", self.server.url, "--token-file", str(self.server.token_file)]
        agent = ["--agent", self.server.agent_id, "--mode", self.mode]
        return ["send", *server, *agent, "--id", self.name, "--json", text]

    def wrong(self, words: str) -> None:
        violation = f"{self.kind} {self.name} ({self.kills} kills): {words}"
        self.loop.counts.violations.append(violation)
        if self.loop.show:
            print(violation, flush=True)

    async def go(self) -> None:
        loop, text = self.loop, self.text
        if self.kind == "own-asks":
            self.mode = loop.chance.choice(("standard", "unrestricted"))
        while True:
            dies = self.kills < MOST_KILLS and loop.chance.random() < loop.kill
            after = loop.chance.uniform(0.1, 1.1) * loop.usual if dies else None
            began = time.monotonic()
            code, out, err = await loop.command(*self.arguments(text), dies_after=after)
            loop.counts.started += 1
            if code != -9:
                break
            self.kills += 1
            loop.counts.killed += 1
        if after is None:
            loop.usual += 0.2 * (time.monotonic() - began - loop.usual)
        loop.counts.codes[self.kind, str(code)] += 1
        data = await self.check(code, out, err)
        if data is None:
            return
        again, out, _ = await loop.command("send", "--id", self.name, "--json")
        loop.counts.started += 1
        if again != code:
            self.wrong(f"exit {code}, and {again} when run again")
        if code == 4 and self.kind == "approve" and loop.chance.random() < 0.5:
            await self.allowed_elsewhere(data)

    async def check(self, code: int, out: str, err: str) -> Mapping[str, Any] | None:
        try:
            data: dict[str, Any] = json.loads(out)
        except ValueError:
            self.wrong(f"exit {code} without a report: {err or out}")
            return None
        if data["exit_code"] != code or data["success"] != (code == 0):
            self.wrong(f"exit {code}, but the report says {data['exit_code']}")
        if code not in range(6) or code == 2:
            self.wrong(f"exit {code}: {err}")
        expected = EXPECTED.get(self.kind)
        if expected is not None and code not in expected:
            self.wrong(f"exit {code}: {data['error']}")
        if code != 0 and not data["error"]:
            self.wrong(f"exit {code} without a word")
        runs = self.server.runs(self.mark)
        rows = await self.history(data["conversation"])
        mine = [n for n, row in enumerate(rows) if row.get("otid") == self.name and is_user(row)]
        told_twice = any("twice" in note for note in data["notes"])
        if (runs > 1 or len(mine) > 1) and not (self.kind == "vanish" and told_twice):
            self.wrong(f"ran {runs} times, {len(mine)} rows in history, and it was not told")
        answers = [row for row in rows[mine[0] :] if is_answer(row)] if mine else []
        answered = any(plain(row.get("content")) == self.answer for row in answers)
        if code == 0 and plain(data["result"]) != self.answer:
            self.wrong(f"exit 0 with the answer {data['result']!r}")
        elif code == 0 and not answered:
            left = self.left.get(data["conversation"])
            if left is not None and data["turn"] == "done" and not (left.readable and left.answered):
                self.loop.counts.forgot += 1
                print(f"forgot: {self.name} ({data['conversation']}): {left}", flush=True)
            else:
                kinds = [row["message_type"] for row in rows]
                self.wrong(f"exit 0, and history has no answer but {kinds}; left when killed: {left}")
        if code == 5:
            left = self.left.get(data["conversation"])
            self.loop.counts.lost += left is not None and not left.readable
            if answered:
                self.wrong("exit 5, and history has the answer")
        if code == 1 and (mine or runs):
            self.wrong("exit 1, and yet it was delivered")
        if code == 3 and (not mine or answers):
            self.wrong("exit 3, and history says otherwise")
        if code == 4 and data["conversation"]:
            await self.check_card(data)
        return data

    async def check_card(self, data: Mapping[str, Any]) -> None:
        waits = await self.waiting(data["conversation"])
        if self.kind == "approve" and not waits:
            self.wrong("exit 4, and nothing waits on the server")
        if self.kind == "own-asks" and waits:
            self.wrong("exit 4, and a card is left that would be answered in vain")
        if self.ran():
            self.wrong("exit 4, and the tool has run")

    async def allowed_elsewhere(self, data: Mapping[str, Any]) -> None:
        """Somebody else allows it; the same command says 0 then."""
        conversation, agent = data["conversation"], self.server.agent_id
        async with self.server.plain() as other:
            await other.join(agent, conversation)
            card = await other.wait(  # the cards of all conversations are told at once
                lambda f: (
                    f.get("type") == "control_request" and f["runtime"]["conversation_id"] == conversation
                )
            )
            await other.decide(agent, conversation, card["request_id"], allow=True)
            await other.wait(
                lambda f: f.get("type") == "turn_finished" and f["runtime"]["conversation_id"] == conversation
            )
        code, out, err = await self.loop.command("send", "--id", self.name, "--json")
        self.loop.counts.codes[self.kind, f"allowed: {code}"] += 1
        if code != 0 or json.loads(out)["result"] != "done":
            self.wrong(f"exit {code} after it was allowed: {err}")
        if self.ran() != 1:
            self.wrong(f"the tool ran {self.ran()} times")

    def ran(self) -> int:
        """How often the tool was run."""
        folder = self.server.work if self.kind == "approve" else self.loop.folder / "runs"
        name = self.mark if self.kind == "approve" else f"mark{self.mark}"
        file = folder / name
        return len(file.read_text().split()) if file.exists() else 0

    async def history(self, conversation: str | None) -> list[dict[str, Any]]:
        try:
            return await self.server.history(conversation) if conversation else []
        except AssertionError:  # "not found": a server that was killed may have forgotten it
            if self.kind != "vanish":
                raise
            return []

    async def waiting(self, conversation: str) -> bool:
        """Whether an approval is open there."""
        runtime = {"agent_id": self.server.agent_id, "conversation_id": conversation}
        async with self.server.plain() as socket:
            await socket.ask("sync", runtime=runtime, recover_approvals=False, force_device_status=True)
            frame = await socket.wait(lambda f: f.get("type") == "update_device_status")
        return bool(frame["device_status"]["pending_control_requests"])

    async def vanish(self) -> None:
        """The server is killed while the command is under way."""
        loop, text, server = self.loop, self.text, self.server
        killing = asyncio.create_task(self.kill_server())
        code, out, err = await loop.command(*self.arguments(text)[:-1], "--timeout", "15", text)
        await killing
        loop.counts.started += 1
        loop.counts.codes[self.kind, f"away: {code}"] += 1
        if code not in (0, 1, 5):
            self.wrong(f"exit {code} while the server is away: {err}")
        runs = server.runs(self.mark)
        if code == 1 and runs:
            self.wrong(f"exit 1 while the server is away, and it ran: {err}")
        await asyncio.to_thread(server.start)
        began = time.monotonic()
        code, out, err = await loop.command(*self.arguments(text)[:-1], "--timeout", "100", text)
        if code == 5:
            print(err, flush=True)
        loop.usual += 0.2 * (time.monotonic() - began - loop.usual)
        loop.counts.started += 1
        loop.counts.codes[self.kind, str(code)] += 1
        await self.check(code, out, err)
        again, out, _ = await loop.command("send", "--id", self.name, "--json", "--timeout", "100")
        loop.counts.started += 1
        if again != code or (code == 0 and plain(json.loads(out)["result"]) != self.answer):
            self.wrong(f"exit {code}, and {again} when run again: {out}")

    async def kill_server(self) -> None:
        """At any time, or once the model has been asked."""
        chance = self.loop.chance
        if chance.random() < 0.7:
            with contextlib.suppress(AssertionError):  # never asked
                await until(lambda: self.server.runs(self.mark), 3 * self.loop.usual)
            await asyncio.sleep(chance.random())
        else:
            await asyncio.sleep(chance.uniform(0.3, 1.1) * self.loop.usual)
        await asyncio.to_thread(self.server.kill)
        self.left = dict(left_by(self.server, self.mark, self.answer))
        self.loop.counts.servers_killed += 1


def is_answer(row: Mapping[str, Any]) -> bool:
    return row.get("message_type") == "assistant_message"


def is_user(row: Mapping[str, Any]) -> bool:
    return row.get("message_type") == "user_message"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1, help="messages under way at once")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--kill", type=float, default=0.6, help="how often a command is killed")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no other message after so long")
    parser.add_argument("--kind", choices=KINDS, help="only this kind")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="send-loop-") as name:
        folder = Path(name)
        (folder / "ours").mkdir()
        with real_server(folder / "server") as server, real_server(folder / "mortal") as mortal:
            print(f"seed {args.seed}", flush=True)
            loop = Loop(server, folder / "ours", random.Random(args.seed), args.kill, mortal, show=True)
            kinds = [args.kind] * args.runs if args.kind else []
            counts = asyncio.run(loop.run(args.runs, args.jobs, kinds=kinds, minutes=args.minutes))
    print(counts.table(KINDS))
    print(counts.line())
    return 1 if counts.violations else 0


if __name__ == "__main__":
    os.umask(0o077)
    raise SystemExit(main())
