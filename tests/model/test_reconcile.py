"""``reconcile``: what a reading may and may not say of a message."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from letta_tui.conversation.card import card, ran_again, remark
from letta_tui.conversation.explain import WORDS, Case, explain, explain_data
from letta_tui.conversation.reconcile import (
    EndNote,
    HistoryRead,
    HistoryRow,
    LoopRead,
    Policy,
    QueueRead,
    Reading,
    Verdict,
    held,
    reconcile,
    same_id_is_safe,
)
from letta_tui.ledger import transitions
from letta_tui.ledger.store import Ledger
from letta_tui.ledger.values import Anchor, Evidence, EvidenceKind, Send
from tests.ledger.conftest import CONSENT, OTHER, PLACE, FakeClock

ANCHOR = HistoryRow("row-9", "", "assistant")
IDLE = LoopRead(2, True, processing=False)
BUSY = LoopRead(2, False, ("run-1",), processing=True)


class Bench:
    """One message "m1" on connection "c1", and readings of the server."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.ledger = Ledger.open(folder / "ledger.sqlite3", self.clock)

    def prepare(self, key: str = "m1", anchor: Anchor | None = Anchor("row-9", 9)) -> None:  # noqa: B008
        self.ledger.prepare(PLACE, "hello", key, anchor=anchor)

    def write(self, key: str = "m1", connection: str = "c1") -> None:
        attempt = self.ledger.begin_attempt(
            key, request_id=f"r-{key}", connection_id=connection, server_version="0.34.12"
        )
        self.ledger.written(attempt)
        self.clock.advance(1)

    def see(self, kind: EvidenceKind, key: str = "m1", **fields: Any) -> Send:
        values: dict[str, Any] = {"connection_id": "c1", "request_id": f"r-{key}", **fields}
        send = self.ledger.observe(key, Evidence(kind, **values))
        assert send is not None
        self.clock.advance(1)
        return send

    def reading(self, rows: tuple[HistoryRow, ...] = (), **changes: Any) -> Reading:
        if changes.get("connection_id", "c1") != "c1":
            self.clock.advance(3)  # what was written before the break has had its time to arrive
        fence = self.clock()
        self.clock.advance(0.1)
        reading = Reading(
            PLACE,
            "c1",
            self.clock(),
            server_version="0.34.12",
            fence=fence,
            second=True,
            queue=QueueRead(1, frozenset()),
            loop=IDLE,
            history=HistoryRead(3, (ANCHOR, *rows)),
        )
        return replace(reading, **changes)

    def judge(self, rows: tuple[HistoryRow, ...] = (), **changes: Any) -> Verdict:
        """Read, judge, store; and the same reading again says and stores nothing new."""
        reading = self.reading(rows, **changes)
        sends = self.ledger.sends()
        verdicts = reconcile(sends, reading)
        for send, verdict in zip(sends, verdicts, strict=True):
            self.store(send, verdict)
        for send, verdict in zip(self.ledger.sends(), reconcile(self.ledger.sends(), reading), strict=True):
            assert (verdict.delivery, verdict.outcome) == (send.delivery, send.outcome)
            assert verdict.evidence == ()
        self.clock.advance(1)
        return verdicts[0]

    def store(self, send: Send, verdict: Verdict) -> Send:
        return self.ledger.judge(
            send,
            delivery=verdict.delivery,
            outcome=verdict.outcome,
            evidence=verdict.evidence,
            sentence=verdict.sentence,
            terminal=verdict.terminal,
        )


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.ledger.close()


def mine(number: int = 1, key: str = "m1") -> HistoryRow:
    return HistoryRow(f"ui-msg-{number}", key, "user")


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


def test_explain_tells_all_in_order_with_every_identity(bench: Bench) -> None:
    bench.prepare()
    bench.write()
    bench.see("ack", event_seq=0, idempotency_key="ack:0:u", server_life="life-1")
    bench.see("run_seen", run_id="local-run-1")
    bench.judge((mine(), mine(2)))
    send = bench.ledger.send("m1")
    assert send is not None
    case = Case(send, bench.ledger.evidence("m1"))
    text = "\n".join(explain(case))
    for identity in ("m1", "r-m1", "c1", "local-run-1", "ack:0:u", "event 0", "life-1", "row-9", "ui-msg-2"):
        assert identity in text
    assert text.index(WORDS["prepared"]) < text.index(WORDS["written"]) < text.index(WORDS["history_row"])
    data = explain_data(case)
    resting = [e["kind"] for e in data["evidence"] if e["rests_here"]]
    assert resting == ["history_row"]
    assert set(WORDS) == set(transitions.KINDS)


def test_explain_has_decisions_and_calls_of_tools_where_their_time_is(bench: Bench) -> None:
    bench.prepare()
    bench.write()
    bench.see("run_seen", run_id="local-run-1")
    bench.see("approval_asked", request_id="perm-7")
    bench.ledger.decide(
        PLACE, "perm-7", tool_call_id="call-7", tool_name="Bash", decision="deny", message="not now"
    )
    bench.clock.advance(1)
    bench.ledger.approval_moved(PLACE, "perm-7", "acknowledged", input_request_id="in-7", connection_id="c1")
    bench.clock.advance(1)
    bench.ledger.tool_asked(
        PLACE, "ask-9", tool_call_id="call-9", tool_name="weather", arguments={"city": "Ulm"}
    )
    bench.clock.advance(1)
    bench.ledger.tool_moved(PLACE, "ask-9", "running", allowed_by="you")
    bench.clock.advance(1)
    bench.see("turn_done", run_id="local-run-1")
    bench.clock.advance(60)
    bench.ledger.decide(PLACE, "perm-8", tool_call_id="call-8", tool_name="Later", decision="allow")
    send = bench.ledger.send("m1")
    assert send is not None
    case = Case(
        send, bench.ledger.evidence("m1"), bench.ledger.approvals(PLACE), bench.ledger.tool_calls(PLACE)
    )
    text = "\n".join(explain(case))
    for identity in ("perm-7", "call-7", "in-7", "not now", "ask-9", "call-9", "Ulm"):
        assert identity in text, identity
    assert "Later" not in text, "a decision of another turn"
    order = [
        "asked for an approval",
        "You denied Bash",
        "took it.",
        "called your tool weather",
        "Its turn ended.",
    ]
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    whens = [event["at"]["wall"] for event in explain_data(case)["events"]]
    assert whens == sorted(whens)


def test_explain_says_what_the_card_says(bench: Bench) -> None:
    bench.prepare()
    bench.write()
    verdict = bench.judge()
    assert verdict.sentence == "lost_safe"
    send = bench.ledger.send("m1")
    assert send is not None
    shown, told = card(send, verdict), explain_data(Case(send, bench.ledger.evidence("m1")))["card"]
    assert (told["word"], told["explanation"]) == (shown.word, shown.explanation)
    assert [(c["label"], c["risk"]) for c in told["choices"]] == [(c.label, c.risk) for c in shown.choices]
    assert [c.risk for c in shown.choices if c.action == "resend"] == [""], "what is safe is not asked twice"
    # It goes again: the offer of before is over.
    attempt = bench.ledger.begin_attempt(
        "m1", request_id="r2", connection_id="c1", expected_attempts=1, consent=CONSENT
    )
    bench.ledger.written(attempt)
    again = bench.ledger.send("m1")
    assert again is not None
    assert explain_data(Case(again))["card"]["choices"] == []


def row(kind: str, otid: str = "") -> HistoryRow:
    return HistoryRow(f"{kind}-{otid or 'x'}", otid, kind)


@pytest.mark.parametrize(
    ("rows", "inputs", "sentence"),
    [
        ([mine(), row("assistant")], (), "delivered"),
        ([mine(), row("reminder"), row("tool")], (), "delivered"),
        ([mine()], (), "delivered_no_reply"),
        ([mine(), row("reasoning")], (), "delivered_no_reply"),
        # Several inputs run as one: one reply is for all of them.
        ([mine(), row("user", "m2"), row("assistant")], ("m1", "m2"), "delivered"),
        # Another window's message, or a program's: what follows is the answer to that, as far as can be seen.
        ([mine(), row("user", "other"), row("assistant")], (), "delivered_next"),
        ([mine(), row("user", ""), row("assistant")], (), "delivered_next"),
        ([mine(), row("notification"), row("assistant")], (), "delivered_next"),
        ([mine(), row("user", "m2"), row("user", "other"), row("assistant")], ("m1", "m2"), "delivered_next"),
        ([mine(), row("user", "other")], (), "delivered_no_reply"),
    ],
)
def test_a_later_answer_is_not_taken_for_its_own(
    bench: Bench, rows: list[HistoryRow], inputs: tuple[str, ...], sentence: str
) -> None:
    bench.prepare()
    bench.write()
    bench.see("run_seen", run_id="local-run-1")
    if inputs:
        ends = (EndNote(inputs, "done", {"stop_reason": "end_turn"}, "local-run-1"),)
        assert bench.judge(tuple(rows), ends=ends).sentence == sentence
    else:
        assert bench.judge(tuple(rows)).sentence == sentence
    send = bench.ledger.send("m1")
    assert send is not None
    assert remark(send) == "" or sentence != "delivered"


def test_a_turn_whose_reply_was_seen_is_answered_wherever_history_puts_it(bench: Bench) -> None:
    bench.prepare()
    bench.write()
    bench.see("run_seen", run_id="local-run-1")
    ends = (EndNote(("m1",), "done", {"final_text": "here it is"}, "local-run-1"),)
    assert bench.judge((mine(), row("user", "other"), row("assistant")), ends=ends).sentence == "delivered"


def test_a_turn_that_was_seen_to_end_without_a_word_is_not_answered_by_the_next(bench: Bench) -> None:
    bench.prepare()
    bench.write()
    bench.see("run_seen", run_id="local-run-1")
    ends = (EndNote(("m1",), "done", {"final_text": ""}, "local-run-1"),)
    rows = (mine(), row("user", "other"), row("assistant"))
    assert bench.judge(rows, ends=ends).sentence == "delivered_no_reply"


def test_a_second_run_is_told_although_only_one_of_them_left_a_row(bench: Bench) -> None:
    bench.prepare()
    bench.write()
    bench.see("run_seen", run_id="local-run-1")
    bench.see("server_reran", run_id="local-run-1", connection_id="c2")
    assert bench.ledger.open_sends(PLACE)
    verdict = bench.judge((mine(), row("assistant")), connection_id="c2")
    assert verdict.sentence == "delivered_again"
    send = bench.ledger.send("m1")
    assert send is not None
    assert ran_again(send)
    assert card(send, verdict).word == "ran twice"
    assert bench.ledger.open_sends(PLACE) == (), "it has been said"


def test_what_another_window_has_just_written_is_not_called_absent(bench: Bench) -> None:
    bench.prepare()
    bench.write()
    bench.clock.advance(1.5)
    reading = replace(bench.reading(), connection_id="c2")
    assert reconcile(bench.ledger.sends(), reading)[0].sentence == "checking"
    bench.clock.advance(1)
    reading = replace(bench.reading(), connection_id="c2")
    assert reconcile(bench.ledger.sends(), reading)[0].sentence == "lost_safe"
