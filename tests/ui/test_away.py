"""The card about what happened: readable at a glance, put away with one key, and the way to the line."""

from __future__ import annotations

from fakeport import FakePort
from scenes import running, settle

from letta_tui.seam.intents import PutAwayNotes, Submit
from letta_tui.seam.state import RecoveryView, Row
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
