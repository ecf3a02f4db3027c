"""``reconcile``: whose reply it is, and what ran again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from letta_tui.conversation.card import card, ran_again, remark
from letta_tui.conversation.reconcile import (
    EndNote,
    HistoryRow,
    Verdict,
    reconcile,
)
from tests.ledger.conftest import PLACE
from tests.model.bench import Bench, mine


def actions(verdict: Verdict) -> dict[str, str]:
    return {o.action: o.risk for o in verdict.offers}


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
