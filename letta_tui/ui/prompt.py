"""Keys before pictures: what a person typed is on the screen before anything else is drawn.

Textual draws at the next tick of a clock, sixty times a second, and then all that has changed: a key waited
for the tick and for a picture of the text that streams in. Here the field that took a key is drawn at once
and alone, and no picture is begun while a key is on its way.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic
from typing import Any, TypeVar

from textual._compositor import Compositor
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

PATIENCE = 0.05
"""Seconds that pictures wait for a key; then it was one that changes no field."""

Result = TypeVar("Result")


class Keys:
    """When the last key was read from the terminal (by the thread that reads), and which was shown."""

    def __init__(self) -> None:
        self._read = 0.0
        self._shown = 0.0

    def read(self, time: float) -> None:
        """``time`` of the key's event."""
        self._read = time

    def shown(self) -> None:
        self._shown = monotonic()

    def is_last(self, time: float) -> bool:
        """No key was read after the one of this time."""
        return time >= self._read

    @property
    def waiting(self) -> bool:
        """A key was read that no field has shown yet."""
        return self._read > self._shown and monotonic() - self._read < PATIENCE


class LeanCompositor(Compositor):
    """Asks only those widgets for lines, and only for those lines, that are on the rows to be drawn.

    Textual's asks all whose container is there, also those behind others, for all they have: most of the
    price of a key.
    """

    def _get_renders(self, crop: Region | None = None) -> Iterable[tuple[Region, Region, list[Strip]]]:
        if crop is None:
            crop = self.size.region
        rows = Region(0, crop.y, self.size.width, crop.height)
        front: list[Region] = []  # what is drawn already: nothing behind it is seen
        for widget, (region, clip) in self.visible_widgets.items():
            shown = clip.intersection(rows)
            seen = region.intersection(shown)
            if seen and not any(each.contains_region(seen) for each in front):
                front.append(seen)
                yield region, shown, widget.render_lines(seen.translate(-region.offset))


class PromptScreen(Screen[Result]):
    """A screen with a field that is written in; ``keys`` is told by the driver."""

    keys: Keys | None = None

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._compositor = LeanCompositor()

    def echo(self, field: Widget, time: float) -> None:
        """Draw ``field`` now, for the key of ``time``; whatever else has changed is drawn at the next tick.

        Of keys that came together the last one has it drawn.
        """
        if self.keys is not None:
            if not self.keys.is_last(time):
                return
            self.keys.shown()
        if self.is_current and not self.app._batch_count and field in self._compositor.visible_widgets:
            self._compositor.update_widgets({field})
            self._compositor_refresh()

    def _on_timer_update(self) -> None:
        if self.keys is None or not self.keys.waiting:
            super()._on_timer_update()
