"""From a laid out line to the strip that is drawn: bars, selection, search hits, the last gate."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.strip import Strip
from textual.widget import Widget

from letta_tui.ui.text.lines import Line
from letta_tui.ui.transcript import palette
from letta_tui.ui.transcript.entries import Entry
from letta_tui.ui.transcript.glyphs import BAR
from letta_tui.ui.transcript.picking import LINES_PER_ROW

GUTTER = 2
_CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), "�")
_KEPT = 2_000  # strips


class Painter:
    """Draws lines for ``widget`` and keeps what it drew. ``needle`` (case folded) is marked where it is."""

    def __init__(self, widget: Widget, ascii_only: bool) -> None:
        self.needle = ""
        self._widget = widget
        self._palette = palette.Palette(widget)
        self._bar = BAR[ascii_only] + " "
        self._strips: dict[tuple[object, ...], tuple[Line, Strip]] = {}
        self._width = 0
        self._sides = (0, 0)
        self._filters: Sequence[LineFilter] = ()
        self._blank: Strip | None = None
        self._ground: Color | None = None

    def prepare(self, width: int, left: int, right: int, filters: Sequence[LineFilter]) -> None:
        """What all lines share: cells of text, padding beside it, filters for the terminal's colours."""
        if (width, (left, right), filters) != (self._width, self._sides, self._filters):
            self._width, self._sides, self._filters = width, (left, right), filters
            self.forget()

    def forget(self) -> None:
        """Lines have other numbers now, or another width."""
        self._strips.clear()
        self._blank = None
        self._ground = None

    def new_look(self) -> None:
        """The theme changed."""
        self._palette.clear()
        self.forget()

    def search(self, needle: str) -> None:
        self.needle = needle
        self._strips.clear()

    def blank(self) -> Strip:
        if self._blank is None:
            self._blank = self._finish(Strip.blank(self._width, self._palette.base))
        return self._blank

    def line(self, entry: Entry, number: int, selected: tuple[int, int] | None, on_cursor: bool) -> Strip:
        """Line ``number`` of ``entry``; ``selected`` are the columns (end -1: to the end) under the mouse."""
        line = entry.line(number)
        place = entry.ordinal * LINES_PER_ROW + number
        key = (id(line), place, selected, on_cursor, self.needle, entry.row.kind)
        kept = self._strips.get(key)
        if kept is not None and kept[0] is line:
            return kept[1]
        strip = self._strip(entry, number, line, self._width, selected, on_cursor)
        strip = self._finish(strip.apply_offsets(0, place))
        if len(self._strips) > _KEPT:
            self._strips.clear()
        self._strips[key] = (line, strip)  # keeping the line keeps its id from being used again
        return strip

    def _finish(self, strip: Strip) -> Strip:
        left, right = self._sides
        if left or right:
            ground = Style(bgcolor=self._palette.base.bgcolor)
            segments = [Segment(" " * left, ground), *strip, Segment(" " * right, ground)]
            strip = Strip([segment for segment in segments if segment.text], left + strip.cell_length + right)
        if self._ground is None:
            self._ground = self._widget.background_colors[1]
        for each in self._filters:
            strip = strip.apply_filter(each, self._ground)
        return strip

    def _strip(
        self,
        entry: Entry,
        number: int,
        line: Line,
        width: int,
        selected: tuple[int, int] | None,
        on_cursor: bool,
    ) -> Strip:
        look = self._palette
        if number < entry.margin or not (on_cursor or entry.row.kind == "user"):
            segments = [Segment(" " * GUTTER, look.base)]
        else:
            segments = [Segment(self._bar, look["cursor-bar" if on_cursor else "user-bar"])]
        found = self._found_in(line)
        if selected is None and not found:
            segments += [Segment(_safe(text), look[style]) for text, style in line.painted() if text]
        else:
            segments += self._marked(line, selected, found)
        strip = Strip(segments)
        cells = strip.cell_length
        if cells < width:
            segments.append(Segment(" " * (width - cells), look.base))
            return Strip(segments, width)
        return strip.crop(0, width) if cells > width else strip

    def _found_in(self, line: Line) -> list[tuple[int, int]]:
        if not self.needle:
            return []
        text, size = line.text.casefold(), len(self.needle)
        if len(text) != len(line.text):
            return []
        found: list[tuple[int, int]] = []
        at = text.find(self.needle)
        while at >= 0:
            found.append((at, at + size))
            at = text.find(self.needle, at + size)
        return found

    def _marked(
        self, line: Line, selected: tuple[int, int] | None, found: list[tuple[int, int]]
    ) -> list[Segment]:
        """The line's segments with selection and search hits laid over."""
        chosen = self._widget.screen.get_component_rich_style("screen--selection")
        layers: list[tuple[int, int, Style]] = [(a, b, self._palette["found"]) for a, b in found]
        if selected is not None:
            start, end = selected
            size = len(line.text)
            layers.append((max(0, start - GUTTER), size if end < 0 else max(0, end - GUTTER), chosen))
        segments: list[Segment] = []
        position = 0
        for text, style in line.painted():
            cuts = {0, len(text)}
            for start, end, _ in layers:
                cuts.update(each - position for each in (start, end) if 0 < each - position < len(text))
            marks = sorted(cuts)
            for one, two in pairwise(marks):
                look = self._palette[style]
                for start, end, layer in layers:
                    if start <= position + one < end:
                        look = look + layer
                segments.append(Segment(_safe(text[one:two]), look))
            position += len(text)
        return segments


def _safe(text: str) -> str:
    """The last gate: no control character leaves here, wherever it may have come from."""
    return text if text.isprintable() else text.translate(_CONTROLS)
