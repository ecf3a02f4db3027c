"""The ledger's rows, as immutable values.

Identities: a message is its client message id; a conversation is a :class:`Place`; a run id means
nothing outside one life of its server and is never a key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from letta_tui.seam.state import Delivery, TurnOutcome

__all__ = [
    "KEPT_OF_THE_END",
    "Anchor",
    "Approval",
    "ApprovalState",
    "Attempt",
    "CallState",
    "Clock",
    "Delivery",
    "Draft",
    "Evidence",
    "EvidenceKind",
    "Opening",
    "Place",
    "Remembered",
    "Salvage",
    "Send",
    "Stamp",
    "ToolCall",
    "TurnOutcome",
]

KEPT_OF_THE_END = 2000  # characters of the words a turn ended with, in ``terminal["final_text"]``

EvidenceKind = Literal[
    # what this client did
    "prepared",  # first commit
    "attempt",  # second commit, just before the write
    "written",  # the socket took the bytes; proves nothing about the server
    "write_failed",  # the socket refused the bytes
    "connection_lost",  # the connection of the last attempt ended
    # what the server said about the message
    "ack",  # input_accepted, accepted true, on the id's first write
    "ack_repeat",  # accepted true on a later write of the same id: proves nothing
    "refused",  # accepted false on the id's first write
    "refused_repeat",  # accepted false on a later write: the first may hold the reservation
    "queue_seen",  # its id in a queue snapshot
    "dequeued",  # removed from the queue as dequeued
    "removed",  # removed from the queue as cancelled, connection unbroken since it was queued
    "removed_late",  # the same, learnt after a break
    "run_seen",  # its id under a run in a loop status
    "echo",  # a user_message delta with its otid: it left the queue for a turn
    "loop_error",  # a loop_error names it
    "history_row",  # a history row whose otid is its otid
    "history_twice",  # two or more such rows: the server ran it again
    # what was said about its turn
    "turn_running",
    "approval_asked",
    "approval_settled",
    "turn_done",
    "turn_cancelled",
    "turn_failed",
    "server_reran",  # the server runs it again by itself
    # judgements (the payload holds the reading they rest on)
    "absent",  # in none of queue, turn, history, read in order, of an idle runtime
    "undecidable",  # it can no longer be found out
    "idle",  # its turn is over and nobody saw the end
    # the person
    "person",  # a choice; payload {"choice": …, "risk": …}
    # the store
    "salvaged",
    "redacted",
    "note",
]


@dataclass(frozen=True, slots=True)
class Stamp:
    """One instant on three clocks.

    ``wall``: seconds since the epoch. ``mono``: seconds of the monotonic clock, comparable only under
    the same ``boot``, an opaque id of one start of the machine.
    """

    wall: float
    mono: float
    boot: str


Clock = Callable[[], Stamp]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A conversation of an agent on a server; ``local-conv-1`` exists on every local backend."""

    server_key: str
    agent_id: str
    conversation_id: str


@dataclass(frozen=True, slots=True)
class Anchor:
    """The history row that was last when a message was prepared.

    ``row_id`` is "" when the conversation was known to be empty. A send without an ``Anchor`` was
    prepared before the history was known.
    """

    row_id: str
    position: int = -1  # rows known before and including it, -1 when not counted


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that was seen or done. ``seq`` (0 until recorded) orders the whole ledger.

    ``payload`` is a summary as plain JSON data; the keys named ``text``, ``body`` and ``words`` are
    what :meth:`Ledger.redact` erases.
    """

    kind: EvidenceKind
    stamp: Stamp | None = None  # None: the ledger's clock at the commit
    connection_id: str = ""
    event_seq: int | None = None
    idempotency_key: str = ""
    run_id: str = ""
    request_id: str = ""
    server_life: str = ""  # marks one life of the server, when something tells it
    payload: Mapping[str, Any] = field(default_factory=dict)
    client_message_id: str = ""
    seq: int = 0


@dataclass(frozen=True, slots=True)
class Attempt:
    """One write of a message to a connection. ``number`` counts from 1."""

    client_message_id: str
    number: int
    request_id: str
    connection_id: str
    began: Stamp
    written: Stamp | None = None
    server_version: str = ""
    server_life: str = ""


@dataclass(frozen=True, slots=True)
class Send:
    """One message a person submitted, with its attempts and the kinds of evidence recorded for it."""

    client_message_id: str
    otid: str
    place: Place
    text: str
    delivery: Delivery
    outcome: TurnOutcome
    created: Stamp
    updated: Stamp
    anchor: Anchor | None = None
    supersedes: str = ""  # the older row this one replaces by the person's choice
    superseded_by: str = ""
    window_id: str = ""  # the window that prepared it
    run_ids: tuple[str, ...] = ()
    terminal: Mapping[str, Any] | None = None  # how its turn ended: stop_reason, error, duration, …
    salvaged: bool = False  # rescued from a damaged file: never sent by itself
    erased: bool = False  # the body was redacted by the person
    sentence: str = ""  # key of the last verdict's sentence
    attempts: tuple[Attempt, ...] = ()
    last: Mapping[EvidenceKind, Evidence] = field(default_factory=dict)  # the newest of each kind
    rests_on: Evidence | None = None  # what the delivery rests on; None only while prepared

    @property
    def seen(self) -> frozenset[EvidenceKind]:
        """The kinds of evidence recorded for it."""
        return frozenset(self.last)


ApprovalState = Literal[
    "decided",  # on disk, perhaps not written
    "written",  # the socket took it
    "acknowledged",  # the server took it; "done" is what the pending list shows
    "refused",  # the server said it is no longer pending
    "settled_elsewhere",  # another window or client answered first
    "closed_by_server",  # the server closed the call itself; never "you denied"
    "lost",  # still pending after a reconnect: the answer never arrived, the person is asked again
]


@dataclass(frozen=True, slots=True)
class Approval:
    """A decision about a tool call, recorded before it is written (rule 8)."""

    place: Place
    request_id: str  # of the server's control request
    tool_call_id: str
    tool_name: str
    decision: Literal["allow", "deny"]
    message: str
    suggestion_ids: tuple[str, ...]
    state: ApprovalState
    decided: Stamp
    updated: Stamp
    number: int = 1  # decisions about this request, counted
    window_id: str = ""
    input_request_id: str = ""  # request id of the input frame that carried it
    connection_id: str = ""
    words: str = ""  # the server's words when it refused
    erased: bool = False


CallState = Literal[
    "asked",  # the server called; nobody has decided yet
    "running",  # it was allowed, and on disk before it began
    "finished",  # it ended and its result is on disk
    "written",  # the socket took the answer; proves nothing about the server
    "confirmed",  # the conversation shows its result
    "declined",  # it was not run: denied, or it could not be
    "lost",  # it may have run, and the server never got its answer
]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of one of the person's own tools. ``result`` is the text the model was, or would have been,
    told. ``allowed_by``: "you", "the config", "" (not allowed). ``words``: why it was not run, or what is
    not known."""

    place: Place
    request_id: str
    tool_call_id: str
    tool_name: str
    input: Mapping[str, Any]
    state: CallState
    asked: Stamp
    updated: Stamp
    allowed_by: str = ""
    result: str = ""
    is_error: bool = False
    words: str = ""
    connection_id: str = ""
    window_id: str = ""
    erased: bool = False


@dataclass(frozen=True, slots=True)
class Remembered:
    """What this client stored about a conversation. ``state`` is the session-scoped state to restore:
    ``cwd``, ``mode``, ``skill_sources``, ``external_tools`` …"""

    place: Place
    title: str
    agent_name: str
    state: Mapping[str, Any]
    created: Stamp
    used: Stamp
    endpoint_label: str = ""
    endpoint_kind: str = ""
    window_id: str = ""
    open_sends: int = 0


@dataclass(frozen=True, slots=True)
class Draft:
    window_id: str
    place: Place
    text: str
    saved: Stamp


@dataclass(frozen=True, slots=True)
class Salvage:
    """A damaged database was moved aside. ``reason`` and ``words`` are to be said to the person."""

    reason: str
    moved_to: str
    rows: Mapping[str, int]  # rows rescued per table
    lost: tuple[str, ...]  # tables of which something could not be read
    words: str


@dataclass(frozen=True, slots=True)
class Opening:
    """What happened when the ledger was opened."""

    created: bool = False
    migrated_from: int | None = None
    salvage: Salvage | None = None
    warnings: tuple[str, ...] = ()
