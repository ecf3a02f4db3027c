"""Messages that wait for their turn."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.content import Content
from textual.message import Message

from letta_tui.seam.state import QueueItemView
from letta_tui.ui.clicks import Clickable, answer
from letta_tui.ui.keys import bindings
from letta_tui.ui.text.sanitise import one_line

SHOWN = 4


class QueueStrip(Clickable, can_focus=True):
    """One line per waiting message, at most four; ``cancel`` is called with an item's id."""

    BINDINGS = bindings("queue")

    DEFAULT_CSS = """
    QueueStrip { height: auto; display: none; padding: 0 2; background: $background; text-wrap: nowrap; }
    """

    class Gone(Message):
        """Nothing waits any more."""

    def __init__(self, cancel: Callable[[str], None]) -> None:
        super().__init__(id="queue")
        self._cancel = cancel
        self._items: tuple[QueueItemView, ...] = ()
        self._asked: set[str] = set()
        self._at = 0

    @property
    def any_paused(self) -> bool:
        return any(i.paused for i in self._items)

    def show(self, items: tuple[QueueItemView, ...]) -> None:
        chosen = self._items[self._at].item_id if self._at < len(self._items) else ""
        self._items = items
        self._asked &= {i.item_id for i in items}
        places = {item.item_id: n for n, item in enumerate(items)}
        self._at = places.get(chosen, min(self._at, max(0, len(items) - 1)))
        self.display = bool(items)
        if not items and self.screen.focused is self:
            self.post_message(self.Gone())
        self.refresh(layout=True)

    @property
    def _rows(self) -> int:
        """How many messages fit: a low terminal needs its lines for other things."""
        return SHOWN if self.app.size.height >= 20 else 1

    def _first(self) -> int:
        return max(0, min(self._at - self._rows + 1, len(self._items) - self._rows))

    def render(self) -> Content:
        width = max(20, self.app.size.width - 4)
        count = len(self._items)
        words = "1 message waits" if count == 1 else f"{count} messages wait"
        head: list[tuple[str, str]] = [(words + "   ", "$quiet")]
        if self.any_paused:
            head += [("paused, ", "$warning"), ("Ctrl+G ", "bold $primary"), ("sends them on   ", "$warning")]
        key, words = ("x ", "takes one back") if self.has_focus else ("Tab ", "to take one back")
        head += [(key, "bold $primary"), (words, "$quiet")]
        lines = [Content.assemble(*head)]
        first = self._first()
        for number, item in enumerate(self._items[first : first + self._rows], first):
            lines.append(self._line(number, item, width))
        if self._rows > 1 and count - first > self._rows:
            lines.append(Content.styled(f"  … and {count - first - self._rows} more", "$quiet"))
        return Content("\n").join(lines)

    def _line(self, number: int, item: QueueItemView, width: int) -> Content:
        chosen = self.has_focus and number == self._at
        if item.cancelling or item.item_id in self._asked:
            note, colour = "taking it back…", "$warning"
        elif item.held_here:
            note, colour = one_line(item.note, 80) or "held here", "$warning"
        elif item.paused:
            note, colour = "paused", "$warning"
        elif not item.mine:
            note, colour = "from another program", "$quiet"
        else:
            note, colour = one_line(item.note, 80), "$quiet"
        glyph = "◌" if item.held_here else "‖" if item.paused else "·"
        cross = answer(Content.styled("  ✕", "$quiet"), f"cancel {item.item_id}")
        right = Content.assemble((note, colour), "  " if item.cancelling else cross)
        left = Content.assemble(
            ("▸ " if chosen else f"{glyph} ", "$primary" if chosen else "$quiet"),
            (one_line(item.text, 200), "bold" if chosen else ""),
        )
        from letta_tui.ui.chat.bars import fit

        return fit(left, right, width)

    def watch_has_focus(self, has_focus: bool) -> None:
        super().watch_has_focus(has_focus)
        self.refresh(layout=True)

    def action_move(self, by: int) -> None:
        if self._items:
            self._at = max(0, min(len(self._items) - 1, self._at + by))
            self.refresh()

    def action_cancel(self) -> None:
        self._cancel_at(self._at)

    def _cancel_at(self, at: int) -> None:
        if at < len(self._items):
            item = self._items[at]
            if not item.cancelling and item.item_id not in self._asked:
                self._asked.add(item.item_id)
                self._cancel(item.item_id)
                self.refresh()

    def on_click(self, event: events.Click) -> None:
        row = event.y - 1 + self._first()
        if event.y < 1 or row >= len(self._items):
            return
        self._at = row
        self.refresh()

    def on_clickable_answered(self, event: Clickable.Answered) -> None:
        event.stop()
        wanted = event.answer.removeprefix("cancel ")
        for at, item in enumerate(self._items):
            if item.item_id == wanted:
                self._cancel_at(at)
