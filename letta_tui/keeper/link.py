"""The keeper's own connection to the server: there as long as the server is, subscribed to what is held.

A hold is a ``sync`` that recovers nothing: it subscribes and changes nothing. When the connection drops,
another is made at once, because a turn with no subscriber left is cancelled.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable

from letta_tui.keeper.watch import Place, Watch
from letta_tui.protocol import Frame, Runtime, commands
from letta_tui.transport.backoff import Backoff
from letta_tui.transport.client import Client
from letta_tui.transport.connect import open_connection
from letta_tui.transport.connection import TransportError
from letta_tui.transport.endpoint import Endpoint

_ANSWER_SECONDS = 15.0
_RETRY_SECONDS = 0.1
_LASTED_SECONDS = 1.0


class Link:
    """``on_frame`` sees every event; ``on_lost`` hears why there is no connection, and says whether to try
    again (the server may be gone)."""

    def __init__(
        self,
        watch: Watch,
        on_frame: Callable[[Frame], None],
        on_lost: Callable[[str], bool],
        on_connected: Callable[[], None],
    ) -> None:
        self._watch = watch
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._on_connected = on_connected
        self._client: Client | None = None
        self._connected = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.wanted: set[Place] = set()
        self.held: set[Place] = set()  # confirmed by the server on the present connection
        self.words = ""  # why there is no connection, if there is none

    @property
    def connected(self) -> bool:
        return self._client is not None and self._client.lost is None

    def start(self, endpoint: Endpoint) -> None:
        """Connect, and stay connected until ``stop`` or until ``on_lost`` says no."""
        assert self._task is None or self._task.done()
        self._task = asyncio.create_task(self._stay(endpoint), name="link")

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def hold(self, place: Place, timeout: float = _ANSWER_SECONDS) -> bool:
        """Subscribe; ``True`` once the server has answered, on a connection that is still there."""
        self.wanted.add(place)
        try:
            async with asyncio.timeout(timeout):
                while place not in self.held:
                    await self._connected.wait()
                    client = self._client
                    if client is None:
                        continue
                    try:
                        if not await self._subscribe(client, place):
                            return False
                    except TransportError:
                        # Lost under way: the next connection subscribes, or the time runs out.
                        await asyncio.sleep(_RETRY_SECONDS)
        except TimeoutError:
            return False
        return True

    async def wait_connected(self, timeout: float | None) -> bool:
        """``False`` when there is no connection after ``timeout`` seconds; ``None``: for ever."""
        try:
            async with asyncio.timeout(timeout):
                await self._connected.wait()
        except TimeoutError:
            return False
        return True

    async def _subscribe(self, client: Client, place: Place) -> bool:
        runtime = Runtime(place[0], place[1])
        answer = await client.request(commands.sync(runtime, force_device_status=True), _ANSWER_SECONDS)
        if answer.answer is None or not answer.answer.success:
            return False
        if client is self._client:
            self.held.add(place)
        return True

    async def _stay(self, endpoint: Endpoint) -> None:
        backoff = Backoff(random.random, first=0.2, longest=15.0, stable=_LASTED_SECONDS)
        while True:
            begun = time.monotonic()
            try:
                await self._once(endpoint, backoff)
            except TransportError as error:
                self.words = error.words
            if not self._on_lost(self.words):
                return
            wait = backoff.next(time.monotonic())
            if time.monotonic() - begun > _LASTED_SECONDS and backoff.failures == 1:
                wait = 0.0  # it was there until now: every moment without a subscriber may cost a turn
            await asyncio.sleep(wait)

    async def _once(self, endpoint: Endpoint, backoff: Backoff) -> None:
        client = Client(await open_connection(endpoint))
        backoff.opened(time.monotonic())
        try:
            self._client = client
            self.held.clear()
            self.words = ""
            self._connected.set()
            self._on_connected()
            syncing = asyncio.create_task(self._subscribe_all(client))
            try:
                async for frame in client.events():
                    self._on_frame(frame)
            finally:
                syncing.cancel()
        finally:
            self._client = None
            self._connected.clear()
            self.held.clear()
            await client.close()

    async def _subscribe_all(self, client: Client) -> None:
        for place in sorted(self.wanted | set(self._watch.busy)):
            try:
                await self._subscribe(client, place)
            except TransportError:
                return
