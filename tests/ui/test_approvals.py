"""A tool call is decided only by a key that was meant for it."""

from __future__ import annotations

import pytest
from fakeport import FakePort
from scenes import QUEUE, ROWS, approval, running, settle
from textual import events

from letta_tui.seam.intents import CancelQueued, Decide, Submit
from letta_tui.seam.updates import ApprovalsChanged, QueueChanged, SubmitSettled
from letta_tui.ui.app import LettaTuiApp

# Enter stands where a person would press it; 1, y, n, a, r and space are keys a card knows.
SENTENCE = ["1", "y", "space", "n", "a", "r", "ctrl+j", "y", "1", "x", "enter"]
TYPED = "1y nar\ny1x"


@pytest.mark.parametrize(
    "boundary",
    [pytest.param(n, marks=() if n % 4 == 3 else pytest.mark.long) for n in range(len(SENTENCE) + 1)],
)
async def test_a_request_that_pops_up_takes_no_key_of_a_sentence(port: FakePort, boundary: int) -> None:
    async with running(port) as (app, pilot):
        for number, key in enumerate(SENTENCE):
            if number == boundary:
                port.say(ApprovalsChanged((approval(),)))
                await settle(pilot, port)
                assert app.chat.approvals.display
            await pilot.press(key)
        if boundary == len(SENTENCE):
            port.say(ApprovalsChanged((approval(),)))
        await settle(pilot, port)
        assert port.sent(Decide) == []
        assert port.sent(Submit) == [Submit("submit-1", TYPED)]
        assert app.chat.composer.text == TYPED
        port.say(SubmitSettled("submit-1", True, "cm"))
        await settle(pilot, port)
        assert app.chat.composer.text == ""


async def test_a_chord_that_was_typed_before_the_card_was_painted_does_not_count(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        early = events.Key("f8", None)  # read from the terminal before the card existed
        port.say(ApprovalsChanged((approval(),)))
        await settle(pilot, port)
        app.post_message(early)
        await settle(pilot, port)
        assert port.sent(Decide) == []
        await pilot.press("f8")
        assert port.sent(Decide) == [Decide("req-1", "allow")]


@pytest.mark.parametrize(("key", "behavior"), [("f8", "allow"), ("f9", "deny")])
async def test_a_chord_pressed_twice_decides_once(port: FakePort, key: str, behavior: str) -> None:
    async with running(port) as (_, pilot):
        port.say(ApprovalsChanged((approval(),)))
        await settle(pilot, port)
        await pilot.press(key, key)
        assert [(d.request_id, d.behavior) for d in port.sent(Decide)] == [("req-1", behavior)]


async def test_a_held_chord_does_not_run_through_the_next_calls(port: FakePort) -> None:
    async with running(port) as (_, pilot):
        port.say(ApprovalsChanged((approval("r1", 1, 2), approval("r2", 2, 2))))
        await settle(pilot, port)
        await pilot.press("f8")
        await settle(pilot, port)
        port.say(ApprovalsChanged((approval("r2", 2, 2),)))
        await settle(pilot, port)
        await pilot.press("f8", "f8")
        assert [d.request_id for d in port.sent(Decide)] == ["r1"]
        await pilot.press("x", "f8")
        assert [d.request_id for d in port.sent(Decide)] == ["r1", "r2"]


@pytest.mark.parametrize(("key", "behavior"), [("y", "allow"), ("a", "allow"), ("n", "deny")])
async def test_letters_count_after_the_person_moved_there(port: FakePort, key: str, behavior: str) -> None:
    async with running(port) as (app, pilot):
        await pilot.press(*"draft")
        port.say(ApprovalsChanged((approval(),)))
        await settle(pilot, port)
        await pilot.press("tab", key, key)
        assert [(d.request_id, d.behavior) for d in port.sent(Decide)] == [("req-1", behavior)]
        assert app.chat.composer.text == "draft"


async def test_the_next_call_has_to_be_taken_up_before_letters_count(port: FakePort) -> None:
    async with running(port) as (_, pilot):
        port.say(ApprovalsChanged((approval("r1", 1, 2), approval("r2", 2, 2))))
        await settle(pilot, port)
        await pilot.press("tab", "y")
        port.say(ApprovalsChanged((approval("r2", 2, 2),)))
        await settle(pilot, port)
        await pilot.press("y", "y")
        assert [d.request_id for d in port.sent(Decide)] == ["r1"]
        await pilot.press("tab", "y")
        assert [d.request_id for d in port.sent(Decide)] == ["r1", "r2"]


async def test_keys_of_a_reason_are_text(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        port.say(ApprovalsChanged((approval(),)))
        await settle(pilot, port)
        await pilot.press("tab", "r", *"y1an", "space", "y")
        assert port.sent(Decide) == []
        await pilot.press("enter", "enter")
        assert port.sent(Decide) == [Decide("req-1", "deny", "y1an y")]
        assert app.chat.composer.text == ""


async def test_esc_in_a_reason_goes_back_to_the_card_and_decides_nothing(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        port.say(ApprovalsChanged((approval(),)))
        await settle(pilot, port)
        await pilot.press("tab", "r", "n", "o", "escape")
        await settle(pilot, port)
        assert app.chat.approvals.has_focus
        await pilot.press("escape")
        assert app.chat.composer.draft.has_focus
        assert port.intents == [] or port.sent(Decide) == []


async def test_a_reason_for_a_call_that_went_away_is_not_sent_anywhere(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        port.say(ApprovalsChanged((approval("r1"),)))
        await settle(pilot, port)
        await pilot.press("tab", "r", *"wron")
        port.say(ApprovalsChanged((approval("r2"),)))
        await settle(pilot, port)
        await pilot.press("g", "enter")
        assert port.sent(Decide) == []
        assert port.sent(Submit) == []
        await pilot.press("escape")
        await settle(pilot, port)
        await pilot.press("y")
        assert port.sent(Decide) == []
        assert app.chat.composer.text == ""


async def test_a_suggestion_is_chosen_by_its_number(port: FakePort) -> None:
    async with running(port) as (_, pilot):
        port.say(ApprovalsChanged((approval(),)))
        await settle(pilot, port)
        await pilot.press("tab", "2", "1")
        assert port.sent(Decide) == [Decide("req-1", "allow", "", ("s1",))]


async def test_a_refused_decision_can_be_made_again(port: FakePort) -> None:
    async with running(port) as (_, pilot):
        port.say(ApprovalsChanged((approval(),)))
        await settle(pilot, port)
        await pilot.press("f8")
        port.say(ApprovalsChanged((approval(state="refused", note="The server did not take it."),)))
        await settle(pilot, port)
        await pilot.press("x", "f9")
        assert [d.behavior for d in port.sent(Decide)] == ["allow", "deny"]


async def test_a_decision_that_was_lost_on_its_way_can_be_made_again(port: FakePort) -> None:
    async with running(port) as (_, pilot):
        port.say(ApprovalsChanged((approval(),)))
        await settle(pilot, port)
        await pilot.press("f8")
        for state in ("deciding", "pending"):
            port.say(ApprovalsChanged((approval(state=state),)))
            await settle(pilot, port)
        await pilot.press("x", "f9")
        assert [d.behavior for d in port.sent(Decide)] == ["allow", "deny"]


async def test_no_key_decides_while_the_help_covers_the_card(port: FakePort) -> None:
    async with running(port) as (_, pilot):
        port.say(ApprovalsChanged((approval(),)))
        await settle(pilot, port)
        await pilot.press("f1", "f8", "y", "f9")
        assert port.sent(Decide) == []


async def test_keys_that_arrive_together_with_tab_go_to_the_card(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        port.say(ApprovalsChanged((approval(),)))
        await settle(pilot, port)
        for key, character in [("tab", "\t"), ("r", "r"), *((c, c) for c in "nay")]:
            app.post_message(events.Key(key, character))  # nobody waits in between
        await settle(pilot, port)
        await pilot.press("enter")
        assert port.sent(Decide) == [Decide("req-1", "deny", "nay")]
        assert app.chat.composer.text == ""


def type_at_once(app: LettaTuiApp, *keys: str) -> None:
    """Keys that are all waiting before the first of them is handled."""
    for key in keys:
        app.post_message(events.Key(key, key if len(key) == 1 else None))


@pytest.mark.parametrize("away", ["escape", "f7"])
async def test_text_typed_right_after_leaving_the_card_is_text(port: FakePort, away: str) -> None:
    async with running(port) as (app, pilot):
        port.say(ApprovalsChanged((approval(),)))
        await settle(pilot, port)
        await pilot.press("tab")
        type_at_once(app, away, "y", "a", "n", "1")
        await settle(pilot, port)
        assert port.sent(Decide) == []
        assert app.chat.composer.text == "yan1"


async def test_keys_typed_together_reach_what_is_focused_by_then(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        port.say(ROWS, ApprovalsChanged((approval(),)), QueueChanged(QUEUE))
        await settle(pilot, port)
        type_at_once(app, "tab", "x", "tab", "x", "x", "enter", "tab", "tab", "h", "i")
        await settle(pilot, port)
        assert port.sent(Decide) == []
        assert port.sent(Submit) == []
        assert port.sent(CancelQueued) == [CancelQueued("q1")]
        assert app.chat.composer.text == "hi"
