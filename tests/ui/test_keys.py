"""The help screen tells every key that works, and no other."""

from __future__ import annotations

from fakeport import FakePort
from scenes import QUEUE, RECOVERY, ROWS, approval, running, settle, status

from letta_tui.seam.state import ConnectionView, Row
from letta_tui.seam.updates import (
    ApprovalsChanged,
    ConnectionChanged,
    NeedsSetup,
    QueueChanged,
    RecoveryChanged,
    Splice,
    TranscriptChanged,
)
from letta_tui.ui.chat.slash import COMMANDS
from letta_tui.ui.dialogs.help import help_lines
from letta_tui.ui.keys import KEYS, names

AWAY = TranscriptChanged((Splice(0, 0, (Row("own:away", "away", "You were away."),)),))
LOST = ConnectionChanged(ConnectionView("lost", "No connection"))


async def test_every_key_that_works_somewhere_is_in_the_table_and_the_other_way_round(port: FakePort) -> None:
    promised = {
        (part, f"suggest({part})" if key.action == "suggest" else key.action)
        for key in KEYS
        for part in key.keys.split(",")
    }
    found: set[tuple[str, str]] = set()
    async with running(port) as (app, pilot):
        port.say(ROWS, AWAY, status("tool"), LOST)
        port.say(ApprovalsChanged((approval(),)), QueueChanged(QUEUE), RecoveryChanged(RECOVERY))
        await settle(pilot, port)
        # The composer, the card, a reason, back to take it up again, the other card, the queue,
        # the transcript, a search, a list, a dialog, the details, the help.
        way = "- tab r escape tab tab tab tab f3 escape f2 escape ctrl+q escape f4 escape f1 escape"
        for key in way.split():
            if key != "-":
                await pilot.press(key)
            found |= {(key, active.binding.action) for key, active in app.screen.active_bindings.items()}
        port.say(NeedsSetup("There is no model yet."))
        await settle(pilot, port)
        found |= {(key, active.binding.action) for key, active in app.screen.active_bindings.items()}
    assert found - promised == set()
    forms = {("tab", "app.focus_next"), ("shift+tab", "app.focus_previous")}
    assert promised - found - forms == set()


def test_the_help_screen_is_made_of_the_table_and_the_commands() -> None:
    lines = help_lines()
    told = {words for _, words in lines}
    assert {key.words for key in KEYS} <= told
    assert all(names(key.keys) for key in KEYS)
    for command in COMMANDS:
        assert any(key.split()[0] == f"/{command.name}" for key, _ in lines)
