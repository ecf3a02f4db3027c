"""Leaving while a turn is running."""

from __future__ import annotations

from letta_tui.seam.state import ConnectionView
from letta_tui.seam.updates import ConnectionChanged, StatusChanged, Update
from letta_tui.ui.chat.doing import LINKED
from letta_tui.ui.dialogs.picker import Item, Picker

_STAY = Item("stay", "Stay here")


def question(link: ConnectionView, *, running: bool) -> tuple[str, tuple[Item, ...]]:
    """What is asked, and the answers: "keep" leaves, "stop" stops the turn first, "stay" does neither.

    Without a connection nothing can be stopped, and of a turn only the past is known.
    """
    if not running:
        return "The turn has ended meanwhile", (Item("keep", "Leave"), _STAY)
    if link.phase not in LINKED:
        note = "what becomes of it cannot be seen from here"
        return "A turn was running when the connection broke", (
            Item("keep", "Leave", note, style="$warning"),
            _STAY,
        )
    if link.held or link.goes_on:
        keep = Item("keep", "Leave it running", link.goes_on or "it goes on without this window")
    else:
        note = "nothing holds the turn: the server may cancel it"
        keep = Item("keep", "Leave now", note, style="$warning")
    return "A turn is running", (keep, Item("stop", "Stop it, then leave", "waits for its end"), _STAY)


class LeaveDialog(Picker):
    """Returns "keep", "stop" or None (stay). It asks anew when what it asks about changes."""

    def __init__(self, link: ConnectionView) -> None:
        self._link, self._running = link, True
        title, answers = question(link, running=True)
        super().__init__(title, answers, searchable=False)

    def apply_update(self, update: Update) -> None:
        match update:
            case StatusChanged(status):
                self._running = status.activity != "idle"
            case ConnectionChanged(link):
                self._link = link
            case _:
                return
        if self.query("#title"):
            self._ask()

    def on_mount(self) -> None:
        self._ask()  # something may have changed before this was composed

    def _ask(self) -> None:
        title, answers = question(self._link, running=self._running)
        self.entitle(title)
        self.fill(answers)

    def chosen(self, item_id: str) -> None:
        self.dismiss(None if item_id == "stay" else item_id)
