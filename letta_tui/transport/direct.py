"""One WebSocket to one server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from letta_tui import __version__
from letta_tui.protocol import Frame, parse
from letta_tui.transport.connection import ConnectionLost
from letta_tui.transport.endpoint import is_loopback
from letta_tui.transport.failures import connect_failure, lost_words
from letta_tui.transport.tls import tls_context

# The library's own words go where this program's go, never to a terminal somebody is looking at.
_LOG = logging.getLogger("letta_tui.transport.socket")
_LOG.addHandler(logging.NullHandler())

# A history page or a tool result can pass the library's 1 MiB; 64 MiB is beyond anything a person reads.
LARGEST_MESSAGE = 64 * 1024 * 1024
# Messages that may wait between socket and reader before reading stops. The server drops a client that
# does not read 512 frames, so this is large, and the reader must do no more than sort frames.
_WAITING_MESSAGES = (4096, 1024)
_OPEN_SECONDS = 10.0
_CLOSE_SECONDS = 2.0  # for the goodbye; then the socket is cut
_WRITE_SECONDS = 20.0  # a peer that takes nothing for so long is gone
_KEEPALIVE_SECONDS = 20.0
_PONG_SECONDS = 15.0


class _Socket(ClientConnection):
    """Counts what is heard, since a pong cannot overtake a large message that is under way."""

    heard = 0

    def data_received(self, data: bytes) -> None:
        self.heard += len(data)
        super().data_received(data)


class _Connect(connect):
    """Follows no redirect: the token would go to whoever the answer names."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class DirectConnection:
    """A connection over one socket; see ``Connection``.

    It pings by itself and gives the socket up when two pings in a row stay unanswered and nothing else
    was heard meanwhile. One would not do: a process that was stopped finds its timers expired before it
    has read the pong that waits for it.
    """

    def __init__(self, socket: _Socket, connection_id: str, *, keepalive: float = _KEEPALIVE_SECONDS) -> None:
        self._socket = socket
        self._connection_id = connection_id
        self._arrivals = 0
        self._lost: str | None = None
        self._keeper = asyncio.create_task(self._keep_alive(keepalive), name=f"keep-alive {connection_id}")

    @property
    def connection_id(self) -> str:
        return self._connection_id

    async def send(self, command: Mapping[str, Any]) -> None:
        await self.send_text(json.dumps(command, ensure_ascii=False, separators=(",", ":")))

    async def send_text(self, text: str) -> None:
        if self._lost is not None:
            raise ConnectionLost(self._lost)
        try:
            async with asyncio.timeout(_WRITE_SECONDS):
                await self._socket.send(text)
        except TimeoutError:
            self._give_up("The server stopped taking what was sent.")
            raise ConnectionLost(self._lost or "") from None
        except (ConnectionClosed, OSError) as error:
            raise ConnectionLost(self._reason(error)) from None

    async def receive(self) -> Frame:
        try:
            data = await self._socket.recv()
        except (ConnectionClosed, OSError) as error:
            raise ConnectionLost(self._reason(error)) from None
        self._arrivals += 1
        return parse(data, self._arrivals)

    async def probe(self, timeout: float) -> bool:
        try:
            async with asyncio.timeout(timeout):
                pong = await self._socket.ping()
                await pong
        except (TimeoutError, WebSocketException, OSError):
            return False
        return True

    async def close(self) -> None:
        self._lost = self._lost or "The connection was closed here."
        self._keeper.cancel()
        try:
            async with asyncio.timeout(_CLOSE_SECONDS + 1.0):
                await self._socket.close()
        except (TimeoutError, WebSocketException, OSError):
            pass
        finally:
            self._cut()

    def _reason(self, error: BaseException) -> str:
        if self._lost is None:
            self._lost = lost_words(error)
        self._keeper.cancel()
        return self._lost

    def _give_up(self, reason: str) -> None:
        self._lost = self._lost or reason
        self._keeper.cancel()
        self._cut()

    def _cut(self) -> None:
        with contextlib.suppress(AttributeError):  # no transport yet
            self._socket.transport.abort()

    async def _keep_alive(self, interval: float) -> None:
        pong_seconds = min(_PONG_SECONDS, interval)
        while True:
            await asyncio.sleep(interval)
            if await self.probe(pong_seconds):
                continue
            heard = self._socket.heard
            if await self.probe(pong_seconds) or self._socket.heard > heard:
                continue
            self._lost = self._lost or "The server no longer answers."
            self._cut()
            return


async def open_socket(
    url: str,
    token: str | None,
    *,
    timeout: float = _OPEN_SECONDS,
    ca_file: Path | None = None,
    keepalive: float = _KEEPALIVE_SECONDS,
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
) -> DirectConnection:
    """Connect, or raise ``Refused`` with one clear sentence. No ``Origin`` is sent: it would be refused."""
    loopback = is_loopback(urlsplit(url).hostname or "")
    options: dict[str, Any] = {}
    if url.startswith("wss:"):
        options["ssl"] = await asyncio.to_thread(tls_context, ca_file)
    if loopback:
        options["proxy"] = None
    try:
        socket = await _Connect(
            url,
            origin=None,
            additional_headers={} if token is None else {"Authorization": f"Bearer {token}"},
            user_agent_header=f"letta-tui/{__version__}",
            compression=None if loopback else "deflate",
            open_timeout=timeout,
            ping_interval=None,
            close_timeout=_CLOSE_SECONDS,
            max_size=LARGEST_MESSAGE,
            max_queue=_WAITING_MESSAGES,
            create_connection=_Socket,
            logger=_LOG,
            **options,
        )
    except (WebSocketException, OSError, EOFError, ValueError, ImportError) as error:
        raise connect_failure(error, url, had_token=token is not None) from None
    assert isinstance(socket, _Socket)
    return DirectConnection(socket, new_id(), keepalive=keepalive)
