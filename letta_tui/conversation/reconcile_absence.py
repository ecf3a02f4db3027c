"""May a message that a reading does not show be called absent, and may its id be repeated (rules 2–5)?"""

from __future__ import annotations

from typing import Final

from letta_tui.conversation.reconcile_values import HistoryRead, Policy, Reading, SentenceKey
from letta_tui.ledger.values import EvidenceKind, Send, Stamp

SERVER_HAD_IT: Final[frozenset[EvidenceKind]] = frozenset(
    {"ack", "queue_seen", "dequeued", "run_seen", "echo", "removed", "loop_error"}
)
BURNT: Final[frozenset[EvidenceKind]] = frozenset({"loop_error", "removed", "removed_late", "ack_repeat"})


def same_id_is_safe(send: Send, now: Stamp, policy: Policy | None = None) -> bool:
    """Whether repeating the id is still free of risk at this moment. Offers grow old while they are on the
    screen: ask again right before the write."""
    return (
        send.delivery == "unconfirmed"
        and bool(send.attempts)
        and not send.salvaged
        and not send.last.keys() & (SERVER_HAD_IT | BURNT)
        and _too_old(send, now, policy or Policy()) is None
    )


def waits_for(send: Send, reading: Reading, policy: Policy) -> SentenceKey | None:
    """Why this reading cannot show absence yet although a later one may; ``None`` when it can."""
    queue, loop, history = reading.queue, reading.loop, reading.history
    if queue is None or loop is None or history is None or reading.fence is None:
        return "checking"
    if not queue.order < loop.order < history.order or not history.to_head:
        return "checking"  # read in an order in which a moving item can be missed
    if not loop.idle:
        return "busy"  # a started input may be nowhere until its run exists
    broken = any(attempt.connection_id != reading.connection_id for attempt in send.attempts)
    if not reading.second and (broken or "loop_error" not in send.last):
        # Bytes of a broken connection may still be on their way, and an input that was just taken may be
        # nowhere for a moment. An error that names it on this connection leaves nothing to wait for.
        return "checking"
    for attempt in send.attempts:
        here = attempt.connection_id == reading.connection_id
        if here and (attempt.written is None or not _not_before(reading.fence, attempt.written)):
            return "checking"  # nothing answered yet proves that the server has read it
        if not here and not _long_before(attempt.written or attempt.began, reading, policy):
            return "checking"  # another window has just written it, on a connection that is not broken
    for kind in ("queue_seen", "dequeued", "run_seen", "ack"):
        seen = send.last.get(kind)
        on_this = seen is not None and seen.connection_id == reading.connection_id
        if on_this and seen is not None and not _not_before(reading.fence, seen.stamp):
            return "checking"  # it was seen alive after this reading began
    error = send.last.get("loop_error")
    if error is not None and not _not_before(reading.fence, error.stamp):
        return "checking"  # history has to be read after the error
    return None


def doubt_of(send: Send, reading: Reading, policy: Policy) -> SentenceKey | None:
    """Why absence can never be shown by readings like this one."""
    if send.salvaged or not send.attempts:
        return "unknown_salvaged"
    if not reading.server_version.startswith(policy.tested):
        return "unknown_server"
    assert reading.history is not None
    return None if _reaches_anchor(send, reading.history) else "unknown_history"


def _reaches_anchor(send: Send, history: HistoryRead) -> bool:
    """Whether every row after the anchor is in the reading. The anchor still being there also shows that
    this is the conversation the message was meant for."""
    summaries = [n for n, row in enumerate(history.rows) if row.kind == "summary"]
    if history.compacted and not summaries:
        return False
    if send.anchor is None or send.anchor.row_id == "":
        return history.from_start and not summaries
    for index, row in enumerate(history.rows):
        if row.row_id == send.anchor.row_id:
            return not any(n > index for n in summaries)
    return False


def same_id_doubt(send: Send, reading: Reading, policy: Policy) -> SentenceKey | None:
    """Rule 4: why repeating the id could run it twice; ``None`` when it cannot."""
    if reading.deduplicates is False:
        return "unknown_server"
    for attempt in send.attempts:
        if attempt.server_version and not attempt.server_version.startswith(policy.tested):
            return "unknown_server"
    return _too_old(send, reading.now, policy)


def _too_old(send: Send, now: Stamp, policy: Policy) -> SentenceKey | None:
    age = _age(now, send.attempts[0].began, policy)
    if age is None:
        return "unknown_clock"
    return "unknown_old" if age >= policy.same_id else None


def _age(now: Stamp, then: Stamp, policy: Policy) -> float | None:
    """Seconds by the more pessimistic clock; ``None`` after a restart or when a clock was set back.

    The wall clock counts sleep, the monotonic one cannot be set: the larger is the safe one.
    """
    wall, mono = now.wall - then.wall, now.mono - then.mono
    if now.boot != then.boot or mono < 0 or wall < mono - policy.clock_slack:
        return None
    return max(wall, mono)


def error_is_final(send: Send, reading: Reading) -> bool:
    """The error came on this connection, which is also the one of the last write: nothing restarted."""
    error = send.last["loop_error"]
    here = reading.connection_id
    return error.connection_id == here and send.attempts[-1].connection_id == here


def _long_before(stamp: Stamp, reading: Reading, policy: Policy) -> bool:
    """Whether bytes written then have had their time to arrive when the reading began. Another start
    of the machine is before any live reading; an instant to come is a clock that was set back."""
    fence = reading.fence
    if fence is None or stamp.boot != fence.boot or stamp.mono > reading.now.mono:
        return True
    return fence.mono - stamp.mono >= policy.settle


def _not_before(stamp: Stamp, other: Stamp | None) -> bool:
    return other is not None and stamp.boot == other.boot and stamp.mono >= other.mono
