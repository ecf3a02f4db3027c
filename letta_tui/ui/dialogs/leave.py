"""Leaving while a turn is running."""

from __future__ import annotations

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

    def chosen(self, item_id: str) -> None:
        self.dismiss(None if item_id == "stay" else item_id)
