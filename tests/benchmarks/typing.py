"""Keys while a reply streams: from the key to the picture that shows it, in process.

``python -m tests.benchmarks.typing``. The reply comes at 200 words a second from a thread of its own, as the
worker's does. A key counts as shown when its picture has been made into what the terminal is sent.
"""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from typing import Any

from textual.events import Key

from letta_tui.commands.chat import keys_first
from letta_tui.seam.channel import Mailbox
from letta_tui.seam.intents import Intent
from letta_tui.seam.state import Row
from letta_tui.seam.updates import Splice, TextAppended, TranscriptChanged, Update
from letta_tui.ui.app import LettaTuiApp

KEYS = 120
EARLIER = tuple(
    Row(f"r{n}", "assistant" if n % 2 else "user", "some words of an earlier turn " * 6) for n in range(40)
)


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


def talk(port: Port, over: threading.Event) -> None:
    number = 0
    while not over.wait(0.005):
        number += 1
        port.mailbox.put(TextAppended("a", f"word{number:04} " + ("\n\n" if number % 60 == 59 else "")))


class Screen:
    """What would be written to the terminal."""

    def __init__(self, app: LettaTuiApp) -> None:
        self.app = app
        self.bytes = 0
        self.shown = asyncio.Event()
        self.wanted = 0  # characters the field has to have
        app._display = self.display  # type: ignore[method-assign]

    def display(self, screen: object, picture: Any) -> None:
        if picture is None or not hasattr(picture, "render_segments"):
            return
        self.bytes += len(picture.render_segments(self.app.console))
        field = self.app.chat.composer.draft
        rows = {span[0] for span in getattr(picture, "spans", ())} or set(field.region.line_range)
        if len(field.text) >= self.wanted and rows & set(field.region.line_range):
            self.shown.set()


async def latencies(streaming: bool) -> tuple[list[float], float, float]:
    """(milliseconds of each key, CPU of the process per second, KiB written per second)."""
    port, over = Port(), threading.Event()
    rows = (*EARLIER, Row("a", "assistant", "begin", live=True))
    port.mailbox.put(TranscriptChanged((Splice(0, 0, rows),), reset=True))
    app = LettaTuiApp(port)
    found: list[float] = []
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        screen = Screen(app)
        talker = threading.Thread(target=talk, args=(port, over), daemon=True)
        if streaming:
            talker.start()
        await asyncio.sleep(1.0)
        begun, used, written = time.perf_counter(), time.process_time(), screen.bytes
        for number in range(KEYS):
            screen.shown.clear()
            screen.wanted = len(app.chat.composer.draft.text) + 1
            start = time.perf_counter()
            key = Key("x", "x")
            app.keys.read(key.time)
            app.post_message(key)
            await screen.shown.wait()
            found.append((time.perf_counter() - start) * 1000)
            await asyncio.sleep(0.04 + 0.001 * (number % 17))
        took = time.perf_counter() - begun
        over.set()
        cost = (time.process_time() - used) / took, (screen.bytes - written) / 1024 / took
    return found, *cost


async def main() -> None:
    keys_first()
    middles, slow = [], []
    for streaming in (False, True):
        found, cpu, kib = await latencies(streaming)
        found.sort()
        middles.append(statistics.median(found))
        slow.append(found[int(KEYS * 0.95)])
        name = "while 200 words/s stream" if streaming else "at rest"
        print(
            f"key to picture {name}: median {middles[-1]:.1f} ms, p95 {slow[-1]:.1f} ms,"
            f" worst {found[-1]:.1f} ms ({cpu * 100:.0f} % CPU, {kib:.0f} KiB/s to the terminal)"
        )
    print(
        f"streaming makes a key {middles[1] / middles[0]:.2f} times as slow in the middle,"
        f" {slow[1] / slow[0]:.2f} times at p95"
    )


if __name__ == "__main__":
    asyncio.run(main())
