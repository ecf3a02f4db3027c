"""The one table of legal moves of a send: the database's triggers, the code and the model check use it.

A move is legal only with evidence of a kind that can justify it, so that "delivered" cannot even be
stored without a history row and "vanished" cannot without a complete reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, get_args

from letta_tui.ledger.values import ApprovalState, EvidenceKind
from letta_tui.seam.state import Delivery, TurnOutcome

DELIVERIES: Final[tuple[Delivery, ...]] = get_args(Delivery)
OUTCOMES: Final[tuple[TurnOutcome, ...]] = get_args(TurnOutcome)
APPROVAL_STATES: Final[tuple[ApprovalState, ...]] = get_args(ApprovalState)
KINDS: Final[tuple[EvidenceKind, ...]] = get_args(EvidenceKind)

IN_FLIGHT: Final[frozenset[Delivery]] = frozenset({"unconfirmed", "accepted", "queued", "started"})
"""Being checked: nothing is offered until a verdict says so."""

AWAITS_PERSON: Final[frozenset[Delivery]] = frozenset(
    {"prepared", "rejected", "cancelled", "failed", "vanished", "unknown"}
)
"""Nothing more happens by itself; the person has choices."""

AT_REST: Final[frozenset[Delivery]] = frozenset({"delivered", "superseded", "discarded", "redacted"})

HOLDS: Final[frozenset[Delivery]] = frozenset({"unconfirmed", "unknown"})
"""At the head of a conversation these hold later messages (rule 7)."""

ENDED: Final[frozenset[TurnOutcome]] = frozenset({"done", "cancelled", "failed", "ended_unseen"})

# Evidence that says where the message is now. It moves every state that has not come to rest, also one
# that was judged (rule 1: later evidence upgrades), because a restarted server runs journaled inputs.
_QUEUED: Final[frozenset[EvidenceKind]] = frozenset({"queue_seen"})
_STARTED: Final[frozenset[EvidenceKind]] = frozenset({"dequeued", "run_seen", "echo"})
_HISTORY: Final[frozenset[EvidenceKind]] = frozenset({"history_row", "history_twice"})
_PERSON: Final[frozenset[EvidenceKind]] = frozenset({"person"})

_JUDGED: Final[tuple[Delivery, ...]] = ("rejected", "cancelled", "failed", "vanished", "unknown")


def _delivery_table() -> dict[tuple[Delivery, Delivery], frozenset[EvidenceKind]]:
    table: dict[tuple[Delivery, Delivery], frozenset[EvidenceKind]] = {
        ("prepared", "unconfirmed"): frozenset({"attempt"}),
        ("unconfirmed", "accepted"): frozenset({"ack"}),
        ("unconfirmed", "rejected"): frozenset({"refused"}),
    }
    for old in ("unconfirmed", "accepted", "queued", "started"):
        flight: Delivery = old
        table[flight, "cancelled"] = frozenset({"removed"})
        # A loop_error alone is not enough: history has to be read after it.
        table[flight, "failed"] = frozenset({"absent"})
        table[flight, "vanished"] = frozenset({"absent"})
        table[flight, "unknown"] = frozenset({"undecidable"})
    # A judgement may become more definite.
    table["unknown", "vanished"] = frozenset({"absent"})
    table["unknown", "failed"] = frozenset({"absent"})
    for old in ("unconfirmed", "accepted", "started", *_JUDGED):
        table[old, "queued"] = _QUEUED
    for old in ("unconfirmed", "accepted", "queued", *_JUDGED):
        table[old, "started"] = _STARTED
    for old in DELIVERIES:
        if old != "delivered":
            table[old, "delivered"] = _HISTORY
    for old in ("prepared", "unconfirmed", *_JUDGED):
        table[old, "superseded"] = _PERSON
        table[old, "discarded"] = _PERSON
        table[old, "redacted"] = frozenset({"redacted"})
    return table


def _outcome_table() -> dict[tuple[TurnOutcome, TurnOutcome], frozenset[EvidenceKind]]:
    running: frozenset[EvidenceKind] = frozenset(
        {"run_seen", "turn_running", "echo", "dequeued", "server_reran"}
    )
    ends: dict[TurnOutcome, EvidenceKind] = {
        "done": "turn_done",
        "cancelled": "turn_cancelled",
        "failed": "turn_failed",
    }
    table: dict[tuple[TurnOutcome, TurnOutcome], frozenset[EvidenceKind]] = {
        ("none", "running"): running,
        ("none", "awaiting_approval"): frozenset({"approval_asked"}),
        ("running", "awaiting_approval"): frozenset({"approval_asked"}),
        ("awaiting_approval", "running"): frozenset({"approval_settled", *running}),
        ("ended_unseen", "running"): frozenset({"server_reran"}),
    }
    live: tuple[TurnOutcome, ...] = ("none", "running", "awaiting_approval")
    for old in live:
        table[old, "ended_unseen"] = frozenset({"idle"})
    for end, kind in ends.items():
        for old in (*live, "ended_unseen"):
            # "ended unseen" is filled in when the keeper's note of the end turns up.
            table[old, end] = frozenset({kind})
        table[end, "running"] = frozenset({"server_reran"})
    return table


DELIVERY_MOVES: Final[Mapping[tuple[Delivery, Delivery], frozenset[EvidenceKind]]] = _delivery_table()
OUTCOME_MOVES: Final[Mapping[tuple[TurnOutcome, TurnOutcome], frozenset[EvidenceKind]]] = _outcome_table()

APPROVAL_MOVES: Final[Mapping[ApprovalState, frozenset[ApprovalState]]] = {
    "decided": frozenset(
        {"written", "acknowledged", "refused", "settled_elsewhere", "closed_by_server", "lost"}
    ),
    "written": frozenset({"acknowledged", "refused", "settled_elsewhere", "closed_by_server", "lost"}),
    # Acknowledged is not done: the server may close the call, and says yes to requests that are gone.
    "acknowledged": frozenset({"closed_by_server", "settled_elsewhere", "lost"}),
    "refused": frozenset({"settled_elsewhere", "closed_by_server"}),
    "lost": frozenset({"acknowledged", "settled_elsewhere", "closed_by_server"}),
}


def can_move(old: Delivery, new: Delivery, kind: EvidenceKind) -> bool:
    """Whether evidence of ``kind`` may move a send from ``old`` to ``new``."""
    return kind in DELIVERY_MOVES.get((old, new), ())


def can_end(old: TurnOutcome, new: TurnOutcome, kind: EvidenceKind) -> bool:
    """Whether evidence of ``kind`` may move a turn outcome from ``old`` to ``new``."""
    return kind in OUTCOME_MOVES.get((old, new), ())


_IMPLIES: Final[Mapping[EvidenceKind, Delivery]] = {
    "attempt": "unconfirmed",
    "ack": "accepted",
    "refused": "rejected",
    "queue_seen": "queued",
    "dequeued": "started",
    "run_seen": "started",
    "echo": "started",
    "removed": "cancelled",
    "history_row": "delivered",
    "history_twice": "delivered",
}

_IMPLIES_OUTCOME: Final[Mapping[EvidenceKind, TurnOutcome]] = {
    "run_seen": "running",
    "turn_running": "running",
    "echo": "running",
    "dequeued": "running",
    "server_reran": "running",
    "approval_settled": "running",
    "approval_asked": "awaiting_approval",
    "turn_done": "done",
    "turn_cancelled": "cancelled",
    "turn_failed": "failed",
}


def implied(delivery: Delivery, kind: EvidenceKind) -> Delivery:
    """Where live evidence of ``kind`` takes a send; ``delivery`` itself when it takes it nowhere."""
    new = _IMPLIES.get(kind)
    return new if new is not None and can_move(delivery, new, kind) else delivery


def implied_outcome(outcome: TurnOutcome, kind: EvidenceKind) -> TurnOutcome:
    """Where live evidence of ``kind`` takes a turn outcome; itself when nowhere."""
    new = _IMPLIES_OUTCOME.get(kind)
    return new if new is not None and can_end(outcome, new, kind) else outcome


def delivery_rows() -> Iterator[tuple[str, str, str]]:
    """``(old, new, evidence kind)`` rows for the database's table."""
    for (old, new), kinds in DELIVERY_MOVES.items():
        for kind in sorted(kinds):
            yield old, new, kind


def outcome_rows() -> Iterator[tuple[str, str, str]]:
    """``(old, new, evidence kind)`` rows for the database's table."""
    for (old, new), kinds in OUTCOME_MOVES.items():
        for kind in sorted(kinds):
            yield old, new, kind


def approval_rows() -> Iterator[tuple[str, str]]:
    """``(old, new)`` rows for the database's table."""
    for old, news in APPROVAL_MOVES.items():
        for new in sorted(news):
            yield old, new
