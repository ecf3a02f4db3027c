"""A server in memory, for what the real one cannot be made to do: lose an answer, lie, fall silent."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from letta_tui.protocol import Frame, frame_of
from letta_tui.transport.connection import ConnectionLost, Refused, RefusedKind
from letta_tui.transport.endpoint import Endpoint, direct

AGENT = "agent-fake"


@dataclass
class FakeServer:
    """Its habits are its fields; ``ran`` counts how often each client message id was run.

    ``deduplicates``: a repeated id is acknowledged and does nothing. ``lose_acks``: how many answers to
    inputs are lost with the connection, after the input was taken (``take_input``) or before.
    """

    version: str = "0.34.12"
    deduplicates: bool = True
    lose_acks: int = 0
    take_input: bool = True
    answer_runtime: dict[str, str] | None = None
    refuse_connections: int = 0
    refusal: RefusedKind = "refused_port"
    deaf: bool = False  # takes everything and answers nothing, not even a probe
    mute_acks: bool = False  # inputs are taken and run, and never acknowledged
    skip_seq: int = 0  # event_seq numbers to pass over before the next event
    loop_error: str = ""  # inputs fail with these words before any run
    hold_turns: bool = False  # turns do not end until ``finish``
    rows: list[dict[str, Any]] = field(default_factory=list)  # oldest first
    conversations: set[str] = field(default_factory=lambda: {"conv-1"})
    ran: dict[str, int] = field(default_factory=dict)
    journal: set[str] = field(default_factory=set)
    seen: list[dict[str, Any]] = field(default_factory=list)  # commands in order
    connections: list[FakeConnection] = field(default_factory=list)
    queue: list[dict[str, Any]] = field(default_factory=list)
    active: str = ""  # the run that goes on
    by_run: dict[str, list[str]] = field(default_factory=dict)
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    endpoint: Endpoint = field(default_factory=lambda: direct("ws://127.0.0.1:9/ws"))

    async def open(self, endpoint: Endpoint) -> FakeConnection:
        if self.refuse_connections:
            self.refuse_connections -= 1
            raise Refused(self.refusal, "Nothing listens at 127.0.0.1:9.")
        connection = FakeConnection(self, f"c{len(self.connections) + 1}")
        self.connections.append(connection)
        return connection

    def commands(self, kind: str) -> list[dict[str, Any]]:
        return [command for command in self.seen if command["type"] == kind]

    def cut(self) -> None:
        """Every connection is gone at once."""
        for connection in self.connections:
            connection.break_off("The other side closed the connection.")

    # --- what it does ---

    def take(self, connection: FakeConnection, command: dict[str, Any]) -> None:
        self.seen.append(command)
        if self.deaf:
            return
        handler = getattr(self, f"_{command['type']}", None)
        if handler is not None:
            handler(connection, command)
        elif "request_id" in command:
            connection.answer(command, success=True)

    def _app_server_info(self, connection: FakeConnection, command: dict[str, Any]) -> None:
        connection.answer(
            command, success=True, backend="local", letta_code_version=self.version, protocol_version=1,
            capabilities={"runtime_start": True},
        )  # fmt: skip

    def _agent_list(self, connection: FakeConnection, command: dict[str, Any]) -> None:
        connection.answer(command, success=True, agents=[{"id": AGENT, "name": "Fake", "model": "m"}])

    def _runtime_start(self, connection: FakeConnection, command: dict[str, Any]) -> None:
        conversation = command.get("conversation_id")
        if conversation is None:
            conversation = f"conv-{len(self.conversations) + 1}"
            self.conversations.add(conversation)
        if conversation not in self.conversations:
            connection.answer(
                command, success=False, runtime=None, error=f"Conversation {conversation} not found"
            )
            return
        runtime = self.answer_runtime or {"agent_id": AGENT, "conversation_id": conversation}
        connection.runtime = runtime
        self.replay(connection)
        connection.answer(
            command, success=True, runtime=runtime, agent={"id": AGENT, "name": "Fake", "model": "m"},
            conversation={"id": conversation, "agent_id": AGENT, "summary": "A title"},
            created={"agent": False, "conversation": False},
        )  # fmt: skip

    def _sync(self, connection: FakeConnection, command: dict[str, Any]) -> None:
        connection.runtime = command["runtime"]
        self.replay(connection)
        connection.answer(command, success=True, runtime=command["runtime"])

    def replay(self, connection: FakeConnection) -> None:
        connection.event("update_device_status", device_status=self._device())
        connection.event("update_loop_status", loop_status=self._loop())
        connection.event("update_queue", queue=list(self.queue), removed=[])

    def _device(self) -> dict[str, Any]:
        return {
            "is_processing": bool(self.active), "current_permission_mode": "standard",
            "current_working_directory": "/work", "pending_control_requests": [], "cwd_revision": 0,
        }  # fmt: skip

    def _loop(self) -> dict[str, Any]:
        return {
            "status": "PROCESSING_API_RESPONSE" if self.active else "WAITING_ON_INPUT",
            "active_run_ids": [self.active] if self.active else [],
            "client_message_ids_by_run_id": dict(self.by_run), "executing_tool_call_ids": [],
        }  # fmt: skip

    def _conversation_messages_list(self, connection: FakeConnection, command: dict[str, Any]) -> None:
        query = command["query"]
        rows = self.rows
        if "before" in query:
            at = next((n for n, row in enumerate(rows) if row["id"] == query["before"]), len(rows))
            rows = rows[:at]
        page = rows[-query["limit"] :]
        connection.answer(
            command, success=True, messages=page[::-1], next_before=page[0]["id"] if page else None,
            has_more=len(rows) > len(page),
        )  # fmt: skip

    def _input(self, connection: FakeConnection, command: dict[str, Any]) -> None:
        message = command["payload"]["messages"][0]
        if self.lose_acks:
            self.lose_acks -= 1
            if self.take_input:
                self._run(message)
            self.cut()
            return
        key = message["client_message_id"]
        if self.deduplicates and key in self.journal:
            connection.answer(command, kind="input_accepted", accepted=True, disposition="started")
            return
        if not self.mute_acks:
            connection.answer(command, kind="input_accepted", accepted=True, disposition="started")
        self._run(message)

    def _run(self, message: dict[str, Any]) -> None:
        key, text = message["client_message_id"], message["content"]
        self.journal.add(key)
        if self.loop_error:
            for connection in self.live():
                connection.delta(
                    message_type="loop_error", id="e1", message=self.loop_error, stop_reason="error",
                    is_terminal=True, client_message_ids=[key],
                )  # fmt: skip
                connection.event("turn_finished", turn_id="t", stop_reason="error", error=self.loop_error)
            return
        self.ran[key] = self.ran.get(key, 0) + 1
        run = f"run-{next(self._numbers)}"
        self.active, self.by_run[run] = run, [key]
        self.rows.append(self.row("user_message", content=text, otid=message.get("otid", key)))
        reply = self.row("assistant_message", content=[{"type": "text", "text": f"re: {text}"}])
        for connection in self.live():
            connection.event("update_loop_status", loop_status=self._loop())
            connection.event("update_device_status", device_status=self._device())
            connection.delta(**reply, run_id=run, seq_id=1)
        self.rows.append(reply)
        if not self.hold_turns:
            self.finish()

    def finish(self) -> None:
        run, self.active = self.active, ""
        for connection in self.live():
            connection.delta(message_type="stop_reason", stop_reason="end_turn", run_id=run, seq_id=2)
            connection.event("update_loop_status", loop_status=self._loop())
            connection.event("update_device_status", device_status=self._device())
            connection.event("turn_finished", turn_id=f"turn-{run}", stop_reason="end_turn", run_id=run)

    def live(self) -> list[FakeConnection]:
        return [c for c in self.connections if c.lost is None and c.runtime is not None]

    def row(self, kind: str, **fields: Any) -> dict[str, Any]:
        return {
            "id": f"ui-msg-{next(self._numbers)}", "message_type": kind,
            "date": "2026-01-01T00:00:00.000Z", **fields,
        }  # fmt: skip


class FakeConnection:
    """One connection to a ``FakeServer``, as the worker's client wants it."""

    def __init__(self, server: FakeServer, connection_id: str) -> None:
        self.server = server
        self.connection_id = connection_id
        self.runtime: dict[str, str] | None = None
        self.lost: str | None = None
        self._seq = itertools.count(1)
        self._frames: asyncio.Queue[Frame | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()  # the worker's: a test calls from another thread
        self._arrivals = itertools.count(1)

    async def send(self, command: Mapping[str, Any]) -> None:
        if self.lost is not None:
            raise ConnectionLost(self.lost)
        self.server.take(self, dict(command))

    async def receive(self) -> Frame:
        frame = await self._frames.get()
        if frame is None:
            raise ConnectionLost(self.lost or "gone")
        return frame

    async def probe(self, timeout: float) -> bool:
        return self.lost is None and not self.server.deaf

    async def close(self) -> None:
        self.break_off("The connection was closed here.")

    def break_off(self, reason: str) -> None:
        if self.lost is None:
            self.lost = reason
            self._deliver(None)

    def answer(self, command: dict[str, Any], *, kind: str = "", **fields: Any) -> None:
        kind = kind or f"{command['type']}_response"
        self._put({"type": kind, "request_id": command.get("request_id"), **fields})

    def event(self, kind: str, **fields: Any) -> None:
        for _ in range(self.server.skip_seq):
            next(self._seq)
        self.server.skip_seq = 0
        seq = next(self._seq)
        key = f"{kind}:{seq}:{self.connection_id}"
        self._put({"type": kind, "runtime": self.runtime, "event_seq": seq, "idempotency_key": key, **fields})

    def delta(self, **fields: Any) -> None:
        self.event("stream_delta", delta={"type": "message", **fields})

    def _put(self, raw: dict[str, Any]) -> None:
        if self.lost is None:
            self._deliver(frame_of(raw, next(self._arrivals)))

    def _deliver(self, frame: Frame | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._frames.put_nowait, frame)
