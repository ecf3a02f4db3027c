"""A small App Server on loopback for what the real one cannot be made to do."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

Answerer = Callable[[ServerConnection, dict[str, Any]], Awaitable[None]]


async def answer_plainly(socket: ServerConnection, command: dict[str, Any]) -> None:
    """Answer everything with success, as the type of the command calls for."""
    kind, request_id = command.get("type"), command.get("request_id")
    if request_id is None:
        return
    if kind == "input":
        answer = {"type": "input_accepted", "accepted": True, "disposition": "started"}
    else:
        answer = {"type": f"{kind}_response", "success": True, "protocol_version": 1}
    await socket.send(json.dumps({**answer, "request_id": request_id}))


class FakeServer:
    """``async with FakeServer() as server``: it listens at ``server.url`` and notes what it ``heard``."""

    def __init__(
        self,
        answer: Answerer = answer_plainly,
        *,
        status: int | None = None,
        headers: dict[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._answer = answer
        self._status = status
        self._headers = headers or {}
        self._tls = tls
        self.heard: list[dict[str, Any]] = []
        self.requests: list[Request] = []
        self.sockets: list[ServerConnection] = []
        self.joined = asyncio.Event()
        self.url = ""

    async def __aenter__(self) -> FakeServer:
        self._server = await serve(
            self._socket, "127.0.0.1", 0, process_request=self._admit, compression=None, max_size=None,
            ping_interval=None, ssl=self._tls,
        )  # fmt: skip
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"{'wss' if self._tls else 'ws'}://127.0.0.1:{port}/ws"
        return self

    async def __aexit__(self, *_: object) -> None:
        for socket in self.sockets:
            socket.transport.abort()
        self._server.close()
        await self._server.wait_closed()

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        self.requests.append(request)
        if self._status is None:
            if request.path.startswith("/app-server-info"):
                return connection.respond(404, "no\n")
            return None
        response = connection.respond(self._status, "no\n")
        for name, value in self._headers.items():
            response.headers[name] = value
        return response

    async def _socket(self, socket: ServerConnection) -> None:
        self.sockets.append(socket)
        self.joined.set()
        with contextlib.suppress(ConnectionClosed):
            async for text in socket:
                command = json.loads(text)
                self.heard.append(command)
                await self._answer(socket, command)

    async def say(self, frame: dict[str, Any] | str) -> None:
        """Send a frame to whoever is connected."""
        await self.joined.wait()
        text = frame if isinstance(frame, str) else json.dumps(frame)
        for socket in self.sockets:
            await socket.send(text)
