"""Keys while a reply streams at 200 words a second: from the key to the picture that shows it, in process."""

from __future__ import annotations

import asyncio
import statistics
import time

from letta_tui.seam.channel import Mailbox
from letta_tui.seam.intents import Intent
from letta_tui.seam.state import Row
from letta_tui.seam.updates import Splice, TextAppended, TranscriptChanged, Update
from letta_tui.ui.app import LettaTuiApp

KEYS = 60


class Port:
    """A worker that only has updates."""

    def __init__(self) -> None:
        self.mailbox = Mailbox()

    def send(self, intent: Intent) -> None:
        pass

    def drain(self) -> list[Update]:
        return self.mailbox.drain()

    def on_update(self, wake) -> None:  # type: ignore[no-untyped-def]
        self.mailbox.on_update(wake)


async def latencies(streaming: bool) -> list[float]:
    port = Port()
    port.mailbox.put(
        TranscriptChanged((Splice(0, 0, (Row("a", "assistant", "begin", live=True),)),), reset=True)
    )
    app = LettaTuiApp(port)
    found: list[float] = []

    async def talk() -> None:
        for number in range(100_000):
            port.mailbox.put(TextAppended("a", f"word{number:04} " + ("\n\n" if number % 60 == 59 else "")))
            await asyncio.sleep(0.005)

    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        talking = asyncio.create_task(talk()) if streaming else None
        await asyncio.sleep(1.0)
        for _ in range(KEYS):
            shown = asyncio.Event()
            start = time.perf_counter()
            app.chat.composer.draft.insert("x")
            app.chat.composer.draft.call_after_refresh(shown.set)
            await shown.wait()
            found.append((time.perf_counter() - start) * 1000)
            await asyncio.sleep(0.05)
        if talking is not None:
            talking.cancel()
    return found


async def main() -> None:
    middles = []
    for streaming in (False, True):
        found = sorted(await latencies(streaming))
        middles.append(statistics.median(found))
        name = "while 200 words/s stream" if streaming else "at rest"
        print(f"key to picture {name}: median {middles[-1]:.1f} ms, p95 {found[int(KEYS * 0.95)]:.1f} ms")
    print(f"streaming makes a key {middles[1] / middles[0]:.2f} times as slow")


if __name__ == "__main__":
    asyncio.run(main())
