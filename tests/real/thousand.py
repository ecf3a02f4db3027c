"""Processes that share a ledger, two to a conversation: each of a thousand messages is written once.

``python -m tests.real.thousand [COUNT [CONVERSATIONS]]`` (1,000 and 1 unless told) prints what was counted:
messages, attempts in the ledger, writes on the wire, rows in the server's history, and violations. The wire
is counted by a forwarder between the windows and the real server. More conversations at once mean more
processes on the ledger, and less time: a turn costs the more the longer its conversation is.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import websockets

from letta_tui.ledger.store import Ledger
from letta_tui.transport.endpoint import direct
from letta_tui.worker.config import Hands, Target, WorkerConfig
from tests.support.seat import Seat
from tests.support.server import TOKEN, RealServer, real_server


@dataclass(frozen=True, slots=True)
class Count:
    processes: int
    messages: int
    attempts: int
    writes: int
    rows: int
    seconds: float
    violations: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.messages} messages by {self.processes} processes on one ledger: "
            f"{self.attempts} attempts, {self.writes} writes on the wire, {self.rows} rows in history, "
            f"{len(self.violations)} violations, {self.seconds:.0f} s"
        )


@asynccontextmanager
async def counted(url: str, writes: Counter[str]) -> AsyncIterator[str]:
    """A forwarder to ``url``; ``writes`` counts inputs by client message id. Yields its own address."""

    async def forward(client: websockets.ServerConnection) -> None:
        headers = {"Authorization": client.request.headers.get("Authorization", "")} if client.request else {}
        limits = {"max_size": None, "max_queue": None}
        async with websockets.connect(url, additional_headers=headers, proxy=None, **limits) as server:  # type: ignore[arg-type]

            async def down() -> None:
                async for text in server:
                    await client.send(text)
                await client.close()

            pump = asyncio.create_task(down())
            try:
                async for text in client:
                    frame = json.loads(text)
                    for message in (frame.get("payload") or {}).get("messages") or ():
                        if frame.get("type") == "input":
                            writes[str(message.get("client_message_id"))] += 1
                    await server.send(text)
            finally:
                pump.cancel()

    async with websockets.serve(forward, "127.0.0.1", 0, max_size=None) as listening:
        port = next(iter(listening.sockets)).getsockname()[1]
        yield f"ws://127.0.0.1:{port}/ws"


async def seat(name: str, folder: str, url: str, agent: str, conversation: str, count: int) -> None:
    """One window: says ``count`` things as fast as the disk takes them, and stays until all have run."""
    config = WorkerConfig(
        ledger_path=Path(folder) / "ledger.sqlite3",
        endpoint=direct(url, token_file=Path(folder) / "token"),
        cwd=folder,
        target=Target(agent, conversation),
        window_id=f"{name}-{conversation}",
    )
    one = Seat.start(config)
    await one.ready(300)
    for number in range(count):
        await one.said(f"{name} {number} [[say ok]]")
    await one.rest(60 + count * 3)
    await one.quit()


async def run(server: RealServer, folder: Path, count: int, pairs: int = 1) -> Count:
    begun = time.monotonic()
    conversations = [await server.conversation() for _ in range(pairs)]
    each = count // (2 * pairs)
    (folder / "token").write_text(TOKEN)
    (folder / "token").chmod(0o600)
    writes: Counter[str] = Counter()
    async with counted(server.url, writes) as url:
        processes = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.real.thousand", "--seat", name, str(folder), url,
                server.agent_id, conversation, str(each),
            )
            for conversation in conversations
            for name in ("left", "right")
        ]  # fmt: skip
        codes = [await process.wait() for process in processes]
    ledger = Ledger.open(folder / "ledger.sqlite3", Hands().stamp)
    try:
        sends = [send for known in ledger.conversations() for send in ledger.sends(known.place)]
    finally:
        ledger.close()
    rows: Counter[str] = Counter()
    for conversation in conversations:
        history = await server.history(conversation)
        rows.update(str(m.get("otid")) for m in history if m["message_type"] == "user_message")
    found = [f"a window ended with {code}" for code in codes if code]
    if len(sends) != each * 2 * pairs:
        found.append(f"{len(sends)} messages in the ledger")
    for send in sends:
        key = send.client_message_id
        seen = len(send.attempts), writes[key], rows[key]
        if seen != (1, 1, 1) or send.delivery != "delivered":
            found.append("{}: {}; attempts, writes, rows: {}, {}, {}".format(key, send.delivery, *seen))
    return Count(
        processes=2 * pairs,
        messages=len(sends),
        attempts=sum(len(send.attempts) for send in sends),
        writes=writes.total(),
        rows=rows.total(),
        seconds=time.monotonic() - begun,
        violations=tuple(found),
    )


def main() -> int:
    if sys.argv[1:2] == ["--seat"]:
        who, where, url, agent, conversation, each = sys.argv[2:]
        asyncio.run(seat(who, where, url, agent, conversation, int(each)))
        return 0
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with real_server(folder / "letta") as server:
            counts = asyncio.run(run(server, folder, count, pairs))
    print(counts)
    for violation in counts.violations[:20]:
        print(f"  {violation}")
    return 1 if counts.violations else 0


if __name__ == "__main__":
    sys.exit(main())
