"""What no state may break."""

from __future__ import annotations

from dataclasses import replace

from letta_tui.conversation.reconcile import Verdict
from letta_tui.ledger.transitions import HOLDS
from tests.model.state import Window, World, root


def check(before: World, w: World) -> World:
    """P1, P2, P4 and the order of messages, in every state."""
    if w.broken:
        return w
    for send in w.sends:
        if send.delivery == "delivered" and send.client_message_id not in w.history:
            return replace(w, broken=f"P4: {send.client_message_id} called delivered without a history row")
        by_itself = send.delivery in ("discarded", "redacted", "superseded") and not send.superseded_by
        if by_itself or not send.text:
            return replace(w, broken=f"P1: {send.client_message_id} disappeared")
    for key in {root(key) for key in w.runs}:
        by_us = sum(root(run) == key for run in w.runs) - sum(root(run) == key for run in w.reruns)
        if by_us > 1 and key not in w.risked:
            return replace(w, broken=f"P2: {key} ran {by_us} times without a choice that told the risk")
    return _in_order(before, w)


def _in_order(before: World, w: World) -> World:
    """Nothing is committed to be written behind a message of the same window that is not known of."""
    owner = dict(w.owners)
    for number, send in enumerate(w.sends):
        old = before.find(send.client_message_id)
        if old is None or old.delivery != "prepared" or send.delivery != "unconfirmed":
            continue
        for earlier in w.sends[:number]:
            same = owner[earlier.client_message_id] == owner[send.client_message_id]
            if same and earlier.delivery in HOLDS:
                words = f"{send.client_message_id} overtook {earlier.client_message_id}"
                return replace(w, broken=f"order: {words}, which is {earlier.delivery}")
    return w


def judged(w: World, me: Window, verdicts: tuple[Verdict, ...]) -> World:
    """P4 and P5 at the moment of judging."""
    for verdict in verdicts:
        key = verdict.client_message_id
        somewhere = (
            key in (w.limbo, w.running)
            or key in w.queue
            or key in w.history
            or key in w.pending
            or any(f.key == key for f in w.to_server)
        )
        gone = verdict.delivery in ("vanished", "failed") or verdict.sentence == "lost_safe"
        now = w.find(key)
        taken = now is not None and now.delivery == verdict.delivery and now.sentence == verdict.sentence
        if gone and taken and somewhere and not w.late and any(e.kind == "absent" for e in verdict.evidence):
            return replace(w, broken=f"P4: {key} called {verdict.sentence} while the server has it")
        if me.history_read.count(key) > 1 and not w.compacted and verdict.sentence != "delivered_twice":
            return replace(w, broken=f"P5: {key} ran twice and nobody says so")
    return w
