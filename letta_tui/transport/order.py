"""Events of one counter that come over two sockets, put back in order. Pure: time is passed in."""

from __future__ import annotations

import heapq
import math
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")

# A number this far below the highest is no late event: the counter has started anew.
RESTART_DISTANCE = 64


class Reorder(Generic[T]):
    """Holds back what came too early, none of it for longer than a short while.

    The counter has holes that nothing will ever fill, so the wait is halved each time it was in vain and
    whole again once it was not. Times are seconds.
    """

    def __init__(self, *, wait: float = 0.5, shortest: float = 0.01, most: int = 4096) -> None:
        self._whole_wait = wait
        self._wait = wait
        self._shortest = shortest
        self._most = most
        self._next: int | None = None  # the number whose turn it is
        self._known = -1  # the highest number known to exist
        # A heap of place, count, item. The place of an event is its number, that of something without a
        # number half a step after the event it has to follow.
        self._early: list[tuple[float, int, T]] = []
        self._came: deque[tuple[float, int, float]] = deque()  # when, count, place; some have gone out
        self._held: set[int] = set()  # counts
        self._count = 0

    @property
    def deadline(self) -> float | None:
        """When to call ``overdue``; None while nothing is held back."""
        while self._came and self._came[0][1] not in self._held:
            self._came.popleft()
        return self._came[0][0] + self._wait if self._came else None

    def push(self, seq: int, item: T, now: float) -> list[T]:
        """Take in an event; what may go out now."""
        if self._next is None or self._next - seq > RESTART_DISTANCE:
            out = self.drain()
            self._next = seq + 1
            self._known = seq
            return [*out, item]
        if seq < self._next:
            return [item]  # late, and given up on: better now than never
        self._known = max(self._known, seq)
        if seq > self._next:
            return self._hold(seq, item, now)
        self._next = seq + 1
        if not self._early:
            return [item]
        out = [item, *self._following()]
        if not self._early:
            self._wait = self._whole_wait
        return out

    def expect(self, seq: int) -> None:
        """An event is known to exist that will come later."""
        if self._next is not None and seq >= self._next:
            self._known = max(self._known, seq)

    def follow(self, item: T, now: float) -> list[T]:
        """Take in what has no number: it comes after every event known so far; what may go out now."""
        if self._next is None or self._known < self._next:
            return [item]
        return self._hold(self._known + 0.5, item, now)

    def overdue(self, now: float) -> list[T]:
        """Give up on what was waited for in vain until ``now``; what may go out."""
        late: float | None = None
        while self._came and self._came[0][0] + self._wait <= now:
            _, count, place = self._came.popleft()
            if count in self._held:
                late = place if late is None else max(late, place)
        if late is None:
            return []
        self._wait = max(self._shortest, self._wait / 2)
        self._next = math.ceil(late)
        return self._following()

    def drain(self) -> list[T]:
        """Everything held back, in order."""
        if self._early:
            self._next = math.ceil(max(self._early)[0])
        return self._following()

    def _hold(self, place: float, item: T, now: float) -> list[T]:
        self._count += 1
        heapq.heappush(self._early, (place, self._count, item))
        self._came.append((now, self._count, place))
        self._held.add(self._count)
        return self.drain() if len(self._early) > self._most else []

    def _following(self) -> list[T]:
        """What is held back up to the next hole, in order."""
        out: list[T] = []
        while self._early and self._next is not None and self._early[0][0] <= self._next:
            place, count, item = heapq.heappop(self._early)
            self._held.discard(count)
            self._next = max(self._next, math.floor(place) + 1)
            out.append(item)
        return out
