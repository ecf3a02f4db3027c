"""The event plane's memory: what was seen, and what is missing. Pure and bounded."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from letta_tui.transport.order import RESTART_DISTANCE

REMEMBERED_KEYS = 1_000
_MOST_MISSING = 10_000


class Seen:
    """The last ``limit`` keys. A key seen again is as fresh as a new one."""

    def __init__(self, limit: int = REMEMBERED_KEYS) -> None:
        self._limit = limit
        self._keys: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._keys)

    def again(self, key: str) -> bool:
        """Note the key; whether it was there already."""
        if key in self._keys:
            self._keys.move_to_end(key)
            return True
        self._keys[key] = None
        if len(self._keys) > self._limit:
            self._keys.popitem(last=False)
        return False


@dataclass(frozen=True, slots=True)
class Gap:
    """``event_seq`` numbers ``first`` to ``last``, both included, were passed over."""

    first: int
    last: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1


class Sequence:
    """``event_seq`` of one connection. 0 is a number; late numbers fill the gap they belong to."""

    def __init__(self) -> None:
        self.highest: int | None = None
        self._missing: set[int] = set()

    @property
    def missing(self) -> int:
        """How many numbers were passed over and have not come since."""
        return len(self._missing)

    def note(self, seq: int) -> Gap | None:
        """Take a number in; the gap it opened, if it did."""
        if self.highest is None:
            self.highest = seq
            return None
        if seq <= self.highest:
            if seq in self._missing:
                self._missing.discard(seq)
            elif self.highest - seq > RESTART_DISTANCE:
                self.highest = seq  # the counter started anew behind a relay that kept its sockets
                self._missing.clear()
            return None
        gap = Gap(self.highest + 1, seq - 1) if seq > self.highest + 1 else None
        if gap is not None:
            # A jump beyond all measure is a gap like another; its single numbers are not worth keeping.
            room = _MOST_MISSING - len(self._missing)
            self._missing.update(range(max(gap.first, gap.last - room + 1), gap.last + 1))
        self.highest = seq
        return gap

    def forgive(self) -> None:
        """The state has been read afresh: what is missing is no longer missed."""
        self._missing.clear()
