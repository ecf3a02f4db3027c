"""Events of one counter that come over two sockets, put back in order. Pure: time is passed in."""

from __future__ import annotations

import heapq
from typing import Generic, TypeVar

T = TypeVar("T")

# A number this far below the highest is no late event: the counter has started anew.
RESTART_DISTANCE = 64


class Reorder(Generic[T]):
    """Holds back what came too early, for a short while.

    The counter has holes that nothing will ever fill, so the wait is halved each time it was in vain and
    whole again once it was not. Times are seconds.
    """

    def __init__(self, *, wait: float = 0.25, shortest: float = 0.01, most: int = 4096) -> None:
        self._whole_wait = wait
        self._wait = wait
        self._shortest = shortest
        self._most = most
        self._next: int | None = None
        self._early: list[tuple[int, int, T]] = []
        self._count = 0
        self._deadline: float | None = None

    @property
    def deadline(self) -> float | None:
        """When to call ``overdue``; None while nothing is held back."""
        return self._deadline

    def push(self, seq: int, item: T, now: float) -> list[T]:
        """Take one in; what may go out now."""
        if self._next is None or seq < self._next:
            # The first ever, a late one, or the first after the counter started anew.
            if self._next is None or self._next - seq > RESTART_DISTANCE:
                out = self._drain()
                self._next = seq + 1
                return [*out, item]
            return [item]
        if seq > self._next:
            self._count += 1
            heapq.heappush(self._early, (seq, self._count, item))
            if len(self._early) > self._most:
                return self.overdue(float("inf"))
            if self._deadline is None:
                self._deadline = now + self._wait
            return []
        self._next = seq + 1
        out = [item]
        if self._early:
            out += self._following()
            if not self._early:
                self._wait = self._whole_wait
                self._deadline = None
            elif len(out) > 1:
                self._deadline = now + self._wait
        return out

    def overdue(self, now: float) -> list[T]:
        """Give up on the number waited for, if its time has come; what may go out now."""
        if self._deadline is None or now < self._deadline:
            return []
        self._wait = max(self._shortest, self._wait / 2)
        self._next = self._early[0][0]
        out = self._following()
        self._deadline = now + self._wait if self._early and now != float("inf") else None
        if self._early and self._deadline is None:
            out += self._drain()
        return out

    def drain(self) -> list[T]:
        """Everything held back, in order."""
        return self._drain()

    def _following(self) -> list[T]:
        out: list[T] = []
        while self._early and self._next is not None and self._early[0][0] <= self._next:
            seq, _, item = heapq.heappop(self._early)
            self._next = max(self._next, seq + 1)
            out.append(item)
        return out

    def _drain(self) -> list[T]:
        out = [item for _, _, item in sorted(self._early, key=lambda entry: entry[:2])]
        if self._early:
            self._next = max(entry[0] for entry in self._early) + 1
        self._early = []
        self._deadline = None
        return out
