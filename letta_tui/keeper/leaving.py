"""When a keeper that has nothing to do leaves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class Leaving:
    """Calls ``leave`` once nothing has been needed for ``seconds``; never if that is 0."""

    def __init__(self, seconds: float, leave: Callable[[], None]) -> None:
        self._seconds = seconds
        self._leave = leave
        self._idle_since: float | None = time.monotonic()
        self._timer: asyncio.TimerHandle | None = None

    def consider(self, needed: bool) -> None:
        """Something changed; ``needed`` says whether there is a reason to stay now."""
        if needed:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = time.monotonic()
        self.cancel()
        if (wait := self.leaves_in) is not None:
            self._timer = asyncio.get_running_loop().call_later(wait, self._leave)

    @property
    def leaves_in(self) -> float | None:
        """Seconds until it leaves if nothing happens; ``None`` while something does."""
        if self._idle_since is None or self._seconds <= 0:
            return None
        return max(0.0, self._idle_since + self._seconds - time.monotonic())

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
