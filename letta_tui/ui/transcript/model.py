"""The list of entries: splices, keys, and their heights in a Fenwick tree. No widget here."""

from __future__ import annotations

from collections.abc import Iterator

from letta_tui.seam.state import Row
from letta_tui.seam.updates import TextAppended, TranscriptChanged
from letta_tui.ui.transcript.entries import Entry, margin_between
from letta_tui.ui.transcript.fenwick import Fenwick

FIRST_ORDINAL = 1 << 30
KEPT_LINES = 12_000
"""Lines that are kept laid out outside of the screen."""


class Entries:
    """Entries in order. ``width`` is that of the text, without the gutter; 0 until known."""

    def __init__(self, ascii_only: bool = False) -> None:
        self.items: list[Entry] = []
        self.heights = Fenwick()
        self.width = 0
        self.ascii_only = ascii_only
        self.renumbered = 0  # how often ordinals were given anew
        self._index: dict[str, int] = {}
        self._all_folded: bool | None = None
        self._recent: dict[int, Entry] = {}  # laid out, oldest first
        self._kept = 0

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.items)

    def index(self, key: str | None) -> int | None:
        return None if key is None else self._index.get(key)

    def at_ordinal(self, ordinal: int) -> int:
        """Index of the first entry whose ordinal is not below ``ordinal``."""
        low, high = 0, len(self.items)
        while low < high:
            middle = (low + high) // 2
            if self.items[middle].ordinal < ordinal:
                low = middle + 1
            else:
                high = middle
        return low

    def apply(self, update: TranscriptChanged | TextAppended) -> None:
        if isinstance(update, TextAppended):
            index = self._index.get(update.key)
            if index is not None:
                self.items[index].append(update.text)
            return
        if update.reset:
            self._clear()
        for splice in update.splices:
            self._splice(splice.start, splice.delete, splice.rows)

    def _clear(self) -> None:
        self.items = []
        self._index = {}
        self._recent = {}
        self.heights.rebuild(())
        self.renumbered += 1

    def _splice(self, start: int, delete: int, rows: tuple[Row, ...]) -> None:
        start = max(0, min(start, len(self.items)))
        stop = min(len(self.items), start + max(0, delete))
        gone = {entry.row.key: entry for entry in self.items[start:stop]}
        ordinals = self._ordinals(start, stop, len(rows))
        fresh: list[Entry] = []
        for row, ordinal in zip(rows, ordinals, strict=True):
            entry = gone.get(row.key)
            if entry is not None and entry.row.kind == row.kind:
                entry.replace(row)
                entry.ordinal = ordinal
            else:
                entry = Entry(row, ordinal)
                if self._all_folded is not None and entry.folded:
                    entry.folded = self._all_folded
            fresh.append(entry)
        at_end = stop == len(self.items) and start == stop
        same_places = len(fresh) == stop - start
        self.items[start:stop] = fresh
        for key in gone:
            self._index.pop(key, None)
        for number in range(start, start + len(fresh) if same_places else len(self.items)):
            self._index[self.items[number].row.key] = number
        for number in range(start, min(start + len(fresh) + 1, len(self.items))):
            self._margin(number)
        if at_end and len(fresh) < 64:  # many at once are cheaper in one go
            for entry in fresh:
                self.heights.append(self._guess(entry))
        elif same_places:
            for number in range(start, min(start + len(fresh) + 1, len(self.items))):
                self.heights.set(number, self._guess(self.items[number]))
        else:
            values = self.heights.values
            values[start:stop] = [self._guess(entry) for entry in fresh]
            after = start + len(fresh)
            if after < len(self.items):
                values[after] = self._guess(self.items[after])
            self.heights.rebuild(values)

    def _ordinals(self, start: int, stop: int, count: int) -> list[int]:
        items = self.items
        if count == stop - start:
            return [entry.ordinal for entry in items[start:stop]]
        if stop == len(items):
            first = items[start - 1].ordinal + 1 if start else FIRST_ORDINAL
            return list(range(first, first + count))
        low = items[start - 1].ordinal if start else items[stop].ordinal - count - 1
        if items[stop].ordinal - low - 1 >= count:
            high = items[stop].ordinal
            return list(range(high - count, high))
        # No room: number everything behind anew. A selection made before no longer holds.
        self.renumbered += 1
        for number, entry in enumerate(items[stop:]):
            entry.ordinal = low + 1 + count + number
        return list(range(low + 1, low + 1 + count))

    def _margin(self, number: int) -> None:
        before = self.items[number - 1].row if number else None
        self.items[number].margin = margin_between(before, self.items[number].row)

    def _guess(self, entry: Entry) -> int:
        if entry.laid_out:
            return entry.height
        return entry.estimate(self.width or 80)

    def set_width(self, width: int) -> None:
        """Another width: every height becomes an estimate again, scaled from what was known."""
        if width == self.width:
            return
        old, self.width = self.width, width
        if not old:
            self.heights.rebuild(entry.estimate(width) for entry in self.items)
            return
        for entry in self._recent.values():
            entry._key = None
        self._recent = {}

    def lay_out(self, number: int) -> Entry:
        """Entry ``number`` with its lines made and its true height in the tree."""
        entry = self.items[number]
        height = entry.lay_out(self.width, self.ascii_only)
        self.heights.set(number, height)
        if self._recent.pop(id(entry), None) is None:
            self._kept += height
        self._recent[id(entry)] = entry
        return entry

    def trim(self) -> None:
        """Forget the lines of entries not seen for long, so memory follows the screen, not the history."""
        total = sum(entry.height for entry in self._recent.values())
        for key, entry in list(self._recent.items()):
            if total <= KEPT_LINES or len(self._recent) <= 50:
                break
            total -= entry.height
            if not entry.row.live:
                entry.forget()
            del self._recent[key]

    def fold_all(self, folded: bool) -> None:
        self._all_folded = folded
        for number, entry in enumerate(self.items):
            if entry.row.kind in ("reasoning", "tool", "summary") and entry.folded != folded:
                entry.folded = folded
                self.heights.set(number, entry.estimate(self.width or 80))
