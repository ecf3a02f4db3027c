"""Frames as typed values that keep what they do not know.

``parse`` never raises: what is no JSON object with a type becomes a frame of type ``(malformed)``.
``Frame.raw`` is always the whole frame as received.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from letta_tui.protocol import names
from letta_tui.protocol.events import (
    Answer,
    ControlRequest,
    Delta,
    DeviceStatus,
    ExternalToolCall,
    HistoryPage,
    InputAccepted,
    LoopStatus,
    QueueState,
    Runtime,
    RuntimeStarted,
    ServerInfo,
    TurnFinished,
)
from letta_tui.protocol.values import Json, mapping, number, text

_MALFORMED_KEPT = 2_000  # characters kept of a text that cannot be read


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame. ``arrival`` counts the frames of one connection from 1 (0: it came from none).

    ``event_seq`` counts events per connection and starts anew on each; answers have none.
    """

    type: str
    raw: Json = field(repr=False)
    runtime: Runtime | None = None
    event_seq: int | None = None
    idempotency_key: str | None = None
    request_id: str | None = None
    arrival: int = 0

    @property
    def is_answer(self) -> bool:
        return names.is_answer(self.type)

    @property
    def is_known(self) -> bool:
        return self.is_answer or self.type in names.KNOWN_EVENTS

    @property
    def emitted_at(self) -> str | None:
        return text(self.raw, "emitted_at")

    # Typed views. Each is None when the frame is of another type.

    @property
    def loop_status(self) -> LoopStatus | None:
        if self.type != names.LOOP_STATUS:
            return None
        return LoopStatus.of(mapping(self.raw, "loop_status"))

    @property
    def queue(self) -> QueueState | None:
        return QueueState.of(self.raw) if self.type == names.QUEUE else None

    @property
    def device_status(self) -> DeviceStatus | None:
        if self.type != names.DEVICE_STATUS:
            return None
        return DeviceStatus.of(mapping(self.raw, "device_status"))

    @property
    def delta(self) -> Delta | None:
        if self.type != names.STREAM_DELTA:
            return None
        return Delta.of(mapping(self.raw, "delta"), text(self.raw, "subagent_id"))

    @property
    def turn_finished(self) -> TurnFinished | None:
        return TurnFinished.of(self.raw) if self.type == names.TURN_FINISHED else None

    @property
    def control_request(self) -> ControlRequest | None:
        return ControlRequest.of(self.raw) if self.type == names.CONTROL_REQUEST else None

    @property
    def external_tool_call(self) -> ExternalToolCall | None:
        return ExternalToolCall.of(self.raw) if self.type == names.EXTERNAL_TOOL_CALL else None

    @property
    def answer(self) -> Answer | None:
        """Success and error of any answer except ``input_accepted``, which has words of its own."""
        return Answer.of(self.raw) if self.is_answer else None

    @property
    def input_accepted(self) -> InputAccepted | None:
        return InputAccepted.of(self.raw) if self.type == names.INPUT_ACCEPTED else None

    @property
    def runtime_started(self) -> RuntimeStarted | None:
        return RuntimeStarted.of(self.raw) if self.type == "runtime_start_response" else None

    @property
    def history_page(self) -> HistoryPage | None:
        if self.type != "conversation_messages_list_response":
            return None
        return HistoryPage.of(self.raw)

    @property
    def server_info(self) -> ServerInfo | None:
        return ServerInfo.of(self.raw) if self.type == "app_server_info_response" else None


def frame_of(raw: Json, arrival: int = 0) -> Frame:
    """A frame from an object that is already decoded."""
    frame_type = text(raw, "type")
    if not frame_type:
        return Frame(names.MALFORMED, raw, arrival=arrival)
    return Frame(
        type=frame_type,
        raw=raw,
        runtime=Runtime.of(raw.get("runtime")),
        event_seq=number(raw, "event_seq"),
        idempotency_key=text(raw, "idempotency_key") or None,
        request_id=text(raw, "request_id") or None,
        arrival=arrival,
    )


def parse(data: str | bytes, arrival: int = 0) -> Frame:
    """Read one WebSocket message."""
    if isinstance(data, bytes):
        data = data.decode("utf-8", "replace")
    decoded: Any
    try:
        decoded = json.loads(data)
    except (ValueError, RecursionError):
        decoded = None
    if not isinstance(decoded, dict):
        return Frame(names.MALFORMED, {"text": data[:_MALFORMED_KEPT]}, arrival=arrival)
    return frame_of(decoded, arrival)
