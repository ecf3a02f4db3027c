"""How the transcript view fares beside Textual's Markdown widget and an empty app, in one run.

Run: ``python -m tests.benchmarks.transcript``. It prints CPU seconds and ratios and asserts nothing.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Awaitable, Callable

from textual.app import App, ComposeResult
from textual.widgets import Markdown, Static

from letta_tui.seam.state import Row
from letta_tui.seam.updates import Splice, TextAppended, TranscriptChanged
from tests.ui_transcript.gallery import MARKDOWN, Gallery

SIZE = (120, 40)
SIXTY_FOUR = 64


def pieces(text: str) -> list[str]:
    return [text[at : at + SIXTY_FOUR] for at in range(0, len(text), SIXTY_FOUR)]


def texts(size: int) -> dict[str, str]:
    def fill(part: str) -> str:
        return (part * (size // len(part) + 1))[:size]

    return {
        "mixed": fill(MARKDOWN + "\n\n"),
        "one list": fill("- an item with **some** words in it\n"),
        "one table": "| a | b | c |\n|---|---|---|\n" + fill("| one | two words | `three` |\n"),
        "one fence": "```python\n" + fill("value = compute(other, 17)  # why\n"),
        "one line": fill("words and more words "),
        "one word": fill("x"),
    }


async def measured(work: Callable[[], Awaitable[None]]) -> float:
    start = time.process_time()
    await work()
    return time.process_time() - start


async def stream(text: str, pause_every: int = 32) -> float:
    app = Gallery(TranscriptChanged((Splice(0, 0, (Row("a", "assistant", live=True),)),), reset=True))
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()

        async def work() -> None:
            for number, piece in enumerate(pieces(text)):
                app.view.apply(TextAppended("a", piece))
                if number % pause_every == 0:
                    await asyncio.sleep(0)
            await asyncio.sleep(0.05)
            await pilot.pause()

        return await measured(work)


class MarkdownApp(App[None]):
    def compose(self) -> ComposeResult:
        yield Markdown()


async def stream_widget(text: str) -> float:
    app = MarkdownApp()
    async with app.run_test(size=SIZE) as pilot:
        widget = app.query_one(Markdown)

        async def work() -> None:
            for piece in pieces(text):
                await widget.append(piece)
            await pilot.pause()

        return await measured(work)


class EmptyApp(App[None]):
    def compose(self) -> ComposeResult:
        yield Static("")


async def start(app: App[None]) -> float:
    begin = time.process_time()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        return time.process_time() - begin


async def reset(count: int) -> tuple[float, float]:
    rows = tuple(
        Row(f"k{n}", "assistant" if n % 2 else "user", MARKDOWN if n % 2 else "hello") for n in range(count)
    )
    app = Gallery()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        begin = time.perf_counter()
        app.view.apply(TranscriptChanged((Splice(0, 0, rows),), reset=True))
        app.view.flush()
        opened = time.perf_counter() - begin
        begin = time.process_time()
        for number in range(1000):
            row = Row(f"n{number}", "user", "one more")
            app.view.apply(TranscriptChanged((Splice(count + number, 0, (row,)),)))
        return opened, (time.process_time() - begin) / 1000


async def main() -> None:
    await start(EmptyApp())
    empty = await start(EmptyApp())
    print(f"empty app: {empty:.3f} s CPU; everything below also as a multiple of it")
    for name, text in texts(200 * 1024).items():
        ours = await stream(text)
        print(f"200 KiB, {name}: {ours:.2f} s CPU ({ours / empty:.1f} empty apps)")
    small = texts(2 * 1024)
    for name in ("mixed", "one list", "one fence"):
        ours, theirs = await stream(small[name]), await stream_widget(small[name])
        print(
            f"2 KiB, {name}: ours {ours:.3f} s, Markdown widget {theirs:.3f} s, ratio 1 : {theirs / ours:.0f}"
        )
    for count in (10_000, 50_000):
        opened, append = await reset(count)
        print(f"{count:,} rows: reset and paint {opened * 1000:.0f} ms, append {append * 1e6:.0f} µs each")
    print(
        f"peak memory of this whole run: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB"
    )


if __name__ == "__main__":
    asyncio.run(main())
