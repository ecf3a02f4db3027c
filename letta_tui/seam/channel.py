"""The two mailboxes between view and worker.

``Mailbox`` is the updates' side: thread-safe, never blocks the worker, and bounded in practice because
snapshots replace older snapshots and growing text is joined, so a terminal that nobody reads for
minutes costs no more memory than what it will finally show.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from letta_tui.seam.intents import Intent
from letta_tui.seam.updates import (
    ApprovalsChanged,
    ConnectionChanged,
    QueueChanged,
    RecoveryChanged,
    SendsChanged,
    StatusChanged,
    TextAppended,
    TranscriptChanged,
    Update,
)

_LATEST_WINS = (
    ApprovalsChanged,
    ConnectionChanged,
    QueueChanged,
    RecoveryChanged,
    SendsChanged,
    StatusChanged,
)


class WorkerPort(Protocol):
    """What the view holds of the worker."""

    def send(self, intent: Intent) -> None:
        """Hand over an intent; returns at once, from any thread."""
        ...

    def drain(self) -> list[Update]:
        """Take every waiting update, oldest first."""
        ...

    def on_update(self, wake: Callable[[], None] | None) -> None:
        """``wake`` is called, from any thread, when the mailbox stops being empty."""
        ...


class Mailbox:
    """Updates on their way to the view."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._items: list[Update] = []
        self._tail: list[str] = []  # fragments of the last item when it is TextAppended
        self._latest: dict[type, int] = {}
        self._wake: Callable[[], None] | None = None

    def on_update(self, wake: Callable[[], None] | None) -> None:
        with self._lock:
            self._wake = wake
            waiting = bool(self._items)
        if waiting and wake is not None:
            wake()

    def put(self, update: Update) -> None:
        with self._lock:
            was_empty = not self._items
            self._add(update)
            wake = self._wake if was_empty else None
        if wake is not None:
            wake()

    def _add(self, update: Update) -> None:
        last = self._items[-1] if self._items else None
        if isinstance(update, TextAppended) and isinstance(last, TextAppended) and last.key == update.key:
            self._tail.append(update.text)
            return
        self._close_tail()
        if isinstance(update, TranscriptChanged) and update.reset:
            # What came before for the transcript can no longer be seen.
            self._items = [i for i in self._items if not isinstance(i, TranscriptChanged | TextAppended)]
            self._latest = {type(i): n for n, i in enumerate(self._items) if isinstance(i, _LATEST_WINS)}
        if isinstance(update, _LATEST_WINS):
            index = self._latest.get(type(update))
            if index is not None:
                self._items[index] = update
                return
            self._latest[type(update)] = len(self._items)
        self._items.append(update)

    def _close_tail(self) -> None:
        if self._tail:
            last = self._items[-1]
            assert isinstance(last, TextAppended)
            self._items[-1] = TextAppended(last.key, last.text + "".join(self._tail))
            self._tail = []

    def drain(self) -> list[Update]:
        with self._lock:
            self._close_tail()
            items, self._items = self._items, []
            self._latest = {}
            return items
