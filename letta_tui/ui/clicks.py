"""Answers that can be clicked, and knowing whether a click was meant for them.

A click is a deliberate act, but only for what a person saw before pressing the button. Things move: a card
pops up under the pointer, the next call takes the place of the one just answered, a list closes over a card.
So an answer counts when the button went down on it and was let go on it, and when it had been painted at
this very place, for this very question, ``GRACE`` before the button went down.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from textual import events
from textual.content import Content
from textual.errors import NoWidget
from textual.geometry import Offset, Region
from textual.message import Message
from textual.screen import Screen
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

if TYPE_CHECKING:
    from letta_tui.ui.app import LettaTuiApp

GRACE = 1.0
"""Seconds. Who was about to click elsewhere when an answer appeared has let go by then."""
DOUBLE = 0.5
"""Seconds within which a second click belongs to the first."""
_ANSWER = "answer"


def answer(words: Content, name: str) -> Content:
    """``words``, which give the answer ``name`` when they are clicked; none for ""."""
    return words.stylize(Style.from_meta({_ANSWER: name})) if name else words


@dataclass(frozen=True, slots=True)
class Spot:
    """Where an answer stands: a row of the screen, its first column and the one behind its last."""

    row: int
    start: int
    end: int
    answer: str


class Spots:
    """Which answers stand where, and since when (seconds of a monotonic clock)."""

    def __init__(self) -> None:
        self.subject = ""
        self._since: dict[Spot, float] = {}

    def about(self, subject: str) -> None:
        """The question that is answered; another one makes new answers of the same words."""
        if subject != self.subject:
            self.subject = subject
            self.forget()

    def forget(self) -> None:
        """What stood there was covered or has moved: it counts from its next painting on."""
        self._since = {}

    def painted(self, rows: range, spots: Iterable[Spot], now: float) -> None:
        """``spots`` are all that was painted on ``rows``."""
        kept = {spot: since for spot, since in self._since.items() if spot.row not in rows}
        kept.update({spot: self._since.get(spot, now) for spot in spots})
        self._since = kept

    def at(self, place: Offset) -> Spot | None:
        column, row = place
        return next((s for s in self._since if s.row == row and s.start <= column < s.end), None)

    def since(self, spot: Spot) -> float:
        """When ``spot`` was first painted; infinite when it is not on the screen."""
        return self._since.get(spot, inf)

    def counts(self, spot: Spot, pressed: float) -> bool:
        """``spot`` had been seen long enough when the button went down at ``pressed``."""
        return self.since(spot) + GRACE <= pressed


@dataclass(frozen=True, slots=True)
class Press:
    """A button that went down on an answer, as it was then."""

    widget: Clickable
    subject: str
    spot: Spot
    counts: bool
    time: float


class Clickable(Widget):
    """A widget with answers among what it shows; it posts ``Answered`` for a click that was meant for one."""

    class Answered(Message):
        """``time``: when the button went down. ``subject``: the question that was answered."""

        def __init__(self, answer: str, subject: str, time: float) -> None:
            super().__init__()
            self.answer = answer
            self.subject = subject
            self.time = time

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.spots = Spots()
        self._place = Region()
        self._under_pointer = ""

    def start_over(self) -> None:
        """It was covered, or nobody looked: what it shows is seen from now on."""
        self.spots.forget()
        self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        strips = super().render_lines(crop)
        place = self.region
        if place != self._place:
            self._place = place
            self.spots.forget()
        spots: list[Spot] = []
        for row, strip in enumerate(strips, place.y + crop.y):
            spots += _spots_of(strip, row, place.x + crop.x)
        rows = range(place.y + crop.y, place.y + crop.y + len(strips))
        self.spots.painted(rows, spots, monotonic())
        if self._under_pointer:
            strips = [_underlined(strip, self._under_pointer) for strip in strips]
        return strips

    def pressed(self, event: events.MouseDown) -> Press | None:
        """The answer that the button went down on, before anything is done about it."""
        spots = self.spots
        spot = spots.at(event.screen_offset)
        if spot is None or event.button != 1:
            return None
        return Press(self, spots.subject, spot, spots.counts(spot, event.time), event.time)

    def on_click(self, event: events.Click) -> None:
        press = cast("LettaTuiApp", self.app).press
        if press is None or press.widget is not self:
            return
        event.stop()
        event.prevent_default()
        # A click that does not count is passed over without a word: words would move what is clicked again.
        same = press.subject == self.spots.subject and press.spot == self.spots.at(event.screen_offset)
        if same and press.counts:
            self.post_message(self.Answered(press.spot.answer, press.subject, press.time))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._point_at(str(event.style.meta.get(_ANSWER, "")))

    def on_leave(self) -> None:
        self._point_at("")

    def _point_at(self, name: str) -> None:
        if name != self._under_pointer:
            self._under_pointer = name
            self.refresh()


def pressed(screen: Screen[Any], event: events.MouseDown) -> Press | None:
    """The answer under the pointer as the button went down."""
    try:
        widget, _ = screen.get_widget_at(event.x, event.y)
    except NoWidget:
        return None
    return widget.pressed(event) if isinstance(widget, Clickable) else None


def _spots_of(strip: Strip, row: int, column: int) -> list[Spot]:
    """The answers in a painted line that begins at ``column``."""
    spots: list[Spot] = []
    for segment in strip:
        end = column + segment.cell_length
        name = segment.style.meta.get(_ANSWER, "") if segment.style is not None else ""
        if name and spots and spots[-1].end == column and spots[-1].answer == name:
            spots[-1] = Spot(row, spots[-1].start, end, name)
        elif name:
            spots.append(Spot(row, column, end, name))
        column = end
    return spots


def _underlined(strip: Strip, name: str) -> Strip:
    from rich.segment import Segment
    from rich.style import Style as RichStyle

    line = RichStyle(underline=True)
    return Strip(
        [
            Segment(s.text, s.style + line, s.control)
            if s.style is not None and s.style.meta.get(_ANSWER) == name and s.text.strip()
            else s
            for s in strip
        ],
        strip.cell_length,
    )
