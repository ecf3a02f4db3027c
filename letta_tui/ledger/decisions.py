"""Approval decisions: recorded before they are written, never replayed blindly (rule 8)."""

from __future__ import annotations

import sqlite3
from typing import Literal

from letta_tui.ledger.database import Database
from letta_tui.ledger.errors import IllegalMove, NoSuchSend
from letta_tui.ledger.places import store_place
from letta_tui.ledger.rows import AT_PLACE, approval_of, clean, place_values, stamp_values, to_json
from letta_tui.ledger.transitions import APPROVAL_MOVES
from letta_tui.ledger.values import Approval, ApprovalState, Clock, Place


class Decisions:
    """Mixed into the ledger."""

    _db: Database
    _clock: Clock

    def decide(
        self,
        place: Place,
        request_id: str,
        *,
        tool_call_id: str,
        tool_name: str,
        decision: Literal["allow", "deny"],
        message: str = "",
        suggestion_ids: tuple[str, ...] = (),
        window_id: str = "",
    ) -> Approval:
        """Record a decision before it is written.

        Raises ``IllegalMove`` when it already has one that may have arrived; one that the server refused did
        nothing. After a reconnect whose pending list still holds the request, move the old decision to
        "lost" first; then the person decides anew.
        """
        now = self._clock()
        with self._db.write() as conn:
            store_place(conn, place, now)
            old = self._newest(conn, place, request_id)
            if old is not None and old.state not in ("lost", "refused"):
                raise IllegalMove(
                    f"This request was already answered ({old.decision}, {old.state.replace('_', ' ')}).",
                    old=old.state,
                    new="decided",
                )
            conn.execute(
                """INSERT INTO approvals (server_key, agent_id, conversation_id, request_id, number,
                tool_call_id, tool_name, decision, message, suggestion_ids, state, window_id,
                decided_wall, decided_mono, decided_boot, updated_wall, updated_mono, updated_boot)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'decided', ?, ?, ?, ?, ?, ?, ?)""",
                (
                    *place_values(place),
                    request_id,
                    1 if old is None else old.number + 1,
                    tool_call_id,
                    clean(tool_name),
                    decision,
                    clean(message),
                    to_json(suggestion_ids),
                    window_id,
                    *stamp_values(now),
                    *stamp_values(now),
                ),
            )
            found = self._newest(conn, place, request_id)
            assert found is not None
            return found

    def approval_moved(
        self,
        place: Place,
        request_id: str,
        state: ApprovalState,
        *,
        input_request_id: str = "",
        connection_id: str = "",
        words: str = "",
    ) -> Approval:
        """Raises ``IllegalMove`` for a state that cannot follow; the state it already has is no error."""
        with self._db.write() as conn:
            old = self._newest(conn, place, request_id)
            if old is None:
                raise NoSuchSend(f"No decision is recorded for the request {request_id}.")
            if state != old.state and state not in APPROVAL_MOVES.get(old.state, ()):
                raise IllegalMove(
                    f"A decision that is {old.state.replace('_', ' ')} cannot become "
                    f"{state.replace('_', ' ')}.",
                    old=old.state,
                    new=state,
                )
            conn.execute(
                f"""UPDATE approvals SET state = ?, updated_wall = ?, updated_mono = ?, updated_boot = ?,
                input_request_id = COALESCE(NULLIF(?, ''), input_request_id),
                connection_id = COALESCE(NULLIF(?, ''), connection_id),
                words = COALESCE(NULLIF(?, ''), words)
                WHERE {AT_PLACE} AND request_id = ? AND number = ?""",
                (
                    state,
                    *stamp_values(self._clock()),
                    input_request_id,
                    connection_id,
                    clean(words),
                    *place_values(place),
                    request_id,
                    old.number,
                ),
            )
            found = self._newest(conn, place, request_id)
            assert found is not None
            return found

    @staticmethod
    def _newest(conn: sqlite3.Connection, place: Place, request_id: str) -> Approval | None:
        row = conn.execute(
            f"SELECT * FROM approvals WHERE {AT_PLACE} AND request_id = ? ORDER BY number DESC LIMIT 1",
            (*place_values(place), request_id),
        ).fetchone()
        return approval_of(row) if row is not None else None

    def approval(self, place: Place, request_id: str) -> Approval | None:
        """The newest decision about a request."""
        with self._db.read() as conn:
            return self._newest(conn, place, request_id)

    def approvals(self, place: Place, *, open_only: bool = False) -> tuple[Approval, ...]:
        """In the order decided. ``open_only``: decided or written, not yet answered by the server."""
        states = "AND state IN ('decided', 'written')" if open_only else ""
        with self._db.read() as conn:
            rows = conn.execute(
                f"SELECT * FROM approvals WHERE {AT_PLACE} {states} ORDER BY position", place_values(place)
            )
            return tuple(approval_of(r) for r in rows)
