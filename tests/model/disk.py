"""The ledger in memory, by the production table: ``Ledger.observe``, ``judge`` and ``begin_attempt``."""

from __future__ import annotations

from dataclasses import replace

from letta_tui.conversation.reconcile import Verdict
from letta_tui.ledger import transitions
from letta_tui.ledger.moves import as_it_counts
from letta_tui.ledger.values import Attempt, Evidence, Send
from tests.model.state import Frame, Rules, Window, World


def numbered(send: Send, evidence: Evidence) -> Evidence:
    return replace(evidence, seq=1 + max((e.seq for e in send.last.values()), default=0))


def observe(send: Send, evidence: Evidence, rules: Rules) -> Send:
    counted = evidence if rules.without == "repeated answers prove nothing" else as_it_counts(send, evidence)
    delivery = transitions.implied(send.delivery, counted.kind)
    if rules.without == "delivered needs history" and counted.kind == "ack":
        delivery = "delivered"
    outcome = transitions.implied_outcome(send.outcome, counted.kind)
    counted = numbered(send, counted)
    moved = counted if delivery != send.delivery else send.rests_on
    return replace(
        send,
        delivery=delivery,
        outcome=outcome,
        rests_on=moved,
        last={**send.last, counted.kind: counted},
    )


def judge(send: Send, basis: Send, verdict: Verdict, rules: Rules) -> Send:
    """``basis``: the row the verdict was made from. If it went on meanwhile, a judgement does not move it."""
    same = send.delivery == basis.delivery and send.attempts == basis.attempts
    same = same or rules.without == "a verdict is about the row it was made from"
    for found in verdict.evidence:
        item = numbered(send, found)
        if (
            same
            and send.delivery != verdict.delivery
            and transitions.can_move(send.delivery, verdict.delivery, item.kind)
        ):
            send = replace(
                send,
                delivery=verdict.delivery,
                outcome=transitions.implied_outcome(send.outcome, item.kind),
                rests_on=item,
                last={**send.last, item.kind: item},
            )
        elif (
            same
            and send.outcome != verdict.outcome
            and transitions.can_end(send.outcome, verdict.outcome, item.kind)
        ):
            send = replace(send, outcome=verdict.outcome, last={**send.last, item.kind: item})
        else:
            send = observe(send, item, rules)
    if not same:
        return send
    return replace(send, sentence=verdict.sentence)


def begin(world: World, window: Window, send: Send) -> World:
    """The second commit, and the frame that is about to be written."""
    number = len(send.attempts) + 1
    request = f"r{number}{send.client_message_id}"
    frame = Frame(send.client_message_id, window.connection, request)
    attempt = Attempt(frame.key, number, request, window.connection, world.now(), None, "0.34.12")
    evidence = numbered(send, Evidence("attempt", stamp=world.now(), connection_id=window.connection))
    begun = replace(
        send,
        delivery="unconfirmed",
        rests_on=evidence if send.delivery == "prepared" else send.rests_on,
        attempts=(*send.attempts, attempt),
        last={**send.last, "attempt": evidence},
    )
    return world.with_send(begun).with_window(replace(window, to_write=frame, verdicts=()))
