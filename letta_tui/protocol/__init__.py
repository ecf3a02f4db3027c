"""The App Server protocol as data: frames, what they say, and commands. No input or output here."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from letta_tui.protocol.events import (
        Answer,
        ControlRequest,
        Delta,
        DeviceStatus,
        ExternalToolCall,
        HistoryPage,
        InputAccepted,
        LoopStatus,
        PermissionSuggestion,
        QueueItem,
        QueueRemoval,
        QueueState,
        Runtime,
        RuntimeStarted,
        ServerInfo,
        TurnFinished,
    )
    from letta_tui.protocol.frames import Frame, frame_of, parse
    from letta_tui.protocol.values import content_text

__all__ = [
    "Answer",
    "ControlRequest",
    "Delta",
    "DeviceStatus",
    "ExternalToolCall",
    "Frame",
    "HistoryPage",
    "InputAccepted",
    "LoopStatus",
    "PermissionSuggestion",
    "QueueItem",
    "QueueRemoval",
    "QueueState",
    "Runtime",
    "RuntimeStarted",
    "ServerInfo",
    "TurnFinished",
    "content_text",
    "frame_of",
    "parse",
]

# A window is drawn before anything here is needed, so each name is loaded when it is first asked for.
_HOME = {
    "Answer": "events",
    "ControlRequest": "events",
    "Delta": "events",
    "DeviceStatus": "events",
    "ExternalToolCall": "events",
    "HistoryPage": "events",
    "InputAccepted": "events",
    "LoopStatus": "events",
    "PermissionSuggestion": "events",
    "QueueItem": "events",
    "QueueRemoval": "events",
    "QueueState": "events",
    "Runtime": "events",
    "RuntimeStarted": "events",
    "ServerInfo": "events",
    "TurnFinished": "events",
    "Frame": "frames",
    "frame_of": "frames",
    "parse": "frames",
    "content_text": "values",
}


def __getattr__(name: str) -> object:
    try:
        home = _HOME[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    value: object = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
