"""The card about what happened: readable at a glance, put away with one key, and the way to the line."""

from __future__ import annotations

import pytest
from fakeport import FakePort
from scenes import running, settle

from letta_tui.seam.intents import PutAwayNotes, Submit
from letta_tui.seam.state import Choice, RecoveryView, Row, SendView
from letta_tui.seam.updates import RecoveryChanged, Splice, TranscriptChanged

NOTE = "While you were away: the turn ended after 41 s; Bash ran."


def what_happened(checking: bool = False) -> RecoveryChanged:
    return RecoveryChanged(RecoveryView(checking, "What happened since the last time", (NOTE,)))


async def test_one_key_puts_the_card_away_and_another_goes_to_the_line(port: FakePort) -> None:
    rows = [Row(f"a:{n}", "assistant", f"words {n}\n\nmore") for n in range(60)]
    rows[20] = Row("own:away", "away", NOTE)
    async with running(port) as (app, pilot):
        await pilot.press("f6", "ctrl+t")  # nothing to put away, nowhere to go
        port.say(TranscriptChanged((Splice(0, 0, tuple(rows)),), reset=True), what_happened())
        await settle(pilot, port)
        assert app.chat.recovery.display
        assert app.chat.recovery.size.height <= 4
        assert port.sent(PutAwayNotes) == []
        await pilot.press("ctrl+t")
        await settle(pilot, port)
        assert not app.chat.transcript.following
        await pilot.press("f6")
        assert port.sent(PutAwayNotes) == [PutAwayNotes()]
        port.say(RecoveryChanged(None))
        await settle(pilot, port)
        assert not app.chat.recovery.display
        await pilot.press("h", "enter")
        assert len(port.sent(Submit)) == 1


async def test_nothing_is_put_away_while_it_is_being_checked(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        port.say(what_happened(checking=True))
        await settle(pilot, port)
        assert app.chat.recovery.display
        await pilot.press("f6")
        assert port.sent(PutAwayNotes) == []


@pytest.mark.parametrize("size", [(80, 24), (60, 16)])
async def test_every_choice_of_the_chosen_message_is_seen_on_a_small_screen(
    port: FakePort, size: tuple[int, int]
) -> None:
    choices = (
        Choice("check", "k", "Check again"),
        Choice("send_new", "n", "Send as new", "If the first one turns up late, both run."),
        Choice("discard", "d", "Discard", "The text is gone from here."),
    )
    known = "It may or may not have arrived. It was sent so long ago that nobody would know it any more."
    sends = tuple(
        SendView(f"cm-{n}", f"message {n}", "unknown", "none", "not known", known, 0.0, choices)
        for n in range(3)
    )
    async with running(port, size=size) as (app, pilot):
        port.say(RecoveryChanged(RecoveryView(False, "3 messages need your decision", (NOTE,), sends)))
        await settle(pilot, port)
        await pilot.press("tab")
        for number in range(3):
            await settle(pilot, port)
            shown = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
            for words in (f"▸ ! not known  “message {number}”", "Check again", "both run.", "gone from here"):
                assert words in shown
            assert "Esc later" in shown
            assert "F1 help" in shown
            await pilot.press("down")
