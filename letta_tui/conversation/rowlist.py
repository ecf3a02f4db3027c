"""The list of rows with its names, and the smallest updates that bring a view to its present state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from letta_tui.conversation.entries import Entry
from letta_tui.seam.updates import Splice, TextAppended, TranscriptChanged

Change = TranscriptChanged | TextAppended


class RowList:
    """Entries in order. A name is ``(kind, id)``; several names can lead to one entry."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._by_key: dict[str, Entry] = {}
        self._names: dict[tuple[str, str], Entry] = {}
        self._index: dict[str, int] = {}
        self.more_above = False
        self.as_of: float | None = None

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def last(self) -> Entry | None:
        return self._entries[-1] if self._entries else None

    def get(self, key: str) -> Entry | None:
        return self._by_key.get(key)

    def named(self, kind: str, name: str) -> Entry | None:
        return self._names.get((kind, name)) if name else None

    def name(self, entry: Entry, kind: str, *names: str) -> None:
        for name in names:
            if name:
                self._names[kind, name] = entry

    def index(self, entry: Entry) -> int | None:
        return self._index.get(entry.key)

    # Changes of one row.

    def register(self, entry: Entry) -> None:
        """Make the entry findable without showing it yet (:meth:`reorder` will place it)."""
        self._by_key[entry.key] = entry

    def append(self, entry: Entry) -> list[Change]:
        self.register(entry)
        self._index[entry.key] = len(self._entries)
        self._entries.append(entry)
        entry.dirty = False
        return [self._changed(Splice(len(self._entries) - 1, 0, (entry.row(),)))]

    def touched(self, entry: Entry) -> list[Change]:
        """The row changed otherwise than by growing."""
        at = self._index.get(entry.key)
        if at is None:
            return []
        entry.dirty = False
        return [self._changed(Splice(at, 1, (entry.row(),)))]

    def if_dirty(self, entry: Entry) -> list[Change]:
        return self.touched(entry) if entry.dirty else []

    def remove(self, entry: Entry) -> list[Change]:
        at = self._index.get(entry.key)
        self.forget([entry])
        if at is None:
            return []
        del self._entries[at]
        self._reindex(at)
        return [self._changed(Splice(at, 1, ()))]

    def forget(self, entries: Iterable[Entry]) -> None:
        gone = {id(e) for e in entries}
        self._by_key = {k: e for k, e in self._by_key.items() if id(e) not in gone}
        self._names = {n: e for n, e in self._names.items() if id(e) not in gone}

    # Changes of the order.

    def reorder(self, entries: list[Entry]) -> list[Change]:
        """Put ``entries`` in place of the list: unchanged rows at both ends are left alone."""
        old = self._entries
        first = 0
        limit = min(len(old), len(entries))
        while first < limit and old[first] is entries[first] and not entries[first].dirty:
            first += 1
        last = 0
        while last < limit - first and old[-1 - last] is entries[-1 - last] and not entries[-1 - last].dirty:
            last += 1
        before, after = old[first : len(old) - last], entries[first : len(entries) - last]
        self._entries = entries
        if len(old) != len(entries) or any(a is not b for a, b in zip(before, after, strict=False)):
            self._reindex(0)
        if not before and not after:
            return []
        if len(before) == len(after) and all(a is b for a, b in zip(before, after, strict=True)):
            splices = tuple(_runs(after, first))
        else:
            splices = (Splice(first, len(before), tuple(e.row() for e in after)),)
        for entry in after:
            entry.dirty = False
        return [TranscriptChanged(splices, more_above=self.more_above, as_of=self.as_of)]

    def snapshot(self) -> TranscriptChanged:
        rows = tuple(e.row() for e in self._entries)
        for entry in self._entries:
            entry.dirty = False
        return TranscriptChanged(
            (Splice(0, 0, rows),) if rows else (), reset=True, more_above=self.more_above, as_of=self.as_of
        )

    def flags(self) -> TranscriptChanged:
        """An update without rows: ``more_above`` or ``as_of`` changed."""
        return self._changed()

    def _reindex(self, start: int) -> None:
        if start == 0:
            self._index = {e.key: n for n, e in enumerate(self._entries)}
            return
        for n in range(start, len(self._entries)):
            self._index[self._entries[n].key] = n

    def _changed(self, *splices: Splice) -> TranscriptChanged:
        return TranscriptChanged(splices, more_above=self.more_above, as_of=self.as_of)


def _runs(entries: list[Entry], offset: int) -> Iterator[Splice]:
    """One splice for each run of neighbouring dirty rows."""
    start: int | None = None
    for n, entry in enumerate([*entries, None]):
        dirty = entry is not None and entry.dirty
        if dirty and start is None:
            start = n
        elif not dirty and start is not None:
            rows = tuple(e.row() for e in entries[start:n])
            yield Splice(offset + start, n - start, rows)
            start = None
