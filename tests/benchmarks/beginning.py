"""From Ctrl+Home to the first of 10,000 messages, in process, beside reading those pages and drawing nothing.

``python -m tests.benchmarks.beginning``. The server is one in memory: what is measured is ours alone.
"""

from __future__ import annotations

import asyncio
import itertools
import resource
import tempfile
import time
from pathlib import Path

from letta_tui.commands.chat import keys_first
from letta_tui.seam.intents import LoadOlder
from letta_tui.ui.app import LettaTuiApp
from letta_tui.worker.config import Target, WorkerConfig
from letta_tui.worker.worker import Worker
from tests.support.seat import Seat
from tests.worker.fake import AGENT, FakeServer

MESSAGES = 10_000
ANSWER = "**Part {n}** is fine.\n\n- first point about `file_{n}.py`\n\n```python\nx = {n}\nprint(x)\n```\n"


def server() -> FakeServer:
    made = FakeServer()
    made.rows = [
        made.row("user_message", content=f"please look at part {n}", otid=f"o{n}")
        if n % 2 == 0
        else made.row("assistant_message", content=ANSWER.format(n=n), otid=f"o{n}")
        for n in range(MESSAGES)
    ]
    return made


def config(found: FakeServer, folder: Path) -> WorkerConfig:
    target = Target(agent_id=AGENT, conversation_id="conv-1")
    return WorkerConfig(ledger_path=folder / "ledger.sqlite3", endpoint=found.endpoint, target=target)


async def bare(folder: Path) -> float:
    """Seconds of the worker alone."""
    found = server()
    seat = await Seat.start(config(found, folder), found.open).ready()
    begin = time.perf_counter()
    while not seat.rows[0].text.endswith(" 0"):
        oldest = seat.rows[0].key
        seat.send(LoadOlder(to_start=True))
        await seat.until(lambda oldest=oldest: seat.rows[0].key != oldest)
    took = time.perf_counter() - begin
    await seat.quit()
    return took


async def drawn(folder: Path) -> tuple[float, float, float, int]:
    """(seconds to the last message, seconds from there to the first, worst pause, MiB more)."""
    found = server()
    worker = Worker(config(found, folder), open_=found.open)
    begin = time.perf_counter()
    worker.start()
    app = LettaTuiApp(worker)
    pauses: list[float] = []

    async def pulse() -> None:
        for last in itertools.repeat(0.0):
            last = time.perf_counter()
            await asyncio.sleep(0.002)
            pauses.append(time.perf_counter() - last)

    async with app.run_test(size=(120, 40)) as pilot:
        view = app.chat.transcript
        while not (view.rows and app.chat.connection.can_send):
            await pilot.pause(0.002)
        opened = time.perf_counter() - begin
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        beat = asyncio.create_task(pulse())
        begin = time.perf_counter()
        view.jump_top()
        while not view.rows[0].text.endswith(" 0"):
            await pilot.pause(0.002)
        took = time.perf_counter() - begin
        beat.cancel()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    worker.stop()
    return opened, took, max(pauses), grown // 1024


async def main() -> None:
    keys_first()
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        alone = await bare(Path(one))
        opened, took, pause, grown = await drawn(Path(two))
    print(
        f"{MESSAGES:,} messages: opened in {opened:.2f} s, then to the first in {took:.2f} s,"
        f" {took / alone:.2f} times as long as reading alone; {grown} MiB more,"
        f" longest pause of the drawing {pause * 1000:.0f} ms"
    )


if __name__ == "__main__":
    asyncio.run(main())
