"""Two sockets as one connection: the hosted relay, and direct servers that split their channels.

Both sockets carry the same feed. Commands go out on the control socket; ``stream_delta`` is taken from the
stream socket alone, everything else from whichever brings it first. A delivery that bears a ``seq`` is
acknowledged on the socket that brought it before anything else is done with it, a repeated one again.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from letta_tui.protocol import Frame, Runtime, commands, names
from letta_tui.transport.connection import ConnectionLost, Refused
from letta_tui.transport.deliveries import Deliveries
from letta_tui.transport.direct import DirectConnection, open_socket
from letta_tui.transport.order import Reorder

Channel = Literal["control", "stream"]

_PING_SECONDS = 30.0
_PATIENCE_SECONDS = 0.5  # for an event that was overtaken


class RelayConnection:
    """A connection over a pair of sockets; see ``Connection``. Either socket closing closes the pair."""

    def __init__(
        self,
        control: DirectConnection,
        stream: DirectConnection,
        connection_id: str,
        *,
        ping_seconds: float = _PING_SECONDS,
        patience: float = _PATIENCE_SECONDS,
    ) -> None:
        self._sockets: dict[Channel, DirectConnection] = {"control": control, "stream": stream}
        self._connection_id = connection_id
        self._come = Deliveries()
        self._order: Reorder[Frame] = Reorder(wait=patience)
        self._timer: asyncio.TimerHandle | None = None
        self._ready: deque[Frame] = deque()
        self._stirred = asyncio.Event()
        self._lost: ConnectionLost | None = None
        self._arrivals = 0
        self._tasks = [
            asyncio.create_task(self._read("control"), name=f"relay control {connection_id}"),
            asyncio.create_task(self._read("stream"), name=f"relay stream {connection_id}"),
            asyncio.create_task(self._ping(ping_seconds), name=f"relay ping {connection_id}"),
        ]
        self._closing: asyncio.Task[None] | None = None

    @property
    def connection_id(self) -> str:
        return self._connection_id

    async def send(self, command: Mapping[str, Any]) -> None:
        if self._lost is not None:
            raise ConnectionLost(self._lost.reason)
        try:
            await self._sockets["control"].send(command)
        except ConnectionLost as lost:
            self._fail(lost)
            raise

    async def receive(self) -> Frame:
        while not self._ready:
            if self._lost is not None:
                raise ConnectionLost(self._lost.reason)
            self._stirred.clear()
            await self._stirred.wait()
        return self._ready.popleft()

    async def probe(self, timeout: float) -> bool:
        if self._lost is not None:
            return False
        answers = await asyncio.gather(*(socket.probe(timeout) for socket in self._sockets.values()))
        return all(answers)

    async def close(self) -> None:
        self._fail(ConnectionLost("The connection was closed here."))
        if self._closing is not None:
            await asyncio.shield(self._closing)

    # What arrives

    async def _read(self, channel: Channel) -> None:
        socket = self._sockets[channel]
        try:
            while True:
                frame = await socket.receive()
                seq = frame.raw.get("seq")
                if isinstance(seq, int | float) and not isinstance(seq, bool):
                    await socket.send({"type": names.RELAY_ACK, "seq": seq})
                self._take(channel, frame)
        except ConnectionLost as lost:
            self._fail(lost)

    def _take(self, channel: Channel, frame: Frame) -> None:
        seq = frame.raw.get("seq")
        repeated = numbered = False
        if isinstance(seq, int) and not isinstance(seq, bool):
            repeated, numbered = self._come.number(channel, seq, frame.event_seq), True
        if frame.type == names.RELAY_PONG:
            return
        if channel == "control" and frame.type == names.STREAM_DELTA:
            if frame.event_seq is not None:
                self._order.expect(frame.event_seq)
            return
        if self._has_come(channel, frame, repeated, numbered):
            return
        now = asyncio.get_running_loop().time()
        if frame.event_seq is None:
            # An answer says that what happened before it has been told.
            self._pass_on(self._order.follow(frame, now))
        else:
            self._pass_on(self._order.push(frame.event_seq, frame, now))
        self._set_timer()

    def _has_come(self, channel: Channel, frame: Frame, repeated: bool, numbered: bool) -> bool:
        key = frame.idempotency_key
        if key is None and frame.event_seq is None:  # an answer, or a call of a tool
            return frame.request_id is not None and self._come.answer(f"{frame.type} {frame.request_id}")
        one_socket = frame.type == names.STREAM_DELTA
        return repeated or self._come.event(channel, key, one_socket=one_socket, numbered=numbered)

    def _set_timer(self) -> None:
        """A timer that fires too early is set again then: most of what is held back is soon released."""
        if self._timer is None and self._lost is None:
            deadline = self._order.deadline
            if deadline is not None:
                self._timer = asyncio.get_running_loop().call_at(deadline, self._overdue)

    def _overdue(self) -> None:
        self._timer = None
        self._pass_on(self._order.overdue(asyncio.get_running_loop().time() + 0.001))
        self._set_timer()

    def _pass_on(self, frames: list[Frame]) -> None:
        for frame in frames:
            self._arrivals += 1
            self._ready.append(replace(frame, arrival=self._arrivals))
        if frames:
            self._stirred.set()

    # Staying and going

    async def _ping(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            for socket in self._sockets.values():
                with contextlib.suppress(ConnectionLost):  # its reader will say so
                    await socket.send(commands.relay_ping())

    def _fail(self, lost: ConnectionLost) -> None:
        if self._lost is not None:
            return
        self._pass_on(self._order.drain())
        self._lost = lost
        if self._timer is not None:
            self._timer.cancel()
        self._stirred.set()
        self._closing = asyncio.create_task(self._close_all(), name=f"relay close {self._connection_id}")

    async def _close_all(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(socket.close() for socket in self._sockets.values()), return_exceptions=True)


async def open_pair(
    url: str,
    token: str | None,
    *,
    timeout: float = 10.0,
    ca_file: Path | None = None,
    ping_seconds: float = _PING_SECONDS,
    patience: float = _PATIENCE_SECONDS,
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
) -> RelayConnection:
    """Open both sockets within ``timeout`` seconds, or neither. Raises ``Refused``.

    Where one is refused the other's answer is waited for: a socket that is cut with a refusal unread
    is a TCP reset, and that ends a server of 0.34.12, which expects no error on a socket it refused.

    ``patience`` is how long an event waits, at first, for those it has overtaken on the other socket.
    """

    def one(channel: Channel) -> asyncio.Task[DirectConnection]:
        opening = open_socket(channel_url(url, channel), token, timeout=timeout, ca_file=ca_file)
        return asyncio.create_task(opening, name=f"open {channel}")

    tasks = [one("control"), one("stream")]
    try:
        control, stream = await asyncio.gather(*tasks)
    except BaseException as error:
        if not isinstance(error, Refused):
            for task in tasks:
                task.cancel()
        for opened in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(opened, DirectConnection):
                await opened.close()
        raise
    return RelayConnection(control, stream, new_id(), ping_seconds=ping_seconds, patience=patience)


def relay_url(api_base: str, connection_id: str, scope: Runtime) -> str:
    """The relay's address for a machine's present connection and one conversation of one agent."""
    if scope.agent_id is None:
        raise Refused("hosted", "The hosted relay needs an agent: this conversation has none.")
    base = urlsplit(api_base)
    query = urlencode({"agentId": scope.agent_id, "conversationId": scope.conversation_id})
    return base._replace(
        scheme="wss" if base.scheme == "https" else "ws",
        path=f"{base.path}/v1/environments/{quote(connection_id, safe='')}/status/ws",
        query=query,
    ).geturl()


def channel_url(url: str, channel: Channel) -> str:
    parts = urlsplit(url)
    query = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] != "channel"]
    return parts._replace(query=urlencode([*query, ("channel", channel)])).geturl()
