"""What frames say, as typed values. Every class reads leniently and keeps its source in ``raw``.

Shapes: ``protocol_v2.d.ts``, ``loop-status-protocol.d.ts``, ``queue-update-protocol.d.ts`` and
``external-tool-protocol.d.ts`` of Letta Code 0.34.12, and its wire where that differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from letta_tui.protocol import names
from letta_tui.protocol.values import (
    Json,
    content_text,
    flag,
    mapping,
    mappings,
    number,
    text,
    texts,
)


@dataclass(frozen=True, slots=True)
class Runtime:
    """Which conversation of which agent. ``agent_id`` is None for a conversation without an agent."""

    agent_id: str | None
    conversation_id: str

    @staticmethod
    def of(value: object) -> Runtime | None:
        if not isinstance(value, Mapping):
            return None
        conversation = text(value, "conversation_id")
        if not conversation:
            return None
        return Runtime(text(value, "agent_id"), conversation)

    def wire(self) -> dict[str, Any]:
        return {"agent_id": self.agent_id, "conversation_id": self.conversation_id}


@dataclass(frozen=True, slots=True)
class LoopStatus:
    """``client_message_ids_by_run_id`` names the inputs each recent run consumed."""

    status: str
    active_run_ids: tuple[str, ...] = ()
    client_message_ids_by_run_id: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    executing_tool_call_ids: tuple[str, ...] = ()

    @property
    def idle(self) -> bool:
        """Waiting for input with no run. ``is_processing`` of the device status must agree."""
        return self.status == names.WAITING_ON_INPUT and not self.active_run_ids

    @staticmethod
    def of(raw: Json) -> LoopStatus:
        runs = mapping(raw, "client_message_ids_by_run_id")
        return LoopStatus(
            status=text(raw, "status") or "",
            active_run_ids=texts(raw, "active_run_ids"),
            client_message_ids_by_run_id={run: texts(runs, run) for run in runs},
            executing_tool_call_ids=texts(raw, "executing_tool_call_ids"),
        )


@dataclass(frozen=True, slots=True)
class QueueItem:
    item_id: str
    client_message_id: str | None
    kind: str
    source: str
    text: str
    enqueued_at: str | None
    paused: bool
    raw: Json = field(repr=False)

    @staticmethod
    def of(raw: Json) -> QueueItem:
        return QueueItem(
            item_id=text(raw, "id") or "",
            client_message_id=text(raw, "client_message_id"),
            kind=text(raw, "kind") or "",
            source=text(raw, "source") or "",
            text=content_text(raw.get("content")),
            enqueued_at=text(raw, "enqueued_at"),
            paused=flag(raw, "paused"),
            raw=raw,
        )


@dataclass(frozen=True, slots=True)
class QueueRemoval:
    client_message_id: str
    disposition: str  # "dequeued" or "cancelled"


@dataclass(frozen=True, slots=True)
class QueueState:
    """A full snapshot, and what left the queue since the last one."""

    items: tuple[QueueItem, ...]
    removed: tuple[QueueRemoval, ...]

    @staticmethod
    def of(raw: Json) -> QueueState:
        removed = (
            QueueRemoval(text(item, "client_message_id") or "", text(item, "disposition") or "")
            for item in mappings(raw, "removed")
        )
        return QueueState(
            items=tuple(QueueItem.of(item) for item in mappings(raw, "queue")),
            removed=tuple(item for item in removed if item.client_message_id),
        )


@dataclass(frozen=True, slots=True)
class PermissionSuggestion:
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """The server asks whether a tool may run. ``diffs`` are raw: ``{mode, fileName, hunks | reason}``."""

    request_id: str
    subtype: str
    tool_name: str
    tool_call_id: str
    input: Json = field(repr=False)
    suggestions: tuple[PermissionSuggestion, ...] = ()
    blocked_path: str | None = None
    diffs: tuple[Json, ...] = field(default=(), repr=False)
    raw: Json = field(default_factory=dict, repr=False)

    @staticmethod
    def of(raw: Json) -> ControlRequest | None:
        """From a ``control_request`` event or an entry of ``pending_control_requests``."""
        request_id = text(raw, "request_id")
        if not request_id:
            return None
        body = mapping(raw, "request")
        return ControlRequest(
            request_id=request_id,
            subtype=text(body, "subtype") or "",
            tool_name=text(body, "tool_name") or "",
            tool_call_id=text(body, "tool_call_id") or request_id.removeprefix("perm-"),
            input=mapping(body, "input"),
            suggestions=tuple(
                PermissionSuggestion(text(item, "id") or "", text(item, "text") or "")
                for item in mappings(body, "permission_suggestions")
            ),
            blocked_path=text(body, "blocked_path"),
            diffs=tuple(mappings(body, "diffs")),
            raw=raw,
        )


@dataclass(frozen=True, slots=True)
class DeviceStatus:
    """``pending`` is the full list of open approval requests of this runtime."""

    is_processing: bool
    mode: str | None
    cwd: str | None
    cwd_revision: int | None
    pending: tuple[ControlRequest, ...]
    connection_name: str | None
    letta_code_version: str | None
    toolset: str | None
    supported_commands: tuple[str, ...]
    raw: Json = field(repr=False)

    @staticmethod
    def of(raw: Json) -> DeviceStatus:
        pending = (ControlRequest.of(item) for item in mappings(raw, "pending_control_requests"))
        return DeviceStatus(
            is_processing=flag(raw, "is_processing"),
            mode=text(raw, "current_permission_mode"),
            cwd=text(raw, "current_working_directory"),
            cwd_revision=number(raw, "cwd_revision"),
            pending=tuple(item for item in pending if item is not None),
            connection_name=text(raw, "connection_name"),
            letta_code_version=text(raw, "letta_code_version"),
            toolset=text(raw, "current_toolset"),
            supported_commands=texts(raw, "supported_commands"),
            raw=raw,
        )


@dataclass(frozen=True, slots=True)
class Delta:
    """One ``stream_delta``. ``seq_id`` orders only within one ``run_id`` of one connection."""

    message_type: str
    id: str | None
    otid: str | None
    run_id: str | None
    seq_id: int | None
    subagent_id: str | None  # set: it belongs to a subagent, not to the main transcript
    raw: Json = field(repr=False)

    @staticmethod
    def of(raw: Json, subagent_id: str | None = None) -> Delta:
        return Delta(
            message_type=text(raw, "message_type") or "",
            id=text(raw, "id"),
            otid=text(raw, "otid"),
            run_id=text(raw, "run_id"),
            seq_id=number(raw, "seq_id"),
            subagent_id=subagent_id,
            raw=raw,
        )

    @property
    def text(self) -> str:
        """The fragment of assistant, user or reasoning text."""
        if self.message_type == "reasoning_message" and isinstance(self.raw.get("reasoning"), str):
            return str(self.raw["reasoning"])
        return content_text(self.raw.get("content"))

    @property
    def stop_reason(self) -> str | None:
        return text(self.raw, "stop_reason")

    @property
    def message(self) -> str:
        """The words of ``status``, ``retry``, ``loop_error`` and ``error_message``."""
        return text(self.raw, "message") or ""

    @property
    def is_terminal(self) -> bool:
        """Only of ``loop_error``: whether it ended the turn."""
        return flag(self.raw, "is_terminal")

    @property
    def client_message_ids(self) -> tuple[str, ...]:
        """Only of ``loop_error``: accepted inputs that failed before any run existed."""
        return texts(self.raw, "client_message_ids")


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The end of a turn. ``run_id`` may be missing; a turn with approvals has several runs."""

    turn_id: str
    stop_reason: str
    run_id: str | None
    error: str | None
    usage: Json = field(repr=False)
    terminal_consumer_ids: tuple[str, ...] = ()

    @staticmethod
    def of(raw: Json) -> TurnFinished:
        return TurnFinished(
            turn_id=text(raw, "turn_id") or "",
            stop_reason=text(raw, "stop_reason") or "",
            run_id=text(raw, "run_id"),
            error=text(raw, "error"),
            usage=mapping(raw, "usage"),
            terminal_consumer_ids=texts(raw, "terminal_consumer_ids"),
        )


@dataclass(frozen=True, slots=True)
class ExternalToolCall:
    request_id: str
    tool_call_id: str
    tool_name: str
    input: Json = field(repr=False)
    scope_id: str | None = None

    @staticmethod
    def of(raw: Json) -> ExternalToolCall | None:
        request_id = text(raw, "request_id")
        if not request_id:
            return None
        return ExternalToolCall(
            request_id=request_id,
            tool_call_id=text(raw, "tool_call_id") or "",
            tool_name=text(raw, "tool_name") or "",
            input=mapping(raw, "input"),
            scope_id=text(raw, "scope_id"),
        )


@dataclass(frozen=True, slots=True)
class Answer:
    success: bool
    error: str

    @staticmethod
    def of(raw: Json) -> Answer:
        error = raw.get("error")
        if isinstance(error, Mapping):  # a few answers give {code, message}
            error = error.get("message")
        success = flag(raw, "success") or flag(raw, "accepted")
        if error is None and not success:
            error = raw.get("output")  # execute_command_response has its reason there
        return Answer(success=success, error=error if isinstance(error, str) else "")


@dataclass(frozen=True, slots=True)
class InputAccepted:
    accepted: bool
    disposition: str | None  # "started" or "queued"
    error: str

    @staticmethod
    def of(raw: Json) -> InputAccepted:
        return InputAccepted(
            accepted=flag(raw, "accepted"),
            disposition=text(raw, "disposition"),
            error=text(raw, "error") or "",
        )


@dataclass(frozen=True, slots=True)
class RuntimeStarted:
    success: bool
    error: str
    runtime: Runtime | None
    agent: Json = field(repr=False)
    conversation: Json = field(repr=False)
    created_agent: bool = False
    created_conversation: bool = False

    @staticmethod
    def of(raw: Json) -> RuntimeStarted:
        created = mapping(raw, "created")
        return RuntimeStarted(
            success=flag(raw, "success"),
            error=text(raw, "error") or "",
            runtime=Runtime.of(raw.get("runtime")),
            agent=mapping(raw, "agent"),
            conversation=mapping(raw, "conversation"),
            created_agent=flag(created, "agent"),
            created_conversation=flag(created, "conversation"),
        )


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """``next_before`` is set even on the last page; ``has_more`` speaks of older rows only."""

    success: bool
    error: str
    messages: tuple[Json, ...] = field(repr=False)
    next_before: str | None = None
    has_more: bool = False

    @staticmethod
    def of(raw: Json) -> HistoryPage:
        return HistoryPage(
            success=flag(raw, "success"),
            error=text(raw, "error") or "",
            messages=tuple(mappings(raw, "messages")),
            next_before=text(raw, "next_before"),
            has_more=flag(raw, "has_more"),
        )


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """An absent capability is one the server does not have."""

    backend: str
    letta_code_version: str
    protocol_version: int | None
    capabilities: frozenset[str]
    raw: Json = field(repr=False)

    @property
    def split_channels(self) -> bool:
        return "split_channels" in self.capabilities

    @staticmethod
    def of(raw: Json) -> ServerInfo:
        capabilities = mapping(raw, "capabilities")
        return ServerInfo(
            backend=text(raw, "backend") or "",
            letta_code_version=text(raw, "letta_code_version") or "",
            protocol_version=number(raw, "protocol_version"),
            capabilities=frozenset(name for name in capabilities if flag(capabilities, name)),
            raw=raw,
        )
