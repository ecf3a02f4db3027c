"""Words: every state has some, and they promise nothing that is not known."""

from __future__ import annotations

from itertools import product
from typing import Any, get_args

import pytest

from letta_tui.conversation import words
from letta_tui.conversation.reconcile import RiskKey, SentenceKey
from letta_tui.conversation.words import SendFacts, choice, recovery_view, send_view
from letta_tui.seam.state import Action, Delivery, TurnOutcome
from letta_tui.ui.transcript.glyphs import DELIVERY


def facts(delivery: Delivery, **more: Any) -> SendFacts:
    return SendFacts("id", "text", delivery, **more)


def test_every_state_has_words() -> None:
    for delivery, outcome in product(get_args(Delivery), get_args(TurnOutcome)):
        view = send_view(facts(delivery, outcome=outcome))
        assert view.word
        assert len(view.word) <= 16
        assert view.explanation.endswith((".", "?"))
        assert len(view.explanation) < 220
    for sentence in get_args(SentenceKey):
        assert send_view(facts("unknown", sentence=sentence)).explanation


def test_delivered_is_only_said_of_what_is_in_history() -> None:
    for delivery in get_args(Delivery):
        view = send_view(facts(delivery))
        said = "delivered" in (view.word + view.explanation).lower()
        assert said == (delivery == "delivered")


@pytest.mark.parametrize("delivery", ["unconfirmed", "unknown", "accepted", "started"])
def test_absence_is_never_claimed_without_a_reading(delivery: Delivery) -> None:
    text = send_view(facts(delivery)).explanation.lower()
    assert "will not run" not in text
    assert "did not arrive" not in text


def test_nothing_is_offered_while_checking() -> None:
    view = send_view(facts("unknown", offers=(("resend", ""), ("discard", "text_gone")), checking=True))
    assert view.choices == ()
    assert view.word == "checking"


def test_each_choice_has_a_key_of_its_own() -> None:
    view = send_view(facts("prepared", offers=tuple((action, "") for action in get_args(Action))))
    keys = [c.key for c in view.choices]
    assert len(keys) == len(set(keys)) == len(get_args(Action))
    assert all(len(k) == 1 and k.isalpha() and k.islower() for k in keys)


def test_risks_are_told() -> None:
    view = send_view(facts("unknown", offers=(("check", ""), ("send_new", "may_run_twice"))))
    assert [c.risk != "" for c in view.choices] == [False, True]
    assert "both run" in view.choices[1].risk
    for risk in get_args(RiskKey):
        assert bool(words._RISKS[risk]) == (risk not in ("", "safe_same_id")), (
            "a risk is told where there is one"
        )
    for action in get_args(Action):
        assert choice(action).label


def test_the_servers_reason_is_passed_on_in_one_line() -> None:
    view = send_view(facts("rejected", reason="Stable input ledger\nis at capacity"))
    assert view.explanation.endswith("The server said: Stable input ledger is at capacity.")
    assert "server said" not in send_view(facts("delivered", reason="x")).explanation


def test_outcome_and_delivery_are_told_apart() -> None:
    assert send_view(facts("delivered", outcome="done")).word == "delivered"
    assert send_view(facts("delivered", outcome="failed")).word == "turn failed"
    assert send_view(facts("delivered", no_reply=True)).word == "no reply"
    assert send_view(facts("delivered", twice=True)).explanation.startswith(
        "The server restarted and ran this twice"
    )
    assert send_view(facts("started", outcome="awaiting_approval")).word == "waits for you"
    assert send_view(facts("prepared", held=True)).word == "waiting"


def test_the_recovery_card() -> None:
    quiet = send_view(facts("delivered"))
    asks = send_view(facts("unknown", offers=(("check", ""),)))
    assert recovery_view([], checking=False, relaunched=True) is None
    assert recovery_view([quiet], checking=False, relaunched=True) is None
    card = recovery_view([asks], checking=True, relaunched=True)
    assert card is not None
    assert card.title == "Checking what became of one message"
    card = recovery_view([asks, asks], checking=False, relaunched=False, notes=["x"])
    assert card is not None
    assert (card.title, card.notes) == ("2 messages need your decision", ("x",))
    card = recovery_view([quiet], checking=False, relaunched=True, notes=[words.unseen_note(2)])
    assert card is not None
    assert card.title == "What happened since the last time"


def test_a_row_and_a_card_call_a_fate_by_the_same_word() -> None:
    by_sign = {delivery: word for delivery, (_, _, word, _) in DELIVERY.items()}
    differ = {delivery for delivery, word in words.WORDS.items() if by_sign[delivery] != word}
    # A tick alone says delivered; while it is unconfirmed the row does not claim that it is being sent, and
    # a replaced one says where it went.
    assert differ == {"delivered", "unconfirmed", "superseded"}
