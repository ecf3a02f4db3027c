"""What ``reconcile`` reads and what it says, as plain values. See :mod:`letta_tui.conversation.reconcile`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from letta_tui.ledger.values import Delivery, Evidence, Place, Stamp, TurnOutcome
from letta_tui.seam.state import Action

SentenceKey = Literal[
    "not_sent",  # prepared, never written
    "held",  # prepared, waits for an earlier one
    "checking",  # being checked: nothing offered
    "busy",  # the runtime works; judged when it rests
    "offline",  # no reading of this server yet
    "accepted",
    "queued",
    "started",
    "delivered",
    "delivered_no_reply",  # its turn ended without an answer, or failed
    "delivered_next",  # the next message follows it directly: the answer may be to both
    "delivered_twice",  # the server restarted and ran this twice: history has both
    "delivered_again",  # the server restarted and ran this again: history has one of them
    "lost_safe",  # not there, and sending it again cannot run it twice
    "rejected",
    "cancelled",
    "failed",
    "vanished",
    "unknown_old",  # too long ago: the server may have forgotten the id
    "unknown_clock",  # the clock or the machine's start changed
    "unknown_history",  # history does not reach back (compaction, lost anchor)
    "unknown_server",  # habits of this server or version are not known
    "unknown_burnt",  # the server knows the id and has dropped the message: the old id is spent
    "unknown_salvaged",  # rescued from a damaged ledger
    "superseded",
    "discarded",
    "redacted",
]

RiskKey = Literal[
    "",  # none
    "safe_same_id",  # none: the server knows the id if it got the message
    "may_run_twice",  # it may have been run, or may still be
    "both_if_late",  # it did not arrive; should it arrive late all the same, both run
    "server_may_rerun",  # the server had it; after a restart it may run it by itself
    "text_gone",  # the text is dropped here
    "text_gone_may_run",  # the same, and the server may have it all the same
]


@dataclass(frozen=True, slots=True)
class Policy:
    """``settle``: seconds after a break before absence may be judged. ``same_id``: seconds during which
    an id may be repeated (the server remembers ids for an hour). ``tested``: version prefixes whose
    journal is known."""

    settle: float = 3.0
    same_id: float = 50 * 60
    clock_slack: float = 60.0
    tested: tuple[str, ...] = ("0.34.",)
    queue_limit: int = 50


@dataclass(frozen=True, slots=True)
class QueueRead:
    """A whole queue snapshot. ``order`` counts what was read on this connection, ascending."""

    order: int
    client_message_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class LoopRead:
    """A loop status (and device status) read after the queue."""

    order: int
    waiting_for_input: bool  # WAITING_ON_INPUT
    active_run_ids: tuple[str, ...] = ()
    by_run: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # run id → client message ids
    processing: bool | None = None  # device status is_processing; None: not read
    approvals_pending: int = 0

    def active_run_of(self, client_message_id: str) -> str | None:
        """The run that works on the message now. The server goes on naming the inputs of runs that ended."""
        for run in self.active_run_ids:
            if client_message_id in self.by_run.get(run, ()):
                return run
        return None

    @property
    def idle(self) -> bool:
        return (
            self.waiting_for_input
            and not self.active_run_ids
            and self.processing is False
            and not self.approvals_pending
        )


@dataclass(frozen=True, slots=True)
class HistoryRow:
    row_id: str
    otid: str = ""
    kind: str = ""  # user, notification (a program wrote it), reminder (of the server), assistant, tool …


@dataclass(frozen=True, slots=True)
class HistoryRead:
    """History from some row up to the head, oldest first, asked for after the loop status.

    ``to_head``: nothing newer was missing when it was read. ``from_start``: it reaches the
    conversation's first row. ``compacted``: a summary row or compaction was seen since the anchors.
    """

    order: int
    rows: tuple[HistoryRow, ...]
    to_head: bool = True
    from_start: bool = False
    compacted: bool = False


KEEPER: Final = "keeper"  # as ``seen_by`` of an end


@dataclass(frozen=True, slots=True)
class EndNote:
    """An end of a turn that the keeper (``seen_by`` in ``terminal``), or this worker, saw."""

    client_message_ids: tuple[str, ...]
    outcome: Literal["done", "cancelled", "failed"]
    terminal: Mapping[str, Any] = field(default_factory=dict)
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of one conversation on one connection.

    ``fence``: when the request was sent with which the reading began and which was answered before the queue
    was read. ``second``: an earlier full reading on this same connection is at least
    ``Policy.settle`` seconds old. ``deduplicates``: the server's habit with repeated ids, ``None`` when
    only the version can tell.
    """

    place: Place
    connection_id: str
    now: Stamp
    server_version: str = ""
    server_life: str = ""
    deduplicates: bool | None = None
    fence: Stamp | None = None
    second: bool = False
    queue: QueueRead | None = None
    loop: LoopRead | None = None
    history: HistoryRead | None = None
    ends: tuple[EndNote, ...] = ()


@dataclass(frozen=True, slots=True)
class Offer:
    """A choice for the person. ``risk`` is the key of the words that say what it risks."""

    action: Action
    risk: RiskKey = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is now known about a send. Commit it with ``Ledger.judge``.

    ``again``: reading once more would tell more (after ``Policy.settle`` seconds, or when the runtime rests).
    """

    client_message_id: str
    delivery: Delivery
    outcome: TurnOutcome
    sentence: SentenceKey
    evidence: tuple[Evidence, ...] = ()
    offers: tuple[Offer, ...] = ()
    terminal: Mapping[str, Any] | None = None
    again: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """A prepared message that waits. ``behind`` is the id of the message it waits for, "" when the
    server's queue is long."""

    client_message_id: str
    behind: str
    why: Literal["unconfirmed", "unknown", "order", "queue_long"]
