"""An answer on a card is given by a click that was meant for it, and by no other."""

from __future__ import annotations

from time import monotonic

from fakeport import FakePort
from scenes import QUEUE, RECOVERY, approval, running, settle, status
from textual import events
from textual.geometry import Offset
from textual.pilot import Pilot

from letta_tui.seam.intents import (
    AnswerQuestion,
    CancelQueued,
    Decide,
    PutAwayNotes,
    Quit,
    ResolveSend,
    Submit,
)
from letta_tui.seam.state import Choice, QuestionView, RecoveryView
from letta_tui.seam.updates import ApprovalsChanged, QuestionChanged, QueueChanged, RecoveryChanged
from letta_tui.ui.app import LettaTuiApp
from letta_tui.ui.clicks import DOUBLE, GRACE, Clickable, Spot, Spots
from letta_tui.ui.dialogs.lists import ConversationPicker
from letta_tui.ui.dialogs.picker import Options

RISKY = RecoveryChanged(RECOVERY)
GONE = QuestionView(
    "gone",
    "This conversation is gone",
    "The server does not have it.",
    (Choice("new", "n", "Start a new conversation"), Choice("open_other", "o", "Open another conversation")),
)


def place_of(app: LettaTuiApp, words: str) -> Offset:
    """Where ``words`` stand on the screen."""
    for y, strip in enumerate(app.screen._compositor.render_strips()):
        at = strip.text.rfind(words)
        if at >= 0:
            return Offset(len(strip.text[:at]) + 1, y)
    raise AssertionError(f"{words} is not on the screen")


def since(app: LettaTuiApp, place: Offset) -> float:
    """When the answer at ``place`` was first painted there."""
    widget, _ = app.screen.get_widget_at(*place)
    if isinstance(widget, Options):
        return widget.since or 0.0
    assert isinstance(widget, Clickable)
    spot = widget.spots.at(place)
    assert spot is not None
    return widget.spots.since(spot)


def mouse(kind: type[events.MouseEvent], place: Offset, time: float, button: int = 1) -> events.MouseEvent:
    """An event as it was read from the terminal at ``time``."""
    x, y = place
    event = kind(None, x, y, 0, 0, button, False, False, False, x, y)
    event.time = time
    return event


async def click(
    app: LettaTuiApp, pilot: Pilot[int], words: str | Offset, after: float | None = None, button: int = 1
) -> None:
    """Press and let go, ``after`` seconds from when the answer was painted there; else long afterwards."""
    place = place_of(app, words) if isinstance(words, str) else words
    time = monotonic() + GRACE if after is None else since(app, place) + after
    app.post_message(mouse(events.MouseDown, place, time, button))
    app.post_message(mouse(events.MouseUp, place, time, button))
    await pilot.pause()
    await pilot.pause()


async def test_a_click_on_an_answer_decides_once_and_leaves_the_draft_alone(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        await pilot.press(*"draft")
        for request, words, decision in (
            ("r1", "F8 allow   F9", Decide("r1", "allow")),
            ("r2", "F9 deny   Tab", Decide("r2", "deny")),
            ("r3", "F8 allow  F9", Decide("r3", "allow")),  # of the key bar
            ("r4", "Always allow edits", Decide("r4", "allow", "", ("s1",))),
        ):
            port.intents.clear()
            port.say(ApprovalsChanged((approval(request),)))
            await settle(pilot, port)
            place = place_of(app, words)
            await click(app, pilot, place)
            assert app.chat.composer.draft.has_focus
            await click(app, pilot, place)
            assert port.sent(Decide) == [decision]
            app.chat.to_composer()  # the second click may have moved the focus


async def test_a_click_meant_for_what_lay_there_before_or_for_nothing_does_not_count(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        port.say(ApprovalsChanged((approval(),)))
        await settle(pilot, port)
        allow, deny = place_of(app, "F8 allow   F9"), place_of(app, "F9 deny   Tab")
        for place in (allow, place_of(app, "F8 allow  F9")):
            for after in (-1.0, 0.0, GRACE / 2):
                await click(app, pilot, place, after)
        time = monotonic() + GRACE
        app.post_message(mouse(events.MouseDown, deny, time))  # and let go somewhere else
        app.post_message(mouse(events.MouseUp, allow, time))
        await settle(pilot, port)
        assert port.sent(Decide) == []
        assert app.chat.composer.draft.has_focus
        for button in (2, 3):
            await click(app, pilot, "F9 deny   Tab", button=button)
            await pilot.press("escape")
        assert port.sent(Decide) == []
        await click(app, pilot, allow)
        assert port.sent(Decide) == [Decide("req-1", "allow")]


async def test_a_button_that_went_down_before_the_card_was_there_answers_nothing(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        port.say(ApprovalsChanged((approval(),)))
        await settle(pilot, port)
        place = place_of(app, "F8 allow   F9")
        port.say(ApprovalsChanged(()))
        await settle(pilot, port)
        app.post_message(mouse(events.MouseDown, place, monotonic()))
        await pilot.pause()
        port.say(ApprovalsChanged((approval(),)))
        await settle(pilot, port)
        app.post_message(mouse(events.MouseUp, place, monotonic() + GRACE))
        await settle(pilot, port)
        assert port.sent(Decide) == []


async def test_a_double_click_answers_one_call(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        port.say(ApprovalsChanged((approval("r1", 1, 2), approval("r2", 2, 2))))
        await settle(pilot, port)
        place = place_of(app, "F8 allow   F9")
        await click(app, pilot, place)
        await click(app, pilot, place, DOUBLE)
        assert [d.request_id for d in port.sent(Decide)] == ["r1"]
        await click(app, pilot, place)
        assert [d.request_id for d in port.sent(Decide)] == ["r1", "r2"]


async def test_the_call_that_takes_a_place_takes_no_click_for_the_one_before(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        port.say(ApprovalsChanged((approval("r1"),)))
        await settle(pilot, port)
        place = place_of(app, "F8 allow   F9")
        time = monotonic() + GRACE
        app.post_message(mouse(events.MouseDown, place, time))
        await pilot.pause()
        port.say(ApprovalsChanged((approval("r2"),)))
        await settle(pilot, port)
        app.post_message(mouse(events.MouseUp, place, time))
        await settle(pilot, port)
        assert port.sent(Decide) == []


async def test_a_click_that_uncovers_a_card_does_not_answer_it(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        port.say(ApprovalsChanged((approval(),)))
        await settle(pilot, port)
        place = place_of(app, "F8 allow   F9")
        for covered in ("by the help", "by another program's window"):
            time = since(app, place) + GRACE  # it has been there long enough, but nobody saw it
            if covered == "by the help":
                await pilot.press("f1", "escape")
            else:
                app.post_message(events.AppFocus())
            await settle(pilot, port)
            app.post_message(mouse(events.MouseDown, place, time))
            app.post_message(mouse(events.MouseUp, place, time))
            await settle(pilot, port)
            assert port.sent(Decide) == [], covered


async def test_a_click_on_a_card_that_just_appeared_does_not_make_answers_of_what_is_typed(
    port: FakePort,
) -> None:
    async with running(port) as (app, pilot):
        port.say(ApprovalsChanged((approval(),)), RISKY)
        await settle(pilot, port)
        for words in ("return text.split", "Back in"):
            place = place_of(app, words)
            for after in (0.0, GRACE / 2):
                time = app.chat.approvals._head._since or 0.0
                app.post_message(mouse(events.MouseDown, place, time + after))
                app.post_message(mouse(events.MouseUp, place, time + after))
                await settle(pilot, port)
            await pilot.press("y", "d")
        assert app.chat.composer.text == "ydyd"
        assert port.sent(Decide) == port.sent(ResolveSend) == []
        await click(app, pilot, "return text.split")
        await pilot.press("y")
        assert port.sent(Decide) == [Decide("req-1", "allow")]


async def test_a_reason_can_be_opened_sent_and_left_by_clicks(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        port.say(ApprovalsChanged((approval(),)))
        await settle(pilot, port)
        await click(app, pilot, "Tab more answers")
        assert app.chat.approvals.has_focus
        await click(app, pilot, "deny with a reason")
        await pilot.press(*"no")
        await click(app, pilot, "Esc back")
        assert port.sent(Decide) == []
        await click(app, pilot, "Tab more answers")
        await click(app, pilot, "deny with a reason")
        await pilot.press(*"why")
        await click(app, pilot, "deny with this reason")
        assert port.sent(Decide) == [Decide("req-1", "deny", "why")]


async def test_choices_of_messages_are_clicked_and_a_risk_is_asked_about(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        port.say(RISKY)
        await settle(pilot, port)
        await click(app, pilot, "send it as a new message")
        assert port.sent(ResolveSend) == []
        await click(app, pilot, "all the same", DOUBLE)
        await click(app, pilot, "Esc no")
        assert port.sent(ResolveSend) == []
        await click(app, pilot, "send it as a new message")
        await click(app, pilot, "all the same")
        assert port.sent(ResolveSend) == [ResolveSend("cm-4", "send_new")]
        await click(app, pilot, "then commit")
        await click(app, pilot, "send it now")
        assert port.sent(ResolveSend)[1:] == [ResolveSend("cm-5", "send")]


async def test_a_question_is_answered_and_a_note_put_away_by_a_click(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        port.say(QuestionChanged(GONE))
        await settle(pilot, port)
        await click(app, pilot, "Open another conversation", 0)
        assert app.screen is app.chat
        await click(app, pilot, "Open another conversation")
        assert isinstance(app.screen, ConversationPicker)
        await pilot.press("escape")
        await click(app, pilot, "Start a new conversation")  # the question still stands
        assert port.sent(AnswerQuestion) == [AnswerQuestion("gone", "new")]
        port.say(QuestionChanged(None), RecoveryChanged(RecoveryView(False, "What happened", ("A turn.",))))
        await settle(pilot, port)
        await click(app, pilot, "puts this away")
        assert port.sent(PutAwayNotes) == [PutAwayNotes()]


async def test_a_waiting_message_is_taken_back_by_its_cross(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        port.say(QueueChanged(QUEUE))
        await settle(pilot, port)
        await click(app, pilot, " ✕")
        assert port.sent(CancelQueued) == [CancelQueued("q1")]
        assert port.sent(Submit) == []


async def test_the_second_half_of_a_double_click_chooses_nothing_in_a_list_it_opened(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        port.say(status("streaming"))
        await settle(pilot, port)
        await pilot.press("ctrl+q")
        await settle(pilot, port)
        await click(app, pilot, "Stop it, then leave", DOUBLE / 2)
        assert port.sent(Quit) == []
        await click(app, pilot, "Stop it, then leave")
        assert port.sent(Quit) == [Quit("stop")]


def test_an_answer_counts_from_when_it_stood_there_for_this_question() -> None:
    spots, here, there = Spots(), Spot(3, 0, 8, "allow"), Spot(4, 0, 8, "allow")
    spots.about("r1")
    spots.painted(range(3, 5), [here], 10.0)
    spots.painted(range(3, 5), [here], 50.0)  # the same again: still seen since 10
    assert spots.at(Offset(7, 3)) == here
    assert spots.at(Offset(8, 3)) is None
    assert not spots.counts(here, 10.0 + GRACE / 2)
    assert spots.counts(here, 10.0 + GRACE)
    spots.painted(range(3, 5), [there], 60.0)  # it moved
    assert spots.at(Offset(0, 3)) is None
    assert not spots.counts(there, 60.0)
    spots.painted(range(5, 9), [], 61.0)  # other rows
    spots.about("r1")
    assert spots.counts(there, 60.0 + GRACE)
    spots.about("r2")
    assert not spots.counts(there, 1000.0)
