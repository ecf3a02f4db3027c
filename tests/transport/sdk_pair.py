"""What the agent SDK does with the relay's two sockets, rule by rule (its ``cloud-status-transport``).

A reading of it in another language, to hold both the relay's stand-in and this program's own pair against.
The numbers in the comments are the order in which the SDK does things with a message.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import websockets
from websockets.exceptions import ConnectionClosed

from letta_tui.transport.relay import channel_url

MOST_KEYS = 1_000


class SdkPair:
    """``forwarded`` has what the SDK hands on, ``sent`` what it writes by itself, by channel."""

    def __init__(self, url: str, token: str, runtime: dict[str, Any], *, ping_seconds: float = 30.0) -> None:
        self._url, self._token, self._runtime, self._ping = url, token, runtime, ping_seconds
        self.forwarded: list[dict[str, Any]] = []
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.closed = asyncio.Event()
        self._sockets: dict[str, Any] = {}
        self._keys: dict[str, None] = {}
        self._last: int | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> SdkPair:
        for channel in ("control", "stream"):
            self._sockets[channel] = await websockets.connect(
                channel_url(self._url, channel),
                additional_headers={"Authorization": f"Bearer {self._token}"},
                max_size=None, max_queue=None, proxy=None,
            )  # fmt: skip
        self._tasks = [asyncio.create_task(self._read(channel)) for channel in self._sockets]
        self._tasks.append(asyncio.create_task(self._pings()))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        for socket in self._sockets.values():
            await socket.close()

    async def send(self, command: dict[str, Any]) -> None:
        await self._sockets["control"].send(json.dumps(command))

    async def _read(self, channel: str) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for text in self._sockets[channel]:
                message = json.loads(text)
                if await self._forwards(channel, message):
                    self.forwarded.append(message)
        self.closed.set()  # either socket closing closes both
        for socket in self._sockets.values():
            await socket.close()

    async def _forwards(self, channel: str, message: dict[str, Any]) -> bool:
        if isinstance(message.get("seq"), int):  # 1. the receipt, where it came
            await self._write(channel, {"type": "ack", "seq": message["seq"]})
        if channel == "control" and message["type"] == "stream_delta":  # 2. before its key is looked at
            return False
        key = message.get("idempotency_key")
        if isinstance(key, str):  # 3.
            if key in self._keys:
                return False
            self._keys[key] = None
            if len(self._keys) > MOST_KEYS:
                del self._keys[next(iter(self._keys))]
        number = message.get("event_seq")
        if isinstance(number, int):  # 4. a gap is synced at once, with approval recovery
            if self._last is not None and number > self._last + 1:
                sync = {"recover_approvals": True, "force_device_status": True}
                await self._write("control", {"type": "sync", "runtime": self._runtime, **sync})
            self._last = number if self._last is None else max(self._last, number)
        return True

    async def _pings(self) -> None:
        while True:
            await asyncio.sleep(self._ping)
            for channel in self._sockets:
                await self._write(channel, {"type": "ping"})

    async def _write(self, channel: str, command: dict[str, Any]) -> None:
        self.sent.append((channel, command))
        with contextlib.suppress(ConnectionClosed):  # receipts, pings and syncs are sent as well as can be
            await self._sockets[channel].send(json.dumps(command))
