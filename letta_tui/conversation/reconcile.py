"""``reconcile``: from ledger rows and one reading of the server to verdicts, as a pure function.

Rules 1–7 of the send ledger. A :class:`Reading` is what was read after ``runtime_start`` (or ``sync``)
had been answered: a queue snapshot, a **later** loop status, a device status, then history from the
oldest anchor up to the head. Positive evidence counts always; absence only from a complete reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from letta_tui.conversation.reconcile_absence import (
    BURNT,
    SERVER_HAD_IT,
    doubt_of,
    error_is_final,
    same_id_doubt,
    same_id_is_safe,
    waits_for,
)
from letta_tui.conversation.reconcile_offers import offers, standing
from letta_tui.conversation.reconcile_reply import Reply, reply_of
from letta_tui.conversation.reconcile_turn import Turn, turn
from letta_tui.conversation.reconcile_values import (
    EndNote,
    Held,
    HistoryRead,
    HistoryRow,
    LoopRead,
    Offer,
    Policy,
    QueueRead,
    Reading,
    RiskKey,
    SentenceKey,
    Verdict,
)
from letta_tui.ledger.transitions import AWAITS_PERSON, HOLDS, can_move
from letta_tui.ledger.values import Delivery, Evidence, EvidenceKind, Send

__all__ = [
    "EndNote",
    "Held",
    "HistoryRead",
    "HistoryRow",
    "LoopRead",
    "Offer",
    "Policy",
    "QueueRead",
    "Reading",
    "RiskKey",
    "SentenceKey",
    "Verdict",
    "held",
    "reconcile",
    "same_id_is_safe",
]

_DEFAULT: Final = Policy()


_REPLIES: Final[Mapping[Reply, SentenceKey]] = {
    "own": "delivered",
    "none": "delivered_no_reply",
    "shared": "delivered_next",
}


def reconcile(
    sends: Iterable[Send], reading: Reading | None, policy: Policy | None = None
) -> tuple[Verdict, ...]:
    """A verdict for every send of the reading's conversation, in the order given. Idempotent: applied to
    rows that already carry its verdicts it returns the same states and no new evidence.

    ``reading`` is ``None`` while not connected: then nothing is judged.
    """
    rules = policy or _DEFAULT
    if reading is None:
        return tuple(_unread(send) for send in sends)
    return tuple(_judge(send, reading, rules) for send in sends if send.place == reading.place)


def held(sends: Iterable[Send], *, queue_length: int = 0, policy: Policy | None = None) -> tuple[Held, ...]:
    """Rule 7: which prepared sends of one conversation (in the order prepared) must not be written now.

    A send behind an unconfirmed or unknown one waits for it; beyond the queue limit it waits for room, so
    that the server's queue never drops the oldest.
    """
    rules = policy or _DEFAULT
    found: list[Held] = []
    blocker: Send | None = None
    room = rules.queue_limit - queue_length
    for send in sends:
        if send.delivery in HOLDS:
            blocker = blocker or send
        elif send.delivery == "prepared":
            if blocker is not None:
                key, behind = send.client_message_id, blocker.client_message_id
                unknown = blocker.delivery == "unknown"
                found.append(Held(key, behind, "unknown" if unknown else "unconfirmed"))
            elif room <= 0:
                found.append(Held(send.client_message_id, "", "queue_long"))
            else:
                room -= 1
    return tuple(found)


# --- one send ------------------------------------------------------------------------------------


def _unread(send: Send) -> Verdict:
    sentence = standing(send)
    if send.delivery not in AWAITS_PERSON and sentence == "checking":
        # Also "did not arrive": without a connection the offers of an earlier reading are stale.
        return _verdict(send, sentence="offline")
    return _verdict(send, sentence=sentence, offers=offers(send.delivery, sentence, send))


def _judge(send: Send, reading: Reading, policy: Policy) -> Verdict:
    """Rule 1: history, then active turn, then queue, then error or removal, then silence."""
    rows = _rows_of(send, reading.history)
    if rows:
        return _delivered(send, reading, rows)
    if send.delivery in ("delivered", "superseded", "discarded", "redacted"):
        # Gone from a page or after a compaction is not gone from the world (rule 10).
        ended = turn(send, reading, delivered=send.delivery == "delivered")
        return _verdict(send, sentence=_delivered_sentence(send, ended, None), ended=ended)
    if send.delivery == "prepared":
        return _verdict(send, sentence="not_sent", offers=offers("prepared", "not_sent", send))
    run = reading.loop.active_run_of(send.client_message_id) if reading.loop is not None else None
    if run is not None and _moves(send, "started", "run_seen"):
        seen = _evidence("run_seen", reading, run_id=run)
        ended = turn(send, reading, delivered=False)
        if send.delivery == "started":
            return _verdict(send, sentence="started", ended=ended)
        # One sighting of the run moves both columns.
        rest = replace(ended, evidence=tuple(e for e in ended.evidence if e.kind != "run_seen"))
        return _verdict(send, delivery="started", sentence="started", evidence=(seen,), ended=rest)
    if _queued(send, reading):
        kept = () if send.delivery == "queued" else (_evidence("queue_seen", reading),)
        return _verdict(send, delivery="queued", sentence="queued", evidence=kept)
    return _absent(send, reading, policy)


def _moves(send: Send, to: Delivery, kind: EvidenceKind) -> bool:
    return send.delivery == to or can_move(send.delivery, to, kind)


def _queued(send: Send, reading: Reading) -> bool:
    if reading.queue is None or send.client_message_id not in reading.queue.client_message_ids:
        return False
    if send.delivery == "started" and send.rests_on is not None:
        # Back in the queue only after a restart; on one connection the snapshot is simply older.
        return send.rests_on.connection_id != reading.connection_id
    return _moves(send, "queued", "queue_seen")


def _delivered(send: Send, reading: Reading, rows: tuple[HistoryRow, ...]) -> Verdict:
    evidence: list[Evidence] = []
    ids = [row.row_id for row in rows]
    if send.delivery != "delivered":
        evidence.append(_evidence("history_row", reading, row_ids=ids[:1]))
    if len(rows) > 1 and "history_twice" not in send.last:
        evidence.append(_evidence("history_twice", reading, row_ids=ids))
    ended = turn(send, reading, delivered=True)
    sentence = _delivered_sentence(send, ended, reading, twice=len(rows) > 1)
    return _verdict(send, delivery="delivered", sentence=sentence, evidence=tuple(evidence), ended=ended)


def _delivered_sentence(
    send: Send, ended: Turn, reading: Reading | None, *, twice: bool = False
) -> SentenceKey:
    """``reading`` is ``None`` when its row is not in the reading."""
    if reading is None and send.delivery in ("superseded", "discarded", "redacted"):
        return standing(send)
    if twice or "history_twice" in send.last:
        return "delivered_twice"
    if ended.over and "server_reran" in send.last:
        return "delivered_again"
    if not ended.over:
        return "delivered"
    if reading is None or reading.history is None:
        return standing(send)
    seen = replace(send, outcome=ended.outcome, terminal=ended.terminal or send.terminal)
    return _REPLIES[reply_of(seen, reading.history, reading.ends)]


def _absent(send: Send, reading: Reading, policy: Policy) -> Verdict:
    """The message is in none of history, turn and queue of this reading: is that a proof (rules 2–5)?"""
    if send.delivery in ("rejected", "cancelled", "failed", "vanished"):
        sentence = standing(send)
        return _verdict(send, sentence=sentence, offers=offers(send.delivery, sentence, send))
    if send.delivery == "unknown" and (send.salvaged or not send.last.keys() & SERVER_HAD_IT):
        sentence = standing(send)
        return _verdict(send, sentence=sentence, offers=offers("unknown", sentence, send))
    waits = waits_for(send, reading, policy)
    if waits is not None:
        if send.delivery == "unknown":
            sentence = standing(send)
            return _verdict(send, sentence=sentence, offers=offers("unknown", sentence, send), again=True)
        return _verdict(send, sentence=waits, again=True)
    doubt = doubt_of(send, reading, policy)
    if doubt is not None:
        if send.delivery == "unknown":
            return _verdict(send, sentence=doubt, offers=offers("unknown", doubt, send))
        return _settle(send, reading, "unknown", doubt, "undecidable")
    kinds = send.last.keys()
    if "loop_error" in kinds and error_is_final(send, reading):
        return _settle(send, reading, "failed", "failed", "absent")
    if send.delivery != "unconfirmed" or kinds & (SERVER_HAD_IT | BURNT):
        burnt = bool(kinds & BURNT)
        return _settle(send, reading, "vanished", "unknown_burnt" if burnt else "vanished", "absent")
    doubt = same_id_doubt(send, reading, policy)
    if doubt is not None:
        return _settle(send, reading, "unknown", doubt, "undecidable")
    last = send.last.get("absent")
    evidence = _evidence("absent", reading, **_summary(reading))
    known = last is not None and last.connection_id == reading.connection_id
    known = known and last is not None and _after(last, send)
    return _verdict(
        send,
        sentence="lost_safe",
        evidence=() if known else (evidence,),
        offers=offers("unconfirmed", "lost_safe", send),
    )


def _settle(send: Send, reading: Reading, to: Delivery, sentence: SentenceKey, kind: EvidenceKind) -> Verdict:
    ended = turn(send, reading, delivered=False, gone=True)
    evidence = _evidence(kind, reading, **_summary(reading), sentence=sentence)
    return _verdict(
        send,
        delivery=to,
        sentence=sentence,
        evidence=(evidence,),
        offers=offers(to, sentence, send),
        ended=ended,
    )


# --- small things ----------------------------------------------------------------------------------


def _after(evidence: Evidence, send: Send) -> bool:
    attempt = send.last.get("attempt")
    return attempt is None or evidence.seq > attempt.seq


def _rows_of(send: Send, history: HistoryRead | None) -> tuple[HistoryRow, ...]:
    """Rows that carry the send's otid, each row once (pages may overlap)."""
    if history is None:
        return ()
    return tuple({row.row_id: row for row in history.rows if row.otid == send.otid}.values())


def _evidence(kind: EvidenceKind, reading: Reading, *, run_id: str = "", **payload: Any) -> Evidence:
    return Evidence(
        kind,
        stamp=reading.now,
        connection_id=reading.connection_id,
        run_id=run_id,
        server_life=reading.server_life,
        payload=payload,
    )


def _summary(reading: Reading) -> dict[str, Any]:
    """What a judgement rests on, for the record."""
    queue, loop, history = reading.queue, reading.loop, reading.history
    return {
        "queue": sorted(queue.client_message_ids) if queue else None,
        "idle": loop.idle if loop else None,
        "history_rows": len(history.rows) if history else None,
        "history_first": history.rows[0].row_id if history and history.rows else "",
        "history_last": history.rows[-1].row_id if history and history.rows else "",
        "history_from_start": history.from_start if history else None,
        "orders": [queue.order if queue else None, loop.order if loop else None, history.order]
        if history
        else None,
        "second": reading.second,
        "server_version": reading.server_version,
    }


def _verdict(
    send: Send,
    *,
    sentence: SentenceKey,
    delivery: Delivery | None = None,
    evidence: tuple[Evidence, ...] = (),
    offers: tuple[Offer, ...] = (),
    ended: Turn | None = None,
    again: bool = False,
) -> Verdict:
    return Verdict(
        client_message_id=send.client_message_id,
        delivery=delivery or send.delivery,
        outcome=ended.outcome if ended else send.outcome,
        sentence=sentence,
        evidence=evidence + (ended.evidence if ended else ()),
        offers=offers,
        terminal=ended.terminal if ended else None,
        again=again or (ended is not None and ended.again),
    )
