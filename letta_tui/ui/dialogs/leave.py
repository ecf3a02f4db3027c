"""Leaving while a turn is running."""

from __future__ import annotations

from letta_tui.seam.updates import StatusChanged, Update
from letta_tui.ui.dialogs.picker import Item, Picker


class LeaveDialog(Picker):
    """Returns "keep", "stop" or None (stay). ``goes_on``: as in ``ConnectionView``; ``linked``: there is a
    connection, without which nothing can be stopped."""

    def __init__(self, held: bool, goes_on: str = "", *, linked: bool = True) -> None:
        if not linked:
            keep = Item("keep", "Leave", "what becomes of it cannot be seen from here", style="$warning")
        elif held or goes_on:
            keep = Item("keep", "Leave it running", goes_on or "it goes on without this window")
        else:
            keep = Item(
                "keep", "Leave now", "nothing holds the turn: the server may cancel it", style="$warning"
            )
        super().__init__(
            "A turn is running" if linked else "A turn was running when the connection broke",
            (
                keep,
                *((Item("stop", "Stop it, then leave", "waits for its end"),) if linked else ()),
                Item("stay", "Stay here"),
            ),
            searchable=False,
        )

        self._asked, self._answers = self._title, self._items
        self._over = False

    def apply_update(self, update: Update) -> None:
        """The turn may end while it is asked about, and the next one begin: then the question is another."""
        if not isinstance(update, StatusChanged) or (over := update.status.activity == "idle") == self._over:
            return
        self._over = over
        if self.query("#title"):
            self._ask()

    def on_mount(self) -> None:
        if self._over:  # it ended before this was composed
            self._ask()

    def _ask(self) -> None:
        self.entitle("The turn has ended meanwhile" if self._over else self._asked)
        self.fill((Item("keep", "Leave"), Item("stay", "Stay here")) if self._over else self._answers)

    def chosen(self, item_id: str) -> None:
        self.dismiss(None if item_id == "stay" else item_id)
