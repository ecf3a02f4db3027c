"""The transcript view: a scrolling list of rows, drawn by Textual's line API."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip

from letta_tui.seam.state import Row
from letta_tui.ui.keys import bindings
from letta_tui.ui.transcript import palette
from letta_tui.ui.transcript.moving import Moving
from letta_tui.ui.transcript.painting import GUTTER
from letta_tui.ui.transcript.picking import LINES_PER_ROW, extract, span_on_line
from letta_tui.ui.transcript.rows import folds


class TranscriptView(Moving, can_focus=True, inherit_bindings=False):
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
    BINDINGS = bindings("transcript")

    class CopyRequested(Message):
        """The person asked to copy ``text``; empty when there was nothing to copy: say so."""

        def __init__(self, text: str, what: str) -> None:
            super().__init__()
            self.text = text
            self.what = what  # "selection", "message", "" (nothing)

    class RowActivated(Message):
        """Enter or a click on a row that does not fold (a user row with a send behind it, for example)."""

        def __init__(self, row: Row) -> None:
            super().__init__()
            self.row = row

    # Painting

    def render_lines(self, crop: Region) -> list[Strip]:
        """Textual's own way goes through every style for every line. Most lines of a picture were in the last
        one too, a few lines further down, so whole strips are kept by what they show."""
        if self._framed != (self._width, self._height):
            self._compose_frame()
            self._asked = None
        padding = self.styles.padding
        self._painter.prepare(self._width, padding.left, padding.right, self.get_line_filters())
        selection = self.text_selection
        on = self._cursor if self.has_focus else None
        strips = [self._line(y - self.gutter.top, selection, on) for y in crop.line_range]
        start, end = crop.column_span
        if (start, end) != (0, self._width + padding.left + padding.right):
            strips = [strip.crop(start, end) for strip in strips]
        return strips

    def render_line(self, y: int) -> Strip:
        """Line ``y`` of the content, without the padding."""
        gutter = self.gutter
        return self.render_lines(Region(gutter.left, y + gutter.top, self._width, 1))[0]

    def _line(self, y: int, selection: Selection | None, on: str | None) -> Strip:
        if not 0 <= y < len(self._frame):
            return self._painter.blank()
        entry, number = self._frame[y]
        selected = None
        if selection is not None:
            selected = span_on_line(selection, entry.ordinal * LINES_PER_ROW + number)
        return self._painter.line(entry, number, selected, entry.row.key == on and number >= entry.margin)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._painter.new_look()

    # Events

    def on_resize(self) -> None:
        self._painter.forget()
        if self.text_selection is not None and self._entries.width != self._width - GUTTER:
            self.screen.clear_selection()
        self._compose_frame()
        self.refresh()

    def on_focus(self) -> None:
        if self._frame and (self.following or not self._cursor_in_sight()):
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

    def action_activate(self) -> None:
        row = self.cursor_row
        if row is None:
            return
        if not self.toggle_fold(row.key):
            self.post_message(self.RowActivated(row))

    def action_copy(self) -> None:
        self.post_message(self.CopyRequested(*self.copy_text()))

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
