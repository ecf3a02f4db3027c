"""Calls of the person's own tools: recorded before they run, so that none runs twice.

A call is one request of the server (``request_id``). ``tool_call_id`` is the model's name for it, which
some models use again for later calls, so it is never a key.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, Final

from letta_tui.ledger.database import Database
from letta_tui.ledger.errors import IllegalMove, NoSuchSend
from letta_tui.ledger.places import store_place
from letta_tui.ledger.rows import (
    AT_PLACE,
    clean,
    from_json,
    place_of,
    place_values,
    stamp_of,
    stamp_values,
    to_json,
)
from letta_tui.ledger.values import CallState, Clock, Place, ToolCall

CALL_MOVES: Final[Mapping[CallState, frozenset[CallState]]] = {
    "asked": frozenset({"running", "declined"}),
    "running": frozenset({"finished", "lost"}),
    "finished": frozenset({"written", "confirmed", "lost"}),
    "written": frozenset({"confirmed", "lost"}),
    "lost": frozenset({"confirmed"}),
}
"""Nothing leads back to "running": a call that began is never begun again."""

OPEN: Final[tuple[CallState, ...]] = ("asked", "running", "finished", "written")
_STATES: Final = ", ".join(repr(s) for s in (*CALL_MOVES, "confirmed", "declined"))

TABLE: Final = f"""CREATE TABLE tool_calls (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    server_key TEXT NOT NULL, agent_id TEXT NOT NULL, conversation_id TEXT NOT NULL,
    request_id TEXT NOT NULL CHECK (request_id <> ''), tool_call_id TEXT NOT NULL, tool_name TEXT NOT NULL,
    input TEXT NOT NULL DEFAULT '{{}}' CHECK (json_valid(input)),
    state TEXT NOT NULL CHECK (state IN ({_STATES})),
    allowed_by TEXT NOT NULL DEFAULT '', result TEXT NOT NULL DEFAULT '',
    is_error INTEGER NOT NULL DEFAULT 0 CHECK (is_error IN (0, 1)), words TEXT NOT NULL DEFAULT '',
    connection_id TEXT NOT NULL DEFAULT '', window_id TEXT NOT NULL DEFAULT '',
    erased INTEGER NOT NULL DEFAULT 0 CHECK (erased IN (0, 1)),
    asked_wall REAL NOT NULL, asked_mono REAL NOT NULL, asked_boot TEXT NOT NULL,
    updated_wall REAL NOT NULL, updated_mono REAL NOT NULL, updated_boot TEXT NOT NULL,
    UNIQUE (server_key, agent_id, conversation_id, request_id),
    FOREIGN KEY (server_key, agent_id, conversation_id)
        REFERENCES conversations (server_key, agent_id, conversation_id))"""


def _moves() -> str:
    return " OR ".join(
        f"(OLD.state = {old!r} AND NEW.state IN ({', '.join(repr(n) for n in sorted(news))}))"
        for old, news in CALL_MOVES.items()
    )


TRIGGERS: Final[tuple[str, ...]] = (
    """CREATE TRIGGER tool_calls_start_asked BEFORE INSERT ON tool_calls WHEN NEW.state <> 'asked'
    BEGIN SELECT RAISE(ABORT, 'illegal move: a call starts as asked'); END""",
    f"""CREATE TRIGGER tool_calls_moves BEFORE UPDATE OF state ON tool_calls
    WHEN NEW.state IS NOT OLD.state AND NOT ({_moves()})
    BEGIN SELECT RAISE(ABORT, 'illegal move: tool call'); END""",
    """CREATE TRIGGER tool_calls_keep_identity BEFORE UPDATE OF request_id, tool_call_id, server_key,
    agent_id, conversation_id ON tool_calls
    BEGIN SELECT RAISE(ABORT, 'illegal move: identity of a call'); END""",
    """CREATE TRIGGER tool_calls_stay BEFORE DELETE ON tool_calls
    BEGIN SELECT RAISE(ABORT, 'illegal move: a call is never deleted'); END""",
)


class Calls:
    """Mixed into the ledger."""

    _db: Database
    _clock: Clock

    def tool_asked(
        self,
        place: Place,
        request_id: str,
        *,
        tool_call_id: str,
        tool_name: str,
        arguments: Mapping[str, Any],
        connection_id: str = "",
        window_id: str = "",
    ) -> tuple[ToolCall, bool]:
        """Record that the server called a tool; the call, and whether it was not known before."""
        now = self._clock()
        with self._db.write() as conn:
            store_place(conn, place, now)
            done = conn.execute(
                """INSERT OR IGNORE INTO tool_calls (server_key, agent_id, conversation_id, request_id,
                tool_call_id, tool_name, input, state, connection_id, window_id, asked_wall, asked_mono,
                asked_boot, updated_wall, updated_mono, updated_boot)
                VALUES (?, ?, ?, ?, ?, ?, ?, 'asked', ?, ?, ?, ?, ?, ?, ?, ?)""",
                (
                    *place_values(place),
                    request_id,
                    tool_call_id,
                    clean(tool_name),
                    to_json(arguments),
                    connection_id,
                    window_id,
                    *stamp_values(now),
                    *stamp_values(now),
                ),
            )
            call = self._call(conn, place, request_id)
            assert call is not None
            return call, done.rowcount == 1

    def tool_moved(
        self,
        place: Place,
        request_id: str,
        state: CallState,
        *,
        allowed_by: str = "",
        result: str | None = None,
        is_error: bool = False,
        words: str = "",
    ) -> ToolCall:
        """Raises ``IllegalMove`` for a state that cannot follow, also for the one it already has: whoever
        moves a call to "running" may begin it, and nobody else."""
        with self._db.write() as conn:
            old = self._call(conn, place, request_id)
            if old is None:
                raise NoSuchSend(f"No call of a tool is recorded for the request {request_id}.")
            if state not in CALL_MOVES.get(old.state, ()):
                raise IllegalMove(
                    f"A call of a tool that is {old.state} cannot become {state}.", old=old.state, new=state
                )
            conn.execute(
                f"""UPDATE tool_calls SET state = ?, updated_wall = ?, updated_mono = ?, updated_boot = ?,
                allowed_by = COALESCE(NULLIF(?, ''), allowed_by), result = COALESCE(?, result),
                is_error = MAX(is_error, ?), words = COALESCE(NULLIF(?, ''), words)
                WHERE {AT_PLACE} AND request_id = ?""",
                (
                    state,
                    *stamp_values(self._clock()),
                    allowed_by,
                    clean(result) if result is not None else None,
                    int(is_error),
                    clean(words),
                    *place_values(place),
                    request_id,
                ),
            )
            call = self._call(conn, place, request_id)
            assert call is not None
            return call

    def tool_calls(
        self, place: Place, *, tool_call_id: str | None = None, open_only: bool = False
    ) -> tuple[ToolCall, ...]:
        """In the order asked. ``open_only``: those of which it is not settled what became of them."""
        states = f"AND state IN ({', '.join(repr(s) for s in OPEN)})" if open_only else ""
        with self._db.read() as conn:
            rows = conn.execute(
                f"""SELECT * FROM tool_calls WHERE {AT_PLACE} AND (?4 IS NULL OR tool_call_id = ?4) {states}
                ORDER BY position""".replace(
                    AT_PLACE, "server_key = ?1 AND agent_id = ?2 AND conversation_id = ?3"
                ),
                (*place_values(place), tool_call_id),
            )
            return tuple(_call_of(row) for row in rows)

    @staticmethod
    def _call(conn: sqlite3.Connection, place: Place, request_id: str) -> ToolCall | None:
        row = conn.execute(
            f"SELECT * FROM tool_calls WHERE {AT_PLACE} AND request_id = ?",
            (*place_values(place), request_id),
        ).fetchone()
        return _call_of(row) if row is not None else None


def _call_of(row: sqlite3.Row) -> ToolCall:
    return ToolCall(
        place=place_of(row),
        request_id=row["request_id"],
        tool_call_id=row["tool_call_id"],
        tool_name=row["tool_name"],
        input=from_json(row["input"], {}),
        state=row["state"],
        asked=stamp_of(row, "asked"),
        updated=stamp_of(row, "updated"),
        allowed_by=row["allowed_by"],
        result=row["result"],
        is_error=bool(row["is_error"]),
        words=row["words"],
        connection_id=row["connection_id"],
        window_id=row["window_id"],
        erased=bool(row["erased"]),
    )
