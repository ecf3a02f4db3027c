"""A stretch of bad network before a server: a TCP relay that stalls, half-opens, resets and loses tails."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

Mood = Literal["well", "stall", "deaf", "mute", "gone"]


class ChaosProxy:
    """Listens at ``port``. What its ``mood`` is now holds for every connection, old and new.

    "well": everything passes, after ``delay`` seconds. "stall": nothing passes, and it is kept for later.
    "deaf": a half-open line: everything is swallowed, and nobody is told; "mute": only what the server says.
    "gone": nobody can connect.
    """

    def __init__(self, target: int, host: str = "127.0.0.1") -> None:
        self._host, self._target = host, target
        self._pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._tail: int | None = None
        self.mood: Mood = "well"
        self.delay = 0.0
        self.port = 0
        self.accepted = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, self._host, 0)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        self._server.close()
        self.become("well")
        self.reset()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def become(self, mood: Mood) -> None:
        self.mood = mood
        if mood == "stall":
            self._flowing.clear()
        else:
            self._flowing.set()

    def reset(self) -> None:
        """Both ends of every connection are told that it broke (RST)."""
        for pair in tuple(self._pairs):
            for writer in pair:
                writer.transport.abort()

    def drop_tail(self, after: int) -> None:
        """``after`` more bytes of the server come through; the rest is lost, and the line with it."""
        self._tail = after

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        me = asyncio.current_task()
        assert me is not None
        self._serving.add(me)
        me.add_done_callback(self._serving.discard)
        if self.mood == "gone":
            writer.transport.abort()
            return
        self.accepted += 1
        try:
            theirs, onward = await asyncio.open_connection(self._host, self._target)
        except OSError:
            writer.transport.abort()
            return
        pair = (writer, onward)
        self._pairs.add(pair)
        try:
            await asyncio.gather(self._pump(reader, onward), self._pump(theirs, writer, from_server=True))
        finally:
            self._pairs.discard(pair)
            for one in pair:
                one.transport.abort()

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, from_server: bool = False
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                await self._flowing.wait()
                if self.mood == "deaf" or (self.mood == "mute" and from_server):
                    continue
                if self.delay:
                    await asyncio.sleep(self.delay)
                if from_server and self._tail is not None:
                    data, self._tail = data[: self._tail], max(0, self._tail - len(data))
                sink.write(data)
                await sink.drain()
                if from_server and self._tail == 0:
                    self._tail = None
                    sink.transport.abort()
                    return
        sink.close()


@asynccontextmanager
async def bad_network(port: int) -> AsyncIterator[ChaosProxy]:
    """A relay to ``port`` of this machine."""
    proxy = ChaosProxy(port)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.close()
