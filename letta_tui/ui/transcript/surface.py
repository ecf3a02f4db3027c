"""Where the transcript stands: which line of which row is on which line of the screen.

The position is a row and a line in it, not a distance from the top: rows above may turn out taller than
estimated, older ones may be loaded, the width may change, and what is being read stays where it is.
"""

from __future__ import annotations

import os
from math import ceil
from typing import Any, Self

from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.timer import Timer
from textual.widget import Widget

from letta_tui.seam.state import Row
from letta_tui.seam.updates import TextAppended, TranscriptChanged
from letta_tui.ui.text.lines import Line
from letta_tui.ui.transcript.entries import Entry
from letta_tui.ui.transcript.model import Entries
from letta_tui.ui.transcript.painting import GUTTER, Painter

FRAME = 1 / 30
"""Seconds between two paintings of what streams in."""
_NEAR = 2  # screens from the top at which older rows are asked for


class Surface(ScrollView):
    """The rows, their layout and the scroll position. It draws nothing: see ``TranscriptView``."""

    following: reactive[bool] = reactive(True, repaint=False)
    new_below: reactive[bool] = reactive(False, repaint=False)

    class NearTop(Message, namespace="transcript_view"):
        """The person is near the top and there are older rows to load (posted once per arrival there).

        ``to_start``: the person wants to go to the beginning; posted again after each page until there.
        """

        def __init__(self, to_start: bool = False) -> None:
            super().__init__()
            self.to_start = to_start

    class FollowChanged(Message, namespace="transcript_view"):
        """``following`` or ``new_below`` changed."""

        def __init__(self, following: bool, new_below: bool) -> None:
            super().__init__()
            self.following = following
            self.new_below = new_below

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
        self._painter = Painter(self, ascii_only)
        self._cursor: str | None = None
        self._anchor: tuple[str, int] | None = None  # (row key, line) at the top, when not following
        self._frame: list[tuple[Entry, int]] = []  # what stands on each screen line
        self._framed: tuple[int, int] | None = None  # the width and height that frame is for
        self._asked: list[tuple[Entry, int, Line]] | None = None  # what was last asked to be drawn, by line
        self._stale = True
        self._clock: Timer | None = None  # runs while something waits to be drawn
        self._more_above = False
        self._asked_for_older = False
        self._to_start = False  # on the way to the beginning, which may not be here yet
        self._thumb: tuple[int, int] | None = None  # the scrollbar's, as it was drawn
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
        if self._to_start and len(self._entries):
            self._go_to_start()
        if isinstance(update, TranscriptChanged) and update.reset:
            self._cursor = None
            self._anchor = None
            self._to_start = False
            self.following = True
            self.new_below = False
        elif not self.following:
            tail = not isinstance(update, TranscriptChanged) or any(
                splice.start > 0 for splice in update.splices
            )
            self.new_below = self.new_below or tail
        if self._entries.renumbered != before:
            self._painter.forget()
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

    def on_mount(self) -> None:
        self._clock = self.set_interval(FRAME, self.flush, pause=True)
        self._schedule()

    def _schedule(self) -> None:
        if self._clock is not None:
            self._clock.resume()

    def flush(self) -> None:
        """Ask for what was applied to be drawn; happens by itself, at most 30 times a second."""
        if self._clock is not None:
            self._clock.pause()
        if self._stale:
            self._compose_frame()
            self._refresh_changes()

    def _refresh_changes(self) -> None:
        """Ask for those lines to be drawn that are others than before: mostly the last one, which grows."""
        before = self._asked
        now = [(entry, number, entry.line(number)) for entry, number in self._frame]
        if before is None or len(before) != len(now):
            self.refresh()
        else:
            changed = [y for y, (old, new) in enumerate(zip(before, now, strict=True)) if old != new]
            if len(changed) > len(now) // 2:
                self.refresh()
            elif changed:
                self.refresh(*(Region(0, y, self._width, 1) for y in changed))
        self._asked = now

    def refresh(self, *regions: Region, **options: bool) -> Self:
        """Everything is drawn anew when no ``regions`` are given."""
        if not regions:
            self._asked = None
        return super().refresh(*regions, **options)

    # Layout

    @property
    def _height(self) -> int:
        return self.scrollable_content_region.height

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    def _compose_frame(self) -> None:
        """Decide what stands on each screen line, laying out exactly the rows that are seen."""
        width, height = self._framed = self._width, self._height
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
        self._ask_for_older(entries.heights.prefix(top) + line < _NEAR * height)

    def _ask_for_older(self, near: bool) -> None:
        if not self._more_above:
            self._to_start = False
        elif not near:
            self._asked_for_older = False  # also when it failed: whoever comes back asks again
        elif not self._asked_for_older:
            self._asked_for_older = True
            self.post_message(self.NearTop(self._to_start))

    def _go_to_start(self) -> None:
        self.following = False
        self._cursor = self._entries.items[0].row.key
        self._anchor = (self._cursor, 0)

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
            y = max(0, min(y, self.max_scroll_y))
            if round(self.scroll_y) != y:
                self.set_reactive(Widget.scroll_y, float(y))
            self.set_reactive(Widget.scroll_target_y, float(y))
            self._set_bar(size.height, y)
        finally:
            self._moving = False

    def _set_bar(self, total: int, y: int) -> None:
        """The scrollbar; drawn again only when its thumb looks different, which is seldom in a long text."""
        if not self.show_vertical_scrollbar:
            return
        bar, height = self.vertical_scrollbar, self._height
        bar.set_reactive(ScrollBar.window_virtual_size, total)
        bar.set_reactive(ScrollBar.window_size, height)
        if not self.is_vertical_scrollbar_grabbed:
            bar.set_reactive(ScrollBar.position, float(y))
        thumb = _thumb(total, height, bar.position)
        if thumb != self._thumb:
            self._thumb = thumb
            bar.refresh()

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
        self._to_start = False
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
        self._to_start = False
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


def _thumb(total: int, height: int, position: float) -> tuple[int, int] | None:
    """Begin and length of the scrollbar's thumb in eighths of a cell, the steps it is drawn in."""
    if total <= height or height <= 0:
        return None
    length = max(1.0, height * height / total)
    return int((height - length) * position / (total - height) * 8), ceil(length * 8)
