"""The status line: every state of a turn in every state of the connection."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest
from fakeport import FakePort
from scenes import running, settle, status
from textual.widgets import Static

from letta_tui.seam.intents import Abort, Quit
from letta_tui.seam.state import Activity, ConnectionView, Phase
from letta_tui.seam.updates import ConnectionChanged
from letta_tui.ui.chat.doing import LINKED, Contact, doing
from letta_tui.ui.dialogs.leave import LeaveDialog

ACTIVITIES: tuple[Activity, ...] = get_args(Activity)
PHASES: tuple[Phase, ...] = get_args(Phase)
BROKE = " when the connection broke"


@pytest.mark.parametrize(("activity", "phase", "broke"), product(ACTIVITIES, PHASES, (False, True)))
def test_what_goes_on_is_said_as_going_on_only_where_the_server_is_heard(
    activity: Activity, phase: Phase, broke: bool
) -> None:
    words = doing(activity, "Answering", Contact(phase, broke))
    if activity == "idle":
        assert words == ("Answering" if phase == "ready" else "")
    elif phase in LINKED and not broke:
        assert words == "Answering"
    else:
        assert words.startswith("Was ")
        assert words.endswith(BROKE if broke else " when last seen")


@pytest.mark.parametrize(
    ("phases", "live", "broke"),
    [
        (["connecting", "recovering", "ready"], True, False),
        (["ready", "lost"], False, True),
        (["ready", "lost", "connecting", "recovering"], False, True),  # what was missed is being read
        (["ready", "lost", "connecting", "recovering", "ready"], True, False),
        (["recovering", "failed", "connecting"], False, True),
        (["ready", "recovering"], True, False),  # another conversation, on the same connection
        (["ready", "connecting"], False, False),  # left for another machine
        (["starting", "connecting", "lost"], False, False),  # there was none yet
        (["ready", "closed"], False, False),
    ],
)
def test_a_break_is_remembered_until_everything_is_known_again(
    phases: list[Phase], live: bool, broke: bool
) -> None:
    contact = Contact()
    for phase in phases:
        contact = contact.then(phase)
    assert (contact.live, contact.broke) == (live, broke)


async def test_without_a_connection_no_clock_runs_and_nothing_can_be_stopped(
    port: FakePort,
) -> None:
    async with running(port) as (app, pilot):
        port.say(status("streaming"))
        await settle(pilot, port)
        assert "0:42" in app.chat.status_bar.activity().plain
        assert "Esc stops" in app.chat.status_bar.activity().plain
        port.say(ConnectionChanged(ConnectionView("lost", "No connection")))
        await settle(pilot, port)
        assert app.chat.status_bar.activity().plain == "▪ Was answering" + BROKE
        await pilot.press("escape")
        assert port.sent(Abort) == []
        assert app.chat.status_bar.activity().plain == "▪ Was answering" + BROKE
        await pilot.press("ctrl+q", "down", "enter")  # leave, stay: there is no third
        assert port.sent(Quit) == []
        await pilot.press("ctrl+q", "enter")
        assert port.sent(Quit) == [Quit("keep")]


async def test_a_turn_that_ends_while_one_is_asked_about_it_is_not_called_running(
    port: FakePort,
) -> None:
    async with running(port) as (app, pilot):
        port.say(status("streaming"))
        await settle(pilot, port)
        await pilot.press("ctrl+q", "down")

        def shown() -> tuple[str, list[str | None]]:
            dialog = app.screen
            assert isinstance(dialog, LeaveDialog)
            title = str(dialog.query_one("#title", Static).render())
            return title, [option.id for option in dialog.options.options]

        asked = ("A turn is running", ["keep", "stop", "stay"])
        assert shown() == asked
        port.say(status("idle"))
        await settle(pilot, port)
        assert shown() == ("The turn has ended meanwhile", ["keep", "stay"])
        port.say(status("waiting"))  # what was queued has begun
        await settle(pilot, port)
        assert shown() == asked
        port.say(ConnectionChanged(ConnectionView("lost", "No connection")))
        await settle(pilot, port)
        assert shown() == ("A turn was running when the connection broke", ["keep", "stay"])
        port.say(status("idle"))
        await settle(pilot, port)
        await pilot.press("enter")
        assert port.sent(Quit) == [Quit("keep")]
