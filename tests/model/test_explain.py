"""``explain``: the evidence of a message in time order, and the words of its card."""

from __future__ import annotations

from letta_tui.conversation.card import card
from letta_tui.conversation.explain import WORDS, Case, explain, explain_data
from letta_tui.ledger import transitions
from tests.ledger.conftest import CONSENT, PLACE
from tests.model.bench import Bench, mine


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
