"""Prefix sums over a list of heights that change one at a time."""

from __future__ import annotations

from collections.abc import Iterable


class Fenwick:
    """A Fenwick tree of non-negative ints: all operations but ``rebuild`` are logarithmic."""

    def __init__(self, values: Iterable[int] = ()) -> None:
        self.rebuild(values)

    def rebuild(self, values: Iterable[int]) -> None:
        """Start anew from ``values``; linear."""
        self.values = list(values)
        tree = [0, *self.values]
        for index in range(1, len(tree)):
            parent = index + (index & -index)
            if parent < len(tree):
                tree[parent] += tree[index]
        self._tree = tree

    def __len__(self) -> int:
        return len(self.values)

    def append(self, value: int) -> None:
        index = len(self._tree)
        low = index - (index & -index)
        self._tree.append(value + self.prefix(index - 1) - self.prefix(low))
        self.values.append(value)

    def set(self, index: int, value: int) -> None:
        change = value - self.values[index]
        if not change:
            return
        self.values[index] = value
        index += 1
        while index < len(self._tree):
            self._tree[index] += change
            index += index & -index

    def prefix(self, count: int) -> int:
        """Sum of the first ``count`` values."""
        total = 0
        while count > 0:
            total += self._tree[count]
            count -= count & -count
        return total

    @property
    def total(self) -> int:
        return self.prefix(len(self.values))

    def find(self, offset: int) -> tuple[int, int]:
        """(index, rest): the value ``offset`` falls into and how far; past the end: (len, what is over)."""
        index = 0
        step = 1 << max(0, len(self._tree).bit_length() - 1)
        while step:
            nxt = index + step
            if nxt < len(self._tree) and self._tree[nxt] <= offset:
                index = nxt
                offset -= self._tree[nxt]
            step >>= 1
        return index, offset
