"""Moving about in the transcript: the cursor, jumps, searching, folding."""

from __future__ import annotations

from letta_tui.ui.transcript.entries import Entry
from letta_tui.ui.transcript.rows import folds
from letta_tui.ui.transcript.surface import Surface


class Moving(Surface):
    """What a key or a command does to the position; every way ends in ``_stand_at`` or ``_follow``."""

    # Moving

    def jump_top(self) -> None:
        """To the first row; where older ones can be loaded, until the first of all is here."""
        if len(self._entries):
            self._go_to_start()
            self._asked_for_older = False
            self._stand_at(0, 0, to_start=self._more_above)

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
        self._painter.search(needle)
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
        self._painter.search("")
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
        if not entry.folded and not self._ends_in_sight(entry):
            # What was asked for is below the screen: as much of it as fits, from its first line.
            back = max(0, self._height - self._entries.lay_out(index).height)
            self._stand_at(*self._walk(index, 0, -back))
        return True

    def _ends_in_sight(self, entry: Entry) -> bool:
        last = [number for each, number in self._frame if each is entry]
        return bool(last) and last[-1] == entry.height - 1

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

    # The cursor

    def action_cursor(self, step: int) -> None:
        """The cursor one row on; long rows scroll under it first."""
        entries = self._entries
        if not len(entries):
            return
        index = entries.index(self._cursor)
        if index is None or not self._cursor_in_sight():
            # It begins where the person looks, not where it was left.
            edge = self._frame[-1 if step < 0 else 0][0].row.key if self._frame else None
            index = entries.index(edge) or 0
        else:
            index = max(0, min(len(entries) - 1, index + step))
        self._cursor = entries.items[index].row.key
        self._show(index)

    def _cursor_in_sight(self) -> bool:
        return any(entry.row.key == self._cursor for entry, _ in self._frame)

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

    def _stand_at(self, index: int, line: int, to_start: bool = False) -> None:
        self.following = False
        self._to_start = to_start
        self._anchor = (self._entries.items[index].row.key, line)
        self._compose_frame()
        if self._frame and self._frame[-1][0] is self._entries.items[-1]:
            last, number = self._frame[-1]
            if number == last.height - 1:
                self.following = True
                self.new_below = False
        self.refresh()

    def action_everything(self) -> None:
        """Show a tool's whole output, or only its beginning again."""
        index = self._entries.index(self._cursor)
        if index is not None and self._entries.items[index].row.tool is not None:
            entry = self._entries.items[index]
            entry.everything = not entry.everything
            entry.folded = False
            self._changed_in_place()

    def action_unfold(self) -> None:
        """Show more of the cursor's row: its lines, then all of a tool's output."""
        index = self._entries.index(self._cursor)
        if index is None:
            return
        entry = self._entries.items[index]
        if entry.folded:
            self.toggle_fold()
        elif entry.row.tool is not None and not entry.everything:
            self.action_everything()

    def action_fold(self) -> None:
        index = self._entries.index(self._cursor)
        if index is not None and not self._entries.items[index].folded:
            self.toggle_fold()

    def action_top(self) -> None:
        self.jump_top()

    def action_bottom(self) -> None:
        self.jump_bottom()
