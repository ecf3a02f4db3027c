"""The last known transcript of each conversation, so that a window has something to show at once.

A file of its own that may be deleted at any time: nothing in it decides anything, the ledger's word about a
message always replaces what is cached, and a cache that cannot be read or written is no error. What it
holds is marked with its time when it is shown, and the history read after connecting replaces it.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, get_args

from letta_tui.ledger.values import Place, Send
from letta_tui.seam.state import Delivery, Row, RowKind, ToolState, ToolView, TurnOutcome

log = logging.getLogger(__name__)

MOST_ROWS = 200
MOST_TEXT = 100_000  # characters of one row; a longer one is fetched when there is a connection

_SCHEMA = """
CREATE TABLE IF NOT EXISTS transcripts (
    server_key TEXT NOT NULL, agent_id TEXT NOT NULL, conversation_id TEXT NOT NULL,
    as_of REAL NOT NULL, rows TEXT NOT NULL,
    PRIMARY KEY (server_key, agent_id, conversation_id)
) WITHOUT ROWID
"""


class Cache:
    """Each call opens and closes the file: calls are rare, come from any thread, and hold nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    @property
    def path(self) -> Path | None:
        return self._path

    def erasings(self) -> int:
        """A number that changes with every erasing, by any window or command. For :meth:`store`."""
        found = [-1]
        self._write(lambda file: found.append(_erasings(file)))
        return found[-1]

    def load(self, place: Place) -> tuple[tuple[Row, ...], float] | None:
        """The rows of ``place`` and the time they were stored (wall clock); None without any."""
        try:
            with closing(self._open()) as file:
                found = file.execute(
                    "SELECT rows, as_of FROM transcripts"
                    " WHERE server_key = ? AND agent_id = ? AND conversation_id = ?",
                    _key(place),
                ).fetchone()
        except (OSError, sqlite3.Error) as error:
            log.info("transcript cache not read: %s", error)
            return None
        if found is None:
            return None
        try:
            rows, as_of = tuple(_row(item) for item in json.loads(found[0])), float(found[1])
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            log.info("transcript cache not understood: %r", error)
            return None
        return (rows, as_of) if rows else None

    def store(self, place: Place, rows: Sequence[Row], as_of: float, erasings: int | None = None) -> None:
        """Keep the newest rows. Rows of this client's own (notices, errors) are not kept.

        ``erasings``: the number from before the rows were taken. If something was erased since, they may have
        it, and nothing is written. None: they were never anything else.
        """
        kept = [row for row in rows if row.kind in ("user", "assistant", "reasoning", "tool", "summary")]
        text = json.dumps([asdict(row) for row in kept[-MOST_ROWS:] if _fits(row)])
        values = (*_key(place), as_of, text)

        def put(file: sqlite3.Connection) -> None:
            if erasings is None or erasings == _erasings(file):
                file.execute("INSERT OR REPLACE INTO transcripts VALUES (?, ?, ?, ?, ?)", values)

        self._write(put)

    def forget(self, place: Place) -> bool:
        """Erase what is kept of a conversation (also when one message of it is to be erased); ``False`` when
        there may still be something."""

        def erase(file: sqlite3.Connection) -> None:
            _count_erasing(file)
            file.execute(
                "DELETE FROM transcripts WHERE server_key = ? AND agent_id = ? AND conversation_id = ?",
                _key(place),
            )

        return self._path is None or self._write(erase)

    def _write(self, work: Callable[[sqlite3.Connection], None]) -> bool:
        try:
            try:
                self._run(work)
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError) or self._path is None:
                    raise
                # Damaged. Nothing in it is worth saving, and in place it would never be of use again.
                log.info("transcript cache made anew: %s", error)
                self._path.unlink()
                self._run(work)
        except (OSError, sqlite3.Error) as error:
            log.info("transcript cache not written: %s", error)
            return False
        return True

    def _run(self, work: Callable[[sqlite3.Connection], None]) -> None:
        with closing(self._open()) as file, file:
            file.execute("BEGIN IMMEDIATE")
            work(file)

    def _open(self) -> sqlite3.Connection:
        if self._path is None:
            raise OSError("there is no cache")
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._path.exists():
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        file = sqlite3.connect(self._path, timeout=1.0)
        try:
            # Erased text is overwritten in the file, and nothing here is worth waiting for the disk.
            file.execute("PRAGMA secure_delete = ON")
            file.execute("PRAGMA synchronous = OFF")
            file.execute(_SCHEMA)
            if _erasings(file) == 0:
                _count_erasing(file)  # a file that was made anew in place of a deleted one is another
        except sqlite3.Error:
            file.close()
            raise
        return file


def _erasings(file: sqlite3.Connection) -> int:
    return int(file.execute("PRAGMA user_version").fetchone()[0])


def _count_erasing(file: sqlite3.Connection) -> None:
    file.execute(f"PRAGMA user_version = {secrets.randbelow(2**31 - 2) + 1}")


def with_the_ledgers_word(rows: Iterable[Row], sends: Iterable[Send]) -> tuple[Row, ...]:
    """Rows with delivery and outcome as the ledger has them now; erased messages are left out."""
    known: Mapping[str, Send] = {send.client_message_id: send for send in sends}
    out: list[Row] = []
    for row in rows:
        send = known.get(row.client_message_id or "")
        if send is None:
            out.append(row)
        elif not send.erased:
            out.append(replace(row, delivery=send.delivery, outcome=send.outcome))
    return tuple(out)


def _key(place: Place) -> tuple[str, str, str]:
    return place.server_key, place.agent_id, place.conversation_id


def _fits(row: Row) -> bool:
    return len(row.text) + (len(row.tool.result) if row.tool else 0) <= MOST_TEXT


_NUMBER: Final = (int, float, type(None))
_ROW: Final[Mapping[str, tuple[Any, ...]]] = {
    "key": (str,),
    "text": (str,),
    "live": (bool,),
    "when": _NUMBER,
    "client_message_id": (str, type(None)),
}
_TOOL: Final[Mapping[str, tuple[Any, ...]]] = {
    "call_id": (str,),
    "name": (str,),
    "arguments": (str,),
    "result": (str,),
    "decided_by": (str,),
    "reason": (str,),
    "seconds": _NUMBER,
}


def _row(item: Mapping[str, Any]) -> Row:
    """Raises ``KeyError``, ``TypeError`` or ``ValueError`` for what another version wrote, or a bad disk."""
    marks, tool = tuple(item.get("marks") or ()), item.get("tool")
    row = Row(**{**item, "marks": marks, "tool": ToolView(**tool) if tool is not None else None})
    _check(row, _ROW, kind=RowKind, outcome=TurnOutcome)
    if row.delivery is not None:
        _check(row, {}, delivery=Delivery)
    if (row.kind == "tool") != (row.tool is not None) or not all(isinstance(mark, str) for mark in marks):
        raise ValueError(row.key)
    if row.tool is not None:
        _check(row.tool, _TOOL, state=ToolState)
    return row


def _check(value: Row | ToolView, types: Mapping[str, tuple[Any, ...]], **literals: Any) -> None:
    for name, allowed in types.items():
        if not isinstance(getattr(value, name), allowed):
            raise TypeError(name)
    for name, literal in literals.items():
        if getattr(value, name) not in get_args(literal):
            raise ValueError(name)
