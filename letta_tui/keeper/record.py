"""What a keeper writes down about itself while it lives, for the one that comes after it."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

from letta_tui import __version__
from letta_tui.keeper.control import CONTROL
from letta_tui.keeper.files import SavedServer, SavedState, write_state
from letta_tui.keeper.identity import ProcessIdentity
from letta_tui.keeper.watch import Place


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

    def save(
        self,
        server: SavedServer | None,
        started: tuple[ProcessIdentity, ...],
        *,
        wanted: Iterable[Place],
        busy: Iterable[Place],
    ) -> None:
        open_, held = sorted(busy), sorted({*wanted, *busy})
        self._write(
            SavedState(self._me, __version__, CONTROL, server, tuple(held), started, tuple(open_)),
        )

    def leave(self) -> None:
        """Write that no keeper and no server of it run any more; nothing is written after it."""
        self._write(SavedState(version=__version__, control=CONTROL))
        self.close()

    def close(self) -> None:
        """From now on the file is the next keeper's."""
        with self._lock:
            self._closed = True

    def _write(self, state: SavedState) -> None:
        with self._lock:
            if self._closed or state == self._saved:
                return
            try:
                write_state(self._path, state)
                self._saved, self.words = state, ""
            except OSError as error:
                self.words = f"The keeper's state cannot be saved ({error.strerror})."
