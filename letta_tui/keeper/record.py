"""What a keeper writes down about itself while it lives, for the one that comes after it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from letta_tui import __version__
from letta_tui.keeper.control import CONTROL
from letta_tui.keeper.files import SavedServer, SavedState, write_state
from letta_tui.keeper.identity import ProcessIdentity
from letta_tui.keeper.watch import Place


@dataclass(frozen=True, slots=True)
class Look:
    """What there is: the server, processes that are to become it, conversations wanted and busy."""

    server: SavedServer | None
    started: tuple[ProcessIdentity, ...]
    wanted: tuple[Place, ...]
    busy: tuple[Place, ...]


class Record:
    """The state file of one keeper, written when it would change. Any thread may write.

    A disk that takes nothing costs a later adoption, not the turn: ``words`` says so until it takes it again.
    """

    def __init__(self, path: Path, me: ProcessIdentity) -> None:
        self._path = path
        self._me = me
        self._saved: SavedState | None = None
        self._closed = False
        self._lock = threading.Lock()  # the server's processes are noted by the threads that start them
        self.words = ""

    def save(self, look: Callable[[], Look]) -> None:
        """``look`` is called while nobody else writes: what was seen later is never written over."""
        with self._lock:
            seen = look()
            busy, held = sorted(seen.busy), sorted({*seen.wanted, *seen.busy})
            self._write(
                SavedState(
                    self._me, __version__, CONTROL, seen.server, tuple(held), seen.started, tuple(busy)
                )
            )

    def leave(self) -> None:
        """Write that no keeper and no server of it run any more; nothing is written after it."""
        with self._lock:
            self._write(SavedState(version=__version__, control=CONTROL))
            self._closed = True

    def close(self) -> None:
        """From now on the file is the next keeper's."""
        with self._lock:
            self._closed = True

    def reopen(self) -> None:
        """There is no next keeper after all."""
        with self._lock:
            self._closed, self._saved = False, None

    def _write(self, state: SavedState) -> None:
        if self._closed or state == self._saved:
            return
        try:
            write_state(self._path, state)
            self._saved, self.words = state, ""
        except OSError as error:
            self.words = f"The keeper's state cannot be saved ({error.strerror})."
