"""Requests and events over one connection.

A task of its own reads all the time and only sorts frames, whatever the rest of the program is doing: a
server drops a client that does not read. Answers go to whoever asked, matched by request id and type;
late, repeated and foreign ones are dropped and counted. Events are passed on in order, each once.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from letta_tui.protocol import Frame, commands, names
from letta_tui.transport.connection import Connection, ConnectionLost, TransportError
from letta_tui.transport.plane import Gap, Seen, Sequence

DEFAULT_TIMEOUT = 30.0  # seconds
_MOST_WAITING = 200_000  # events a caller may leave untaken
_MOST_UNKNOWN = 100  # types counted by name

log = logging.getLogger(__name__)


class NoAnswer(TransportError):
    """No answer in time. The command may have been carried out."""

    def __init__(self, command: str, seconds: float) -> None:
        super().__init__(f"The server did not answer {command} within {seconds:g} seconds.")
        self.command = command


class SaidNo(TransportError):
    """The server answered a command with ``success: false``; the words are its own."""

    def __init__(self, command: str, answer: Frame) -> None:
        error = answer.answer.error if answer.answer else ""
        super().__init__(error or f"The server refused {command} without giving a reason.")
        self.command = command
        self.answer = answer


@dataclass(slots=True)
class Counts:
    """What a connection has seen, for diagnosis."""

    events: int = 0
    answers: int = 0
    stray_answers: int = 0  # late, repeated, or somebody else's
    duplicates: int = 0
    gaps: int = 0
    malformed: int = 0
    unknown: Counter[str] = field(default_factory=Counter)  # by type; they are passed on all the same


@dataclass(slots=True)
class _Waiter:
    answer_type: str
    future: asyncio.Future[Frame]


class Client:
    """Use it inside a running event loop; it starts to read at once.

    ``on_gap`` is called, from the reading task, for each jump in ``event_seq``; see ``gaps.GapSync`` for
    what is done about it. ``on_frame`` sees every frame before it is sorted, duplicates included.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
        on_gap: Callable[[Gap], None] | None = None,
        on_frame: Callable[[Frame], None] | None = None,
    ) -> None:
        self.connection = connection
        self.counts = Counts()
        self.sequence = Sequence()
        self.on_gap = on_gap
        self.on_frame = on_frame
        self._new_id = new_id
        self._seen = Seen()
        self._calls_seen = Seen()
        self._waiters: dict[str, _Waiter] = {}
        self._events: deque[Frame] = deque()
        self._stirred = asyncio.Event()
        self._lost: ConnectionLost | None = None
        self._gone = asyncio.Event()
        self._reader = asyncio.create_task(self._read(), name=f"reader {connection.connection_id}")

    @property
    def connection_id(self) -> str:
        return self.connection.connection_id

    @property
    def lost(self) -> ConnectionLost | None:
        """Why there is no connection any more; None while there is one."""
        return self._lost

    async def wait_lost(self) -> ConnectionLost:
        await self._gone.wait()
        assert self._lost is not None
        return self._lost

    # Commands

    async def send(self, command: Mapping[str, Any]) -> None:
        """Write a command and expect nothing. Raises ``ConnectionLost``."""
        if self._lost is not None:
            raise ConnectionLost(self._lost.reason)
        try:
            await self.connection.send(command)
        except ConnectionLost as lost:
            self._fail(lost)
            raise

    async def request(
        self,
        command: Mapping[str, Any],
        timeout: float = DEFAULT_TIMEOUT,
        *,
        on_written: Callable[[], None] | None = None,
    ) -> Frame:
        """Write a command and wait for its answer, whatever it says. Times are seconds.

        Raises ``NoAnswer`` or ``ConnectionLost``. A ``request_id`` is added unless the command has one.
        ``on_written`` is called once the connection took the command, before its answer is waited for.
        """
        kind = str(command.get("type", ""))
        expected = names.answer_type(kind)
        if expected is None:
            raise ValueError(f"{kind} has no answer")
        request_id = command.get("request_id")
        if not isinstance(request_id, str) or not request_id:
            request_id = self._new_id()
            command = {**command, "request_id": request_id}
        if request_id in self._waiters:
            raise ValueError(f"request id {request_id} is in use")
        future: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._waiters[request_id] = _Waiter(expected, future)
        try:
            async with asyncio.timeout(timeout):
                await self.send(command)
                if on_written is not None:
                    on_written()
                return await future
        except TimeoutError:
            raise NoAnswer(kind, timeout) from None
        finally:
            self._waiters.pop(request_id, None)
            if future.done() and not future.cancelled():
                future.exception()  # looked at, so that nobody warns about it

    async def ask(self, command: Mapping[str, Any], timeout: float = DEFAULT_TIMEOUT) -> Frame:
        """Like ``request``, but an answer that says no is raised as ``SaidNo``."""
        frame = await self.request(command, timeout)
        if frame.answer is None or not frame.answer.success:
            raise SaidNo(str(command.get("type", "")), frame)
        return frame

    async def fence(self, timeout: float = DEFAULT_TIMEOUT) -> Frame:
        """Have something answered that was asked after everything written so far."""
        return await self.request(commands.app_server_info(), timeout)

    async def probe(self, timeout: float) -> bool:
        return self._lost is None and await self.connection.probe(timeout)

    # Events

    def take_before(self, arrival: int) -> list[Frame]:
        """Take the waiting events that arrived before a frame, such as an answer, without waiting."""
        taken: list[Frame] = []
        while self._events and self._events[0].arrival < arrival:
            taken.append(self._events.popleft())
        return taken

    async def next_event(self) -> Frame:
        """The next event. Raises ``ConnectionLost`` after the last one."""
        while not self._events:
            if self._lost is not None:
                raise ConnectionLost(self._lost.reason)
            self._stirred.clear()
            await self._stirred.wait()
        return self._events.popleft()

    async def events(self) -> AsyncIterator[Frame]:
        """Every event in order; ends by raising ``ConnectionLost``."""
        while True:
            yield await self.next_event()

    async def close(self) -> None:
        """Leave; every waiter fails at once. Returns within a few seconds; may be called again."""
        self._fail(ConnectionLost("The connection was closed here."))
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        await self.connection.close()

    # The reading task

    async def _read(self) -> None:
        try:
            while True:
                self._sort(await self.connection.receive())
                if len(self._events) > _MOST_WAITING:
                    raise ConnectionLost("More arrived than this program could take in.")
        except ConnectionLost as lost:
            self._fail(lost)
        except asyncio.CancelledError:
            self._fail(ConnectionLost("The connection was closed here."))
            raise
        except Exception as error:  # a fault here must not leave waiters hanging
            self._fail(ConnectionLost(f"Reading failed ({type(error).__name__})."))
            raise
        finally:
            if self._lost is not None and not self._reader.cancelling():
                await self.connection.close()

    def _sort(self, frame: Frame) -> None:
        if self.on_frame is not None:
            self.on_frame(frame)
        if frame.is_answer:
            self._answer(frame)
            return
        if frame.type == names.MALFORMED:
            self.counts.malformed += 1
            return
        if self._is_duplicate(frame):
            self.counts.duplicates += 1
            return
        if frame.event_seq is not None:
            gap = self.sequence.note(frame.event_seq)
            if gap is not None:
                self.counts.gaps += 1
                if self.on_gap is not None:
                    self.on_gap(gap)
        if not frame.is_known:
            self._note_unknown(frame)
        self.counts.events += 1
        self._events.append(frame)
        self._stirred.set()

    def _note_unknown(self, frame: Frame) -> None:
        unknown = self.counts.unknown
        kind = frame.type if frame.type in unknown or len(unknown) < _MOST_UNKNOWN else "(others)"
        if kind not in unknown:
            log.info("the server sends frames of an unknown type: %.80r", kind)
        unknown[kind] += 1

    def _answer(self, frame: Frame) -> None:
        waiter = self._waiters.get(frame.request_id or "")
        if waiter is None or waiter.answer_type != frame.type or waiter.future.done():
            self.counts.stray_answers += 1
            return
        self.counts.answers += 1
        waiter.future.set_result(frame)

    def _is_duplicate(self, frame: Frame) -> bool:
        if frame.idempotency_key is not None:
            return self._seen.again(frame.idempotency_key)
        if frame.type == names.EXTERNAL_TOOL_CALL and frame.request_id is not None:
            # Has no key of its own, and a tool must not run twice.
            return self._calls_seen.again(frame.request_id)
        return False

    def _fail(self, lost: ConnectionLost) -> None:
        if self._lost is not None:
            return
        self._lost = lost
        for waiter in self._waiters.values():
            if not waiter.future.done():
                waiter.future.set_exception(ConnectionLost(lost.reason))
        self._stirred.set()
        self._gone.set()
