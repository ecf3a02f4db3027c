"""The transcript view: a scrolling list of rows, drawn by Textual's line API.

The position is a row and a line in it, not a distance from the top: rows above may turn out taller than
estimated, older ones may be loaded, the width may change, and what is being read stays where it is.
"""

from __future__ import annotations

import os
from itertools import pairwise
from time import monotonic
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from letta_tui.seam.state import Row
from letta_tui.seam.updates import TextAppended, TranscriptChanged
from letta_tui.ui.text.lines import Line
from letta_tui.ui.transcript import palette
from letta_tui.ui.transcript.entries import Entry
from letta_tui.ui.transcript.glyphs import BAR
from letta_tui.ui.transcript.model import Entries
from letta_tui.ui.transcript.picking import LINES_PER_ROW, extract, span_on_line
from letta_tui.ui.transcript.rows import folds

GUTTER = 2
FRAME = 1 / 30
"""Seconds between two paintings of what streams in."""
_NEAR = 8  # lines from the top at which older rows are asked for
_CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), "�")


class TranscriptView(ScrollView, can_focus=True):
    """Shows the rows it is fed through :meth:`apply`; everything else is moving around in them.

    It stays at the bottom until the person scrolls up (``following``); text that then arrives raises
    ``new_below``. It copies nothing by itself: it posts :class:`CopyRequested` with the text.
    """

    ALLOW_SELECT = True
    COMPONENT_CLASSES: ClassVar[set[str]] = set(palette.COMPONENT_CLASSES)
    DEFAULT_CSS = (
        """
    TranscriptView {
        background: $background;
        color: $foreground;
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        scrollbar-color: $foreground 20%;
        scrollbar-background: $background;
        scrollbar-background-hover: $background;
        scrollbar-background-active: $background;
    }
    """
        + palette.CSS
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "cursor(-1)", "Row up", show=False),
        Binding("down,j", "cursor(1)", "Row down", show=False),
        Binding("enter,space", "activate", "Fold", show=False),
        Binding("e", "everything", "All output", show=False),
        Binding("c,y", "copy", "Copy", show=False),
        Binding("home,g", "top", "Top", show=False),
        Binding("end,G", "bottom", "Bottom", show=False),
        Binding("left_square_bracket", "previous_user", "Previous message", show=False),
        Binding("right_square_bracket", "next_user", "Next message", show=False),
    ]

    following: reactive[bool] = reactive(True, repaint=False)
    new_below: reactive[bool] = reactive(False, repaint=False)

    class NearTop(Message):
        """The person is near the top and there are older rows to load (posted once per arrival there)."""

    class CopyRequested(Message):
        """The person asked to copy ``text``; empty when there was nothing to copy: say so."""

        def __init__(self, text: str, what: str) -> None:
            super().__init__()
            self.text = text
            self.what = what  # "selection", "message", "" (nothing)

    class FollowChanged(Message):
        """``following`` or ``new_below`` changed."""

        def __init__(self, following: bool, new_below: bool) -> None:
            super().__init__()
            self.following = following
            self.new_below = new_below

    class RowActivated(Message):
        """Enter or a click on a row that does not fold (a user row with a send behind it, for example)."""

        def __init__(self, row: Row) -> None:
            super().__init__()
            self.row = row

    def __init__(
        self,
        *,
        ascii_only: bool | None = None,
        **widget: Any,
    ) -> None:
        """``ascii_only``: no signs beyond ASCII (None: as the terminal's name suggests)."""
        super().__init__(**widget)
        if ascii_only is None:
            ascii_only = os.environ.get("TERM", "") in ("linux", "dumb")
        self._entries = Entries(ascii_only)
        self._palette = palette.Palette(self)
        self._cursor: str | None = None
        self._anchor: tuple[str, int] | None = None  # (row key, line) at the top, when not following
        self._frame: list[tuple[Entry, int]] = []  # what stands on each screen line
        self._strips: dict[tuple[object, ...], tuple[Line, Strip]] = {}
        self._stale = True
        self._timer: Timer | None = None
        self._last_flush = 0.0
        self._more_above = False
        self._asked_for_older = False
        self._needle = ""
        self._moving = False  # the scroll position is being set by us

    # What it shows

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows as last given; text that grew since is in :meth:`text_of`."""
        return tuple(entry.row for entry in self._entries)

    def text_of(self, key: str) -> str:
        """The raw text of row ``key`` with everything appended so far; '' when it is not here."""
        index = self._entries.index(key)
        return "" if index is None else self._entries.items[index].text

    @property
    def cursor_row(self) -> Row | None:
        """The row the keyboard is on, if any."""
        index = self._entries.index(self._cursor)
        return None if index is None else self._entries.items[index].row

    def apply(self, update: TranscriptChanged | TextAppended) -> None:
        """Take an update; cheap, painting comes later and at most 30 times a second."""
        before = self._entries.renumbered
        if isinstance(update, TranscriptChanged):
            self._more_above = update.more_above
            self._keep_anchor_row(update)
            if update.reset or any(splice.start == 0 for splice in update.splices):
                self._asked_for_older = False
        self._entries.apply(update)
        if isinstance(update, TranscriptChanged) and update.reset:
            self._cursor = None
            self._anchor = None
            self.following = True
            self.new_below = False
        elif not self.following:
            tail = not isinstance(update, TranscriptChanged) or any(
                splice.start > 0 for splice in update.splices
            )
            self.new_below = self.new_below or tail
        if self._entries.renumbered != before:
            self._strips.clear()
            if self.is_attached and self.text_selection is not None:
                self.screen.clear_selection()
        self._stale = True
        self._schedule()

    def _keep_anchor_row(self, update: TranscriptChanged) -> None:
        """The row at the top is taken away: hold on to the nearest one that stays."""
        if self._anchor is None or update.reset:
            return
        index = self._entries.index(self._anchor[0])
        for splice in update.splices:
            if index is None or not splice.start <= index < splice.start + splice.delete:
                continue
            if any(row.key == self._anchor[0] for row in splice.rows):
                continue
            stays = splice.start - 1 if splice.start else splice.start + splice.delete
            if 0 <= stays < len(self._entries):
                self._anchor = (self._entries.items[stays].row.key, 0)

    def _schedule(self) -> None:
        if not self.is_attached or self._timer is not None:
            return
        wait = max(0.0, self._last_flush + FRAME - monotonic())
        self._timer = self.set_timer(max(wait, 0.001), self._flush)

    def _flush(self) -> None:
        self._timer = None
        self._last_flush = monotonic()
        if self._stale:
            self._compose_frame()
            self.refresh()

    # Layout

    @property
    def _height(self) -> int:
        return self.scrollable_content_region.height

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    def _compose_frame(self) -> None:
        """Decide what stands on each screen line, laying out exactly the rows that are seen."""
        width, height = self._width, self._height
        self._stale = False
        if width <= GUTTER or height <= 0:
            self._frame = []
            self._stale = True
            return
        entries = self._entries
        entries.set_width(width - GUTTER)
        if not len(entries):
            self._frame = []
            self._set_scroll(0)
            return
        top, line = self._bottom_position(height) if self.following else self._anchor_position()
        frame = self._fill(top, line, height)
        if len(frame) < height and not self.following:
            # The end came before the screen was full: stand at the end.
            top, line = self._bottom_position(height)
            frame = self._fill(top, line, height)
        self._frame = frame
        self._anchor = (entries.items[top].row.key, line)
        self._set_scroll(entries.heights.prefix(top) + line)
        entries.trim()
        if self._more_above and not self._asked_for_older and entries.heights.prefix(top) + line < _NEAR:
            self._asked_for_older = True
            self.post_message(self.NearTop())

    def _fill(self, top: int, line: int, height: int) -> list[tuple[Entry, int]]:
        frame: list[tuple[Entry, int]] = []
        while len(frame) < height and top < len(self._entries):
            entry = self._entries.lay_out(top)
            stop = min(entry.height, line + height - len(frame))
            frame += [(entry, number) for number in range(line, stop)]
            top, line = top + 1, 0
        return frame

    def _anchor_position(self) -> tuple[int, int]:
        key, line = self._anchor or ("", 0)
        index = self._entries.index(key)
        if index is None:
            return self._bottom_position(self._height)
        entry = self._entries.lay_out(index)
        return index, max(0, min(line, entry.height - 1))

    def _bottom_position(self, height: int) -> tuple[int, int]:
        """(row, line) at the top of the screen when the last line is at its bottom."""
        index = len(self._entries)
        left = height
        while index > 0:
            index -= 1
            entry = self._entries.lay_out(index)
            if entry.height >= left:
                return index, entry.height - left
            left -= entry.height
        return 0, 0

    def _walk(self, index: int, line: int, lines: int) -> tuple[int, int]:
        """The place ``lines`` below (negative: above) a place, by true heights."""
        entries = self._entries
        line += lines
        while line < 0 and index > 0:
            index -= 1
            line += entries.lay_out(index).height
        while index < len(entries) - 1 and line >= entries.lay_out(index).height:
            line -= entries.items[index].height
            index += 1
        return index, max(0, line)

    def _set_scroll(self, y: int) -> None:
        """Tell Textual where we are, without a layout of the whole screen."""
        size = Size(self._width, max(self._entries.heights.total, 0))
        self._moving = True
        try:
            if size != self.virtual_size:
                self.set_reactive(Widget.virtual_size, size)
                if self.show_vertical_scrollbar:
                    bar = self.vertical_scrollbar
                    bar.window_virtual_size = size.height
                    bar.window_size = self._height
            y = max(0, min(y, self.max_scroll_y))
            if round(self.scroll_y) != y:
                self.set_reactive(Widget.scroll_y, float(y))
                if self.show_vertical_scrollbar and not self.is_vertical_scrollbar_grabbed:
                    self.vertical_scrollbar.position = y
            self.set_reactive(Widget.scroll_target_y, float(y))
        finally:
            self._moving = False

    def _scroll_to(  # animation would interpolate between positions that are only estimates
        self, x: float | None = None, y: float | None = None, **options: object
    ) -> bool:
        if y is None:
            return False
        before = self._anchor
        self.scroll_y = y
        return before != self._anchor

    def _scroll_update(self, virtual_size: Size) -> None:
        # Textual fits the position into a new size here. That is nobody's scrolling: where it stands
        # (or that it follows) is decided when the frame is composed for that size.
        self._moving = True
        try:
            super()._scroll_update(virtual_size)
        finally:
            self._moving = False

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._moving or not len(self._entries) or not self._frame or round(old_value) == round(new_value):
            return
        self._moved_to(round(old_value), round(new_value))

    def _moved_to(self, old: int, new: int) -> None:
        """The person scrolled: a short way by true heights, a long one by estimates."""
        entries = self._entries
        change = new - old
        if new >= self.max_scroll_y and change > 0:
            self._follow()
            return
        self.following = False
        if abs(change) <= 3 * self._height and not self.is_vertical_scrollbar_grabbed:
            index, line = self._walk(*self._anchor_position(), change)
        else:
            index, line = entries.heights.find(max(0, new))
            if index >= len(entries):
                index, line = len(entries) - 1, 0
        self._anchor = (entries.items[index].row.key, line)
        self._compose_frame()
        if (index, line) >= self._bottom_position(self._height):
            self._follow()
        self.refresh()

    def _follow(self) -> None:
        self.following = True
        self.new_below = False
        self._compose_frame()
        self.refresh()

    def _watch_following(self) -> None:
        self._tell()

    def _watch_new_below(self) -> None:
        self._tell()

    def _tell(self) -> None:
        if self.is_attached:
            self.post_message(self.FollowChanged(self.following, self.new_below))

    # Painting

    def render_line(self, y: int) -> Strip:
        if self._stale and self._timer is None:
            self._compose_frame()
        width = self._width
        if y >= len(self._frame):
            return Strip.blank(width, self._palette.base)
        entry, number = self._frame[y]
        line = entry.line(number)
        place = entry.ordinal * LINES_PER_ROW + number
        selected = span_on_line(self.text_selection, place)
        on_cursor = self.has_focus and entry.row.key == self._cursor and number >= entry.margin
        key = (id(line), place, width, selected, on_cursor, self._needle, entry.row.kind)
        kept = self._strips.get(key)
        if kept is not None and kept[0] is line:
            return kept[1]
        strip = self._strip(entry, number, line, width, selected, on_cursor).apply_offsets(0, place)
        if len(self._strips) > 2_000:
            self._strips.clear()
        self._strips[key] = (line, strip)  # keeping the line keeps its id from being used again
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
        bar = BAR[self._entries.ascii_only] + " "
        if number < entry.margin or not (on_cursor or entry.row.kind == "user"):
            segments = [Segment(" " * GUTTER, look.base)]
        else:
            segments = [Segment(bar, look["cursor-bar" if on_cursor else "user-bar"])]
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
        if not self._needle:
            return []
        text, size = line.text.casefold(), len(self._needle)
        if len(text) != len(line.text):
            return []
        found: list[tuple[int, int]] = []
        at = text.find(self._needle)
        while at >= 0:
            found.append((at, at + size))
            at = text.find(self._needle, at + size)
        return found

    def _marked(
        self, line: Line, selected: tuple[int, int] | None, found: list[tuple[int, int]]
    ) -> list[Segment]:
        """The line's segments with selection and search hits laid over."""
        chosen = self.screen.get_component_rich_style("screen--selection")
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

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._palette.clear()
        self._strips.clear()

    # Events

    def on_mount(self) -> None:
        self._stale = True
        self._schedule()

    def on_resize(self) -> None:
        self._strips.clear()
        if self.text_selection is not None and self._entries.width != self._width - GUTTER:
            self.screen.clear_selection()
        self._compose_frame()
        self.refresh()

    def on_focus(self) -> None:
        if self._cursor is None and self._frame:
            self._cursor = self._frame[-1][0].row.key
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        if self.text_selection is not None or event.button != 1 or not 0 <= event.y < len(self._frame):
            return
        entry, number = self._frame[event.y]
        if number < entry.margin:
            return
        self._cursor = entry.row.key
        if folds(entry.row) and (number == entry.margin or entry.folded):
            self.toggle_fold(entry.row.key)
        elif "more lines" in entry.line(number).text and entry.row.tool is not None:
            self.action_everything()
        else:
            self.post_message(self.RowActivated(entry.row))
        self.refresh()

    # Keys

    def action_cursor(self, step: int) -> None:
        """The cursor one row on; long rows scroll under it first."""
        entries = self._entries
        if not len(entries):
            return
        index = entries.index(self._cursor)
        if index is None:
            index = len(entries) - 1 if self.following else entries.index((self._anchor or ("",))[0]) or 0
        else:
            index = max(0, min(len(entries) - 1, index + step))
        self._cursor = entries.items[index].row.key
        self._show(index)

    def _show(self, index: int) -> None:
        """Scroll as little as needed to have the beginning of row ``index`` on the screen."""
        seen = [
            number for number, (entry, _) in enumerate(self._frame) if entry is self._entries.items[index]
        ]
        if not seen:
            top = self._frame[0][0].ordinal if self._frame else 0
            if self._entries.items[index].ordinal < top:
                self._stand_at(index, 0)
            else:
                height = self._entries.lay_out(index).height
                back = max(0, self._height - height)
                self._stand_at(*self._walk(index, 0, -back))
        self.refresh()

    def _stand_at(self, index: int, line: int) -> None:
        self.following = False
        self._anchor = (self._entries.items[index].row.key, line)
        self._compose_frame()
        if self._frame and self._frame[-1][0] is self._entries.items[-1]:
            last, number = self._frame[-1]
            if number == last.height - 1:
                self.following = True
                self.new_below = False
        self.refresh()

    def action_activate(self) -> None:
        row = self.cursor_row
        if row is None:
            return
        if not self.toggle_fold(row.key):
            self.post_message(self.RowActivated(row))

    def action_everything(self) -> None:
        """Show a tool's whole output, or only its beginning again."""
        index = self._entries.index(self._cursor)
        if index is not None and self._entries.items[index].row.tool is not None:
            entry = self._entries.items[index]
            entry.everything = not entry.everything
            entry.folded = False
            self._changed_in_place()

    def action_copy(self) -> None:
        self.post_message(self.CopyRequested(*self.copy_text()))

    def action_top(self) -> None:
        self.jump_top()

    def action_bottom(self) -> None:
        self.jump_bottom()

    def action_previous_user(self) -> None:
        self.jump_previous_user()

    def action_next_user(self) -> None:
        self.jump_next_user()

    # Copying

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Textual's question for the text under a selection of it."""
        text = extract(self._entries, selection, GUTTER)
        return (text, "\n") if text else None

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    def get_selection_text(self) -> str:
        """The visible text under the mouse selection without decorations, or ''."""
        selection = self.text_selection if self.is_attached else None
        return "" if selection is None else extract(self._entries, selection, GUTTER)

    def copy_text(self) -> tuple[str, str]:
        """(text, what): the selection, else the cursor row's source; ('', '') when there is neither."""
        text = self.get_selection_text()
        if text:
            return text, "selection"
        index = self._entries.index(self._cursor)
        text = "" if index is None else self._entries.items[index].source
        return (text, "message") if text else ("", "")

    # Moving

    def jump_top(self) -> None:
        """To the first row."""
        if len(self._entries):
            self._cursor = self._entries.items[0].row.key
            self._stand_at(0, 0)

    def jump_bottom(self) -> None:
        """To the end, following it again."""
        if len(self._entries):
            self._cursor = self._entries.items[-1].row.key
        self._follow()

    def jump_previous_user(self) -> bool:
        """Put the previous user row at the top; False when there is none."""
        start = self._top_index()
        index, line = start if start is not None else (0, 0)
        first = index if start is not None and line > self._entries.items[index].margin else index - 1
        return self._jump_user(range(first, -1, -1))

    def jump_next_user(self) -> bool:
        """Put the next user row at the top; False when there is none."""
        start = self._top_index()
        return self._jump_user(range((start[0] if start else -1) + 1, len(self._entries)))

    def _top_index(self) -> tuple[int, int] | None:
        if not self._frame:
            return None
        entry, line = self._frame[0]
        index = self._entries.index(entry.row.key)
        return None if index is None else (index, line)

    def _jump_user(self, candidates: range) -> bool:
        for index in candidates:
            entry = self._entries.items[index]
            if entry.row.kind == "user":
                return self.jump_to(entry.row.key)
        return False

    def jump_to(self, key: str) -> bool:
        """Put row ``key`` at the top and the cursor on it; False when it is not here."""
        index = self._entries.index(key)
        if index is None:
            return False
        self._cursor = key
        self._stand_at(index, self._entries.items[index].margin)
        return True

    def find(self, text: str, backwards: bool = True) -> bool:
        """Jump to the next row, from the cursor, whose text contains ``text`` (case folded); wraps."""
        needle = text.casefold()
        self._needle = needle
        self._strips.clear()
        count = len(self._entries)
        if not needle or not count:
            self.refresh()
            return False
        here = self._entries.index(self._cursor)
        if here is None:
            here = count if backwards else -1
        step = -1 if backwards else 1
        for number in range(1, count + 1):
            index = (here + step * number) % count
            if needle in self._entries.items[index].source.casefold():
                self._cursor = self._entries.items[index].row.key
                self._stand_at(*self._line_with(index, needle))
                return True
        self.refresh()
        return False

    def _line_with(self, index: int, needle: str) -> tuple[int, int]:
        """A place that shows the first hit in row ``index``, with some lines before it."""
        entry = self._entries.items[index]
        entry.folded = False if folds(entry.row) else entry.folded
        self._entries.lay_out(index)
        hit = self._first_hit(entry, needle)
        if not hit and entry.row.tool is not None and not entry.everything:
            entry.everything = True
            self._entries.lay_out(index)
            hit = self._first_hit(entry, needle)
        return self._walk(index, hit, -min(hit, self._height // 3) if hit else 0)

    @staticmethod
    def _first_hit(entry: Entry, needle: str) -> int:
        return next((n for n in range(entry.height) if needle in entry.line(n).text.casefold()), 0)

    def find_clear(self) -> None:
        """Forget the search and its highlights."""
        self._needle = ""
        self._strips.clear()
        self.refresh()

    # Folding

    def toggle_fold(self, key: str | None = None) -> bool:
        """Fold or unfold row ``key`` (None: the cursor row); False when it does not fold."""
        index = self._entries.index(self._cursor if key is None else key)
        if index is None or not folds(self._entries.items[index].row):
            return False
        entry = self._entries.items[index]
        entry.folded = not entry.folded
        entry.everything = False
        self._changed_in_place()
        return True

    def fold_all(self, folded: bool) -> None:
        """Fold or unfold every row that folds, now and later."""
        self._entries.fold_all(folded)
        self._changed_in_place()

    def _changed_in_place(self) -> None:
        """A row on the screen changed by a key: what is above it stays where it is."""
        if self.following and self._anchor is not None:
            self.following = False
            self._compose_frame()
            bottom = self._bottom_position(self._height)
            if self._anchor_position() >= bottom:
                self.following = True
        self._compose_frame()
        self.refresh()


def _safe(text: str) -> str:
    """The last gate: no control character leaves here, wherever it may have come from."""
    return text if text.isprintable() else text.translate(_CONTROLS)
