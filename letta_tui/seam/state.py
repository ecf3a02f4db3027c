"""What a person can see, as immutable values.

All times are seconds since the epoch (wall clock, ``float``) unless a field says otherwise. All text
from outside is raw here; making it harmless for a terminal is the view's duty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RowKind = Literal["user", "assistant", "reasoning", "tool", "notice", "error", "summary", "away"]
ToolState = Literal["requested", "awaiting", "running", "done", "failed", "denied", "closed"]
Delivery = Literal[
    "prepared",
    "unconfirmed",
    "accepted",
    "queued",
    "started",
    "delivered",
    "rejected",
    "cancelled",
    "failed",
    "vanished",
    "unknown",
    "superseded",
    "discarded",
    "redacted",
]
TurnOutcome = Literal[
    "none",
    "running",
    "awaiting_approval",
    "done",
    "cancelled",
    "failed",
    "ended_unseen",
]
Phase = Literal["starting", "connecting", "recovering", "ready", "lost", "failed", "closed"]
Activity = Literal[
    "idle",
    "sending",
    "waiting",
    "streaming",
    "tool",
    "command",
    "approval",
    "retrying",
    "cancelling",
]
Action = Literal[
    "send",
    "resend",
    "send_new",
    "edit",
    "copy",
    "discard",
    "check",
    "restart",
    "fork",
    "new",
    "open_other",
    "keep",
    "stop",
    "cancel",
    "reconnect",
]


@dataclass(frozen=True, slots=True)
class ToolView:
    """One tool call. ``arguments`` is JSON text, whole or so far; ``result`` is text, cumulative."""

    call_id: str
    name: str
    arguments: str = ""
    state: ToolState = "requested"
    result: str = ""
    decided_by: str = ""  # "you", "another window", "the config", "elsewhere", "the server"; "": nobody
    reason: str = ""  # the reason of a denial
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the transcript. ``key`` never changes while the row is on the screen."""

    key: str
    kind: RowKind
    text: str = ""
    live: bool = False  # its text may still grow
    when: float | None = None
    client_message_id: str | None = None  # user rows that this client (or another of ours) sent
    delivery: Delivery | None = None  # user rows with a ledger row
    outcome: TurnOutcome = "none"
    tool: ToolView | None = None
    marks: tuple[str, ...] = ()  # short remarks, e.g. "no longer in the server's history"


@dataclass(frozen=True, slots=True)
class QueueItemView:
    item_id: str  # the server's item id, or the client message id of a held one
    client_message_id: str | None
    text: str
    paused: bool = False
    mine: bool = True  # this client's ledger knows it
    held_here: bool = False  # not on the server: held by this client until an earlier one is settled
    cancelling: bool = False  # cancel asked for, the server has not answered yet
    note: str = ""  # why it is held, in words


@dataclass(frozen=True, slots=True)
class DiffLine:
    kind: Literal["context", "add", "remove"]
    text: str


@dataclass(frozen=True, slots=True)
class DiffHunk:
    old_start: int
    new_start: int
    lines: tuple[DiffLine, ...]


@dataclass(frozen=True, slots=True)
class DiffView:
    file_name: str
    hunks: tuple[DiffHunk, ...] = ()
    reason: str = ""  # why there is no preview, when there is none


@dataclass(frozen=True, slots=True)
class Suggestion:
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class ApprovalView:
    """A tool call that waits for a person. A decision is bound to ``request_id`` as it was painted."""

    request_id: str
    tool_call_id: str
    tool_name: str
    headline: str  # one line: what it wants to do
    arguments: str  # pretty-printed input
    diffs: tuple[DiffView, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    blocked_path: str = ""
    position: int = 1  # "2 of 4"
    total: int = 1
    state: Literal["pending", "deciding", "refused"] = "pending"
    note: str = ""  # why a decision was refused, or what is being waited for
    own: bool = False  # of a tool that this program runs: nobody can run it when this program is gone


@dataclass(frozen=True, slots=True)
class Choice:
    action: Action
    key: str  # one letter
    label: str
    risk: str = ""  # what it risks, in plain words; empty when nothing


@dataclass(frozen=True, slots=True)
class SendView:
    """A ledger row as a person sees it."""

    client_message_id: str
    text: str
    delivery: Delivery
    outcome: TurnOutcome
    word: str  # short word beside the glyph
    explanation: str  # one or two sentences: what is known and why
    when: float
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True, slots=True)
class RecoveryView:
    """The recovery card after a relaunch or a reconnect."""

    checking: bool
    title: str
    notes: tuple[str, ...] = ()  # things to know (what was rebuilt, what ended unseen)
    sends: tuple[SendView, ...] = ()


@dataclass(frozen=True, slots=True)
class QuestionView:
    """A decision only the person can take (conversation gone, wedged, other server)."""

    id: str
    title: str
    body: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class ConnectionView:
    phase: Phase
    words: str  # an honest sentence
    endpoint: str = ""
    retry_at: float | None = None
    held: bool = False  # a keeper confirmed it holds this conversation
    goes_on: str = ""  # where no keeper is needed (hosted): what becomes of a turn when this window goes
    embedded: bool = False  # the server is ours to restart
    server_version: str = ""
    can_send: bool = False
    why_not: str = ""  # why sending is not possible now


@dataclass(frozen=True, slots=True)
class StatusView:
    agent_id: str = ""
    agent_name: str = ""
    conversation_id: str = ""
    conversation_title: str = ""
    model: str = ""
    mode: str = ""
    cwd: str = ""
    activity: Activity = "idle"
    activity_words: str = ""
    turn_started: float | None = None
    tokens: int | None = None  # context tokens of the last usage frame


@dataclass(frozen=True, slots=True)
class ConversationItem:
    agent_id: str
    agent_name: str
    conversation_id: str
    title: str
    updated: float | None = None
    open_sends: int = 0
    current: bool = False
    note: str = ""  # "approval waiting", "ended while you were away", "archived" …
    archived: bool = False
    last_sent: str = ""  # the message this computer sent there last, for one without a title


@dataclass(frozen=True, slots=True)
class AgentItem:
    agent_id: str
    name: str
    model: str = ""
    current: bool = False


@dataclass(frozen=True, slots=True)
class DeviceItem:
    """A machine of the hosted account. ``seen`` is when it was last heard of, in seconds since the epoch."""

    device_id: str
    name: str
    online: bool
    seen: float | None = None
    folder: str = ""
    branch: str = ""
    current: bool = False


@dataclass(frozen=True, slots=True)
class FormField:
    name: str
    label: str
    secret: bool = False
    required: bool = True
    default: str = ""
    placeholder: str = ""


@dataclass(frozen=True, slots=True)
class ProviderItem:
    provider_id: str
    label: str
    fields: tuple[FormField, ...] = ()
    auth_method_id: str = ""
    connected: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True)
class ModelItem:
    handle: str
    label: str
