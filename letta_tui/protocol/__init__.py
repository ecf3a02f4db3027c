"""The App Server protocol as data: frames, what they say, and commands. No input or output here."""

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
