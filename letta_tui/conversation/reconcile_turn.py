"""How the turn of a message stands, apart from whether it was delivered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from letta_tui.conversation.reconcile_values import EndNote, Reading
from letta_tui.ledger.transitions import ENDED, can_end
from letta_tui.ledger.values import Evidence, EvidenceKind, Send, Stamp, TurnOutcome

_END_KINDS: Final[Mapping[TurnOutcome, EvidenceKind]] = {
    "done": "turn_done",
    "cancelled": "turn_cancelled",
    "failed": "turn_failed",
}
_STARTS: Final[tuple[EvidenceKind, ...]] = ("run_seen", "dequeued", "echo", "turn_running", "history_row")


@dataclass(frozen=True, slots=True)
class Turn:
    """The outcome, the evidence for a change, and whether another reading would tell more."""

    outcome: TurnOutcome
    evidence: tuple[Evidence, ...] = ()
    terminal: Mapping[str, Any] | None = None
    again: bool = False

    @property
    def over(self) -> bool:
        return self.outcome in ENDED


def turn(send: Send, reading: Reading, *, delivered: bool, gone: bool = False) -> Turn:
    """The turn outcome by a reading. ``gone``: the message was judged to be nowhere."""
    outcome = send.outcome
    run = reading.loop.active_run_of(send.client_message_id) if reading.loop is not None else None
    if run is not None:
        return _running(send, reading, run)
    noted = _noted_end(send, reading)
    if noted is not None and outcome not in ("done", "cancelled", "failed"):
        kind = _END_KINDS[noted.outcome]
        if can_end(outcome, noted.outcome, kind):
            evidence = _evidence(kind, reading, noted.run_id, dict(noted.terminal))
            if "seen_by" in noted.terminal:  # not on the connection of this reading, whatever server that is
                evidence = replace(evidence, connection_id="", server_life="")
            return Turn(noted.outcome, (evidence,), dict(noted.terminal))
    if outcome in ENDED or not (delivered or gone) or (gone and outcome == "none"):
        return Turn(outcome)
    if reading.loop is None or not reading.loop.idle:
        return Turn(outcome)
    if gone or _started_before(send, reading.fence):
        return Turn("ended_unseen", (_evidence("idle", reading),))
    # It may have started between the loop status and the history: only a later reading can tell.
    return Turn(outcome, again=True)


def _running(send: Send, reading: Reading, run: str) -> Turn:
    waiting = reading.loop is not None and reading.loop.approvals_pending > 0
    target: TurnOutcome = "awaiting_approval" if waiting else "running"
    if send.outcome == target:
        return Turn(target)
    if send.outcome in ENDED:
        last = max((send.last[k].seq for k in _END_KINDS.values() if k in send.last), default=0)
        stamp = next((e.stamp for e in send.last.values() if e.seq == last), None)
        if stamp is not None and reading.fence is not None and not _before(stamp, reading.fence):
            return Turn(send.outcome)  # the end is newer than this reading
        return Turn("running", (_evidence("server_reran", reading, run),))
    kind: EvidenceKind = "approval_asked" if waiting else "run_seen"
    if not can_end(send.outcome, target, kind):
        return Turn(send.outcome)
    return Turn(target, (_evidence(kind, reading, run),))


def _noted_end(send: Send, reading: Reading) -> EndNote | None:
    found = [end for end in reading.ends if send.client_message_id in end.client_message_ids]
    return found[-1] if found else None


def _started_before(send: Send, fence: Stamp | None) -> bool:
    """Whether its turn had begun before the reading did, so that an idle loop in it means the end."""
    if fence is None:
        return False
    stamps = [send.last[kind].stamp for kind in _STARTS if kind in send.last]
    return any(stamp is not None and _before(stamp, fence) for stamp in stamps)


def _before(stamp: Stamp, fence: Stamp) -> bool:
    """Earlier, or of another start of the machine, which is earlier than any live reading."""
    return stamp.boot != fence.boot or stamp.mono <= fence.mono


def _evidence(
    kind: EvidenceKind, reading: Reading, run_id: str = "", payload: dict[str, Any] | None = None
) -> Evidence:
    return Evidence(
        kind,
        stamp=reading.now,
        connection_id=reading.connection_id,
        run_id=run_id,
        server_life=reading.server_life,
        payload=payload or {},
    )
