"""The one place that knows how things are called on the wire (Letta App Server protocol 1, 0.34.12)."""

from __future__ import annotations

from typing import Final

PROTOCOL_VERSION: Final = 1

# Events: they carry ``runtime``, ``event_seq`` and ``idempotency_key``.
LOOP_STATUS: Final = "update_loop_status"
QUEUE: Final = "update_queue"
DEVICE_STATUS: Final = "update_device_status"
SUBAGENTS: Final = "update_subagent_state"
STREAM_DELTA: Final = "stream_delta"
TURN_FINISHED: Final = "turn_finished"
CONTROL_REQUEST: Final = "control_request"
EXTERNAL_TOOL_CALL: Final = "external_tool_call_request"

# Spoken by the hosted relay (and by servers in trouble), not by the runtime.
RELAY_PONG: Final = "pong"
RELAY_ACK: Final = "ack"
ERROR: Final = "error"
RUN_REQUEST_ERROR: Final = "run_request_error"

INPUT_ACCEPTED: Final = "input_accepted"

# What this client gives a text that is no JSON object with a type.
MALFORMED: Final = "(malformed)"

KNOWN_EVENTS: Final = frozenset(
    {
        LOOP_STATUS,
        QUEUE,
        DEVICE_STATUS,
        SUBAGENTS,
        STREAM_DELTA,
        TURN_FINISHED,
        CONTROL_REQUEST,
        EXTERNAL_TOOL_CALL,
        RELAY_PONG,
        ERROR,
        RUN_REQUEST_ERROR,
        # Notices about things this client fetches afresh whenever it shows them.
        "memory_updated",
        "skills_updated",
        "crons_updated",
        "channels_updated",
        "channel_accounts_updated",
        "channel_pairings_updated",
        "channel_routes_updated",
        "channel_targets_updated",
        "file_changed",
    }
)

# Commands that get no answer at all, with or without a ``request_id``.
UNANSWERED: Final = frozenset(
    {"change_device_state", "external_tool_call_response", "turn_finished_ack", RELAY_ACK, "ping"}
)

# Loop statuses.
WAITING_ON_INPUT: Final = "WAITING_ON_INPUT"
WAITING_ON_APPROVAL: Final = "WAITING_ON_APPROVAL"
EXECUTING_COMMAND: Final = "EXECUTING_COMMAND"

# Permission modes. A fresh server starts unrestricted, so a mode is always sent.
MODES: Final = ("standard", "acceptEdits", "unrestricted", "strict")

DEFAULT_CONVERSATION: Final = "default"


def answer_type(command_type: str) -> str | None:
    """The ``type`` of the frame that answers this command; None when it has no answer."""
    if command_type in UNANSWERED:
        return None
    if command_type == "input":
        return INPUT_ACCEPTED
    return f"{command_type}_response"


def is_answer(frame_type: str) -> bool:
    """Whether a frame of this type answers a request.

    A ``control_request`` or an ``external_tool_call_request`` has a ``request_id`` too, but it asks.
    """
    return frame_type == INPUT_ACCEPTED or frame_type.endswith("_response")
