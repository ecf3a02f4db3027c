"""How long to wait before the next attempt to connect. Pure: time and chance are passed in."""

from __future__ import annotations

from collections.abc import Callable


class Backoff:
    """Growing waits with jitter, which start over only after a connection that lasted.

    All times are seconds. ``chance`` returns a number from 0 up to 1.
    """

    def __init__(
        self,
        chance: Callable[[], float],
        *,
        first: float = 0.5,
        longest: float = 30.0,
        stable: float = 30.0,
    ) -> None:
        self._chance = chance
        self._first = first
        self._longest = longest
        self._stable = stable
        self._failures = 0
        self._opened_at: float | None = None

    @property
    def failures(self) -> int:
        """Attempts in a row that led to nothing lasting."""
        return self._failures

    def opened(self, now: float) -> None:
        """A connection came about. It proves nothing yet: a server may drop each newcomer at once."""
        self._opened_at = now

    def next(self, now: float) -> float:
        """A connection failed or was lost: how long to wait. Between half and all of a doubling time."""
        if self._opened_at is not None and now - self._opened_at >= self._stable:
            self._failures = 0
        self._opened_at = None
        ceiling = min(self._longest, self._first * 2.0 ** min(self._failures, 32))
        self._failures += 1
        return ceiling * (0.5 + 0.5 * self._chance())

    def at_once(self) -> None:
        """The person asked, or the machine woke up: begin again with the shortest wait."""
        self._failures = 0
