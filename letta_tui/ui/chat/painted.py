"""Knowing what a person can have seen when a key was pressed."""

from __future__ import annotations

from time import monotonic

from textual.geometry import Region
from textual.strip import Strip
from textual.widgets import Static

from letta_tui.ui.clicks import GRACE, Clickable


class Painted(Static, Clickable):
    """A piece of a card that notes when what it shows was first painted.

    Painting means that the compositor asked for the lines in order to write them to the terminal. The
    time of a key is the moment it was read from the terminal, both on the monotonic clock, so a key that
    was typed before the card appeared never counts, however late it is handled.
    """

    def __init__(self, widget_id: str, classes: str = "") -> None:
        super().__init__("", markup=False, id=widget_id, classes=classes)
        self._subject = ""
        self._since: float | None = None

    def about(self, subject: str) -> None:
        """From now on this shows ``subject``."""
        self.spots.about(subject)
        if subject != self._subject:
            self._subject = subject
            self._since = None
            self.refresh()

    def seen(self, subject: str, key_time: float) -> bool:
        """``subject`` was on the screen before ``key_time``."""
        return (
            bool(subject) and subject == self._subject and self._since is not None and self._since < key_time
        )

    def stood(self, subject: str, pressed: float) -> bool:
        """``subject`` had been on the screen long enough for a click that began at ``pressed`` to be meant
        for it."""
        return self.seen(subject, pressed - GRACE)

    def render_lines(self, crop: Region) -> list[Strip]:
        if self._since is None and self._subject and crop.height > 0 and crop.width > 0:
            self._since = monotonic()
        return super().render_lines(crop)
