"""``reconcile``: what a reading may and may not say of a message."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from letta_tui.conversation.reconcile import (
    EndNote,
    HistoryRead,
    HistoryRow,
    LoopRead,
    Policy,
    QueueRead,
    Verdict,
    held,
    reconcile,
    same_id_is_safe,
)
from letta_tui.ledger import transitions
from letta_tui.ledger.values import Anchor, EvidenceKind
from tests.ledger.conftest import CONSENT, OTHER
from tests.model.bench import ANCHOR, BUSY, Bench, mine


def actions(verdict: Verdict) -> dict[str, str]:
    return {o.action: o.risk for o in verdict.offers}


def test_history_says_delivered_whatever_else_is_not_known(bench: Bench) -> None:
    bench.prepare()
    bench.write()
    partial = HistoryRead(3, (mine(),), to_head=False, compacted=True)
    verdict = bench.judge(history=partial, loop=BUSY, queue=None, server_version="9.9", second=False)
    assert (verdict.delivery, verdict.sentence) == ("delivered", "delivered")


def test_two_rows_are_a_second_run_of_the_server(bench: Bench) -> None:
    bench.prepare()
    bench.write()
    assert bench.judge((mine(1), mine(1))).sentence != "delivered_twice", "the same row on two pages"
    assert bench.judge((mine(1), mine(2))).sentence == "delivered_twice"
    send = bench.ledger.send("m1")
    assert send is not None
    assert send.last["history_twice"].payload == {"row_ids": ["ui-msg-1", "ui-msg-2"]}


def test_a_run_or_the_queue_is_where_it_is(bench: Bench) -> None:
    bench.prepare()
    bench.write()
    queue = QueueRead(1, frozenset({"m1"}))
    assert bench.judge(queue=queue, loop=BUSY).delivery == "queued"
    running = LoopRead(2, False, ("run-4",), {"run-4": ("m0", "m1")}, processing=True)
    verdict = bench.judge(queue=queue, loop=running)
    assert (verdict.delivery, verdict.outcome) == ("started", "running")
    send = bench.ledger.send("m1")
    assert send is not None
    assert send.run_ids == ("run-4",)
    assert bench.judge(queue=queue, loop=BUSY, second=False).delivery == "started", "the snapshot is older"
    assert bench.judge(queue=queue, connection_id="c2").delivery == "queued", "a restarted server took it up"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"second": False}, "checking"),
        ({"queue": None}, "checking"),
        ({"loop": None}, "checking"),
        ({"history": None}, "checking"),
        ({"fence": None}, "checking"),
        ({"loop": BUSY}, "busy"),
        ({"loop": LoopRead(2, True, processing=None)}, "busy"),
        ({"loop": LoopRead(2, True, processing=False, approvals_pending=1)}, "busy"),
        ({"queue": QueueRead(5, frozenset())}, "checking"),
        ({"history": HistoryRead(1, (ANCHOR,))}, "checking"),
        ({"history": HistoryRead(3, (ANCHOR,), to_head=False)}, "checking"),
    ],
)
def test_nothing_is_called_absent_from_a_partial_or_busy_reading(
    bench: Bench, changes: dict[str, Any], sentence: str
) -> None:
    bench.prepare()
    bench.write()
    verdict = bench.judge(**changes)
    assert (verdict.delivery, verdict.sentence, verdict.offers, verdict.again) == (
        "unconfirmed",
        sentence,
        (),
        True,
    )


def test_a_fence_sent_before_the_write_proves_nothing(bench: Bench) -> None:
    early = bench.clock()
    bench.clock.advance(1)
    bench.prepare()
    bench.write()
    assert bench.judge(fence=early).sentence == "checking"
    bench.prepare("m2")
    bench.ledger.begin_attempt("m2", request_id="r", connection_id="c1")
    reading = bench.reading()
    assert reconcile(bench.ledger.sends(), reading)[1].sentence == "checking", "not known to be written"


def test_absent_young_and_unanswered_may_go_again_under_the_same_id(bench: Bench) -> None:
    bench.prepare()
    bench.write()
    verdict = bench.judge()
    assert (verdict.delivery, verdict.sentence) == ("unconfirmed", "lost_safe")
    assert actions(verdict)["resend"] == "safe_same_id"
    assert "send_new" not in actions(verdict)
    send = bench.ledger.send("m1")
    assert send is not None
    assert same_id_is_safe(send, bench.clock())
    bench.clock.sleep(50 * 60)
    assert not same_id_is_safe(send, bench.clock()), "the offer grew old on the screen"
    kinds = [e.kind for e in bench.ledger.evidence("m1")]
    assert kinds.count("absent") == 1
    # With the connection gone the offer goes too.
    assert reconcile([send], None)[0].sentence == "offline"
    assert reconcile([send], None)[0].offers == ()


def late(bench: Bench) -> None:
    bench.clock.advance(50 * 60)


def asleep(bench: Bench) -> None:
    bench.clock.sleep(50 * 60)


def rebooted(bench: Bench) -> None:
    bench.clock.boot = "boot-2"
    bench.clock.mono = 5.0


def set_back(bench: Bench) -> None:
    bench.clock.wall -= 3600


@pytest.mark.parametrize(
    ("happens", "changes", "sentence"),
    [
        (late, {}, "unknown_old"),
        (asleep, {}, "unknown_old"),
        (rebooted, {}, "unknown_clock"),
        (set_back, {}, "unknown_clock"),
        (None, {"server_version": "0.35.0"}, "unknown_server"),
        (None, {"server_version": ""}, "unknown_server"),
        (None, {"deduplicates": False}, "unknown_server"),
        (None, {"history": HistoryRead(3, (mine(5, "x"),), from_start=True)}, "unknown_history"),
        (
            None,
            {"history": HistoryRead(3, (ANCHOR, HistoryRow("s", "", "summary")), compacted=True)},
            "unknown_history",
        ),
        (None, {"history": HistoryRead(3, (ANCHOR,), compacted=True)}, "unknown_history"),
    ],
)
def test_otherwise_it_is_unknown_and_a_new_message_needs_consent(
    bench: Bench, happens: Any, changes: dict[str, Any], sentence: str
) -> None:
    bench.prepare()
    bench.write()
    if happens is not None:
        happens(bench)
    verdict = bench.judge(connection_id="c2", **changes)
    assert (verdict.delivery, verdict.sentence) == ("unknown", sentence)
    assert actions(verdict)["send_new"] == "may_run_twice"
    assert "resend" not in actions(verdict)
    send = bench.ledger.send("m1")
    assert send is not None
    assert reconcile([send], None)[0].sentence == sentence, "the words last until something new is known"
    # Later history evidence upgrades anything.
    assert bench.judge((mine(),)).delivery == "delivered"


def test_a_compaction_before_the_anchor_does_not_matter(bench: Bench) -> None:
    bench.prepare()
    bench.write()
    history = HistoryRead(3, (HistoryRow("s", "", "summary"), ANCHOR), compacted=True)
    assert bench.judge(history=history).sentence == "lost_safe"


def test_without_an_anchor_history_must_be_whole(bench: Bench) -> None:
    bench.prepare(anchor=None)
    bench.write()
    whole = HistoryRead(3, (), from_start=True)
    assert bench.judge(history=HistoryRead(3, (), from_start=False)).sentence == "unknown_history"
    bench.prepare("m2", anchor=Anchor(""))
    bench.write("m2")
    assert reconcile(bench.ledger.sends(), bench.reading(history=whole))[1].sentence == "lost_safe"


@pytest.mark.parametrize("kind", ["ack", "queue_seen", "dequeued"])
def test_what_the_server_had_and_has_no_more_vanished(bench: Bench, kind: EvidenceKind) -> None:
    bench.prepare()
    bench.write()
    bench.see(kind)
    verdict = bench.judge()
    assert (verdict.delivery, verdict.sentence) == ("vanished", "vanished")
    assert actions(verdict)["send_new"] == "server_may_rerun"
    assert bench.judge(queue=QueueRead(1, frozenset({"m1"})), connection_id="c2").delivery == "queued"


def test_failed_needs_the_error_and_history_on_one_connection(bench: Bench) -> None:
    bench.prepare()
    bench.write()
    bench.see("ack")
    bench.see("loop_error", payload={"words": "already has an active run"})
    verdict = bench.judge(second=False)
    assert (verdict.delivery, verdict.sentence) == ("failed", "failed")
    assert actions(verdict)["send_new"] == ""


def test_an_error_before_a_break_makes_it_vanished_and_the_id_spent(bench: Bench) -> None:
    bench.prepare()
    bench.write()
    bench.see("loop_error")
    verdict = bench.judge(connection_id="c2")
    assert (verdict.delivery, verdict.sentence) == ("vanished", "unknown_burnt")
    assert "resend" not in actions(verdict)


def test_a_repeated_answer_with_nothing_to_show_is_a_spent_id(bench: Bench) -> None:
    bench.prepare()
    bench.write()
    bench.judge()
    attempt = bench.ledger.begin_attempt(
        "m1", request_id="r2", connection_id="c1", expected_attempts=1, consent=CONSENT
    )
    bench.ledger.written(attempt)
    bench.see("ack", request_id="r2")
    verdict = bench.judge()
    assert (verdict.delivery, verdict.sentence) == ("vanished", "unknown_burnt")


def test_a_turn_that_ended_unseen_and_one_the_keeper_saw(bench: Bench) -> None:
    bench.prepare()
    bench.write()
    first = bench.judge((mine(),), loop=BUSY)
    assert (first.delivery, first.outcome) == ("delivered", "none")
    verdict = bench.judge((mine(),))
    assert (verdict.outcome, verdict.sentence) == ("ended_unseen", "delivered_no_reply")
    end = EndNote(("m1",), "done", {"stop_reason": "end_turn"}, "local-run-3")
    verdict = bench.judge((mine(), HistoryRow("ui-msg-2", "", "assistant")), ends=(end,))
    assert (verdict.outcome, verdict.sentence) == ("done", "delivered")
    send = bench.ledger.send("m1")
    assert send is not None
    assert send.terminal == {"stop_reason": "end_turn"}


def test_a_row_that_is_new_in_this_reading_does_not_end_its_turn(bench: Bench) -> None:
    bench.prepare()
    bench.write()
    verdict = bench.judge((mine(),))
    assert (verdict.outcome, verdict.again) == ("none", True)


def test_only_sends_of_this_conversation_are_judged(bench: Bench) -> None:
    bench.prepare()
    bench.ledger.prepare(OTHER, "there", "m2", anchor=None)
    assert len(reconcile(bench.ledger.sends(), bench.reading())) == 1


def test_a_salvaged_or_erased_message_offers_no_safe_repeat(bench: Bench) -> None:
    bench.prepare()
    bench.write()
    send = bench.ledger.send("m1")
    assert send is not None
    (verdict,) = reconcile([replace(send, salvaged=True)], bench.reading())
    assert verdict.sentence == "unknown_salvaged"
    (verdict,) = reconcile([replace(send, erased=True, text="")], bench.reading())
    assert set(actions(verdict)) == {"check", "discard"}


def test_every_state_has_a_verdict_offline_and_online(bench: Bench) -> None:
    bench.prepare()
    bench.write()
    send = bench.ledger.send("m1")
    assert send is not None
    for delivery in transitions.DELIVERIES:
        given = replace(send, delivery=delivery)
        for reading in (None, bench.reading(), bench.reading(loop=BUSY), bench.reading(history=None)):
            (verdict,) = reconcile([given], reading)
            assert verdict.sentence
            waiting = verdict.again or reading is None or not verdict.offers
            assert verdict.offers or waiting
            if verdict.delivery in transitions.AWAITS_PERSON:
                assert verdict.offers


def test_later_messages_wait_behind_an_open_question(bench: Bench) -> None:
    for n in range(1, 5):
        bench.prepare(f"m{n}")
    bench.write("m1")
    waiting = held(bench.ledger.sends())
    assert [(h.client_message_id, h.behind, h.why) for h in waiting] == [
        (f"m{n}", "m1", "unconfirmed") for n in (2, 3, 4)
    ]
    bench.see("ack")
    assert held(bench.ledger.sends()) == ()
    full = held(bench.ledger.sends(), queue_length=49)
    assert [(h.client_message_id, h.why) for h in full] == [("m3", "queue_long"), ("m4", "queue_long")]
    assert held(bench.ledger.sends(), queue_length=49, policy=Policy(queue_limit=100)) == ()
