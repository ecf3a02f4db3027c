"""Erasing at the person's wish: bodies go, rows stay and say so."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from letta_tui.ledger.database import Database
from letta_tui.ledger.rows import AT_PLACE, from_json, place_values, stamp_values, to_json
from letta_tui.ledger.sends import Sends
from letta_tui.ledger.transitions import AT_REST, can_move
from letta_tui.ledger.values import Clock, Evidence, Place, Send

BODY_KEYS: Final = frozenset({"text", "body", "words", "error", "final_text"})
"""Keys of evidence payloads and terminal results that may repeat what was written."""

_REST: Final = ", ".join(repr(d) for d in sorted(AT_REST))
_NO_CALL_BODY: Final = "input = '{}', result = '', words = '', erased = 1"


def without_bodies(value: Any) -> Any:
    """Plain data without the values of :data:`BODY_KEYS`, at any depth."""
    if isinstance(value, dict):
        return {k: "" if k in BODY_KEYS else without_bodies(v) for k, v in value.items()}
    if isinstance(value, list):
        return [without_bodies(v) for v in value]
    return value


class Erasing(Sends):
    """Mixed into the ledger."""

    _db: Database
    _clock: Clock

    def redact(self, client_message_id: str) -> Send:
        """Erase the body everywhere in this file (freed space is overwritten); the row stays and says so.

        A message that has not been sent, or was judged, becomes "redacted" and can no longer be sent; one
        under way or delivered keeps its state. Drafts of the conversation that repeat the text go too.
        """
        with self._db.write() as conn:
            send = self._get(conn, client_message_id)
            if send.text:
                conn.execute(
                    f"DELETE FROM drafts WHERE {AT_PLACE} AND instr(text, ?) > 0",
                    (*place_values(send.place), send.text),
                )
            self._erase(conn, send)
            return self._get(conn, client_message_id)

    def forget(self, place: Place) -> int:
        """Erase bodies, decisions' reasons, drafts, title and state of a conversation, so that nothing leads
        back to it; returns the number of sends erased."""
        with self._db.write() as conn:
            erased = 0
            for row in conn.execute(
                f"SELECT client_message_id FROM sends WHERE {AT_PLACE} AND erased = 0", place_values(place)
            ).fetchall():
                self._erase(conn, self._get(conn, row[0]))
                erased += 1
            key = place_values(place)
            conn.execute(f"DELETE FROM drafts WHERE {AT_PLACE}", key)
            conn.execute(f"DELETE FROM windows WHERE {AT_PLACE}", key)
            conn.execute(f"UPDATE approvals SET message = '', words = '', erased = 1 WHERE {AT_PLACE}", key)
            conn.execute(f"UPDATE tool_calls SET {_NO_CALL_BODY} WHERE {AT_PLACE}", key)
            conn.execute(
                f"""UPDATE conversations SET title = '', agent_name = '', state = '{{}}', used_order = 0,
                window_id = '' WHERE {AT_PLACE}""",
                key,
            )
            return erased

    def forgotten(self, place: Place) -> bool:
        """Whether a conversation that was in use has been forgotten since, by any window."""
        with self._db.read() as conn:
            row = conn.execute(
                f"SELECT used_order FROM conversations WHERE {AT_PLACE}", place_values(place)
            ).fetchone()
            return row is not None and row[0] == 0

    def retain(self, days: float | None) -> int:
        """Erase bodies of sends at rest that are older than ``days`` (``None``: keep all); how many."""
        if days is None:
            return 0
        before = self._clock().wall - days * 86400
        with self._db.write() as conn:
            rows = conn.execute(
                f"""SELECT client_message_id FROM sends WHERE erased = 0 AND delivery IN ({_REST})
                AND updated_wall < ?""",
                (before,),
            ).fetchall()
            for row in rows:
                self._erase(conn, self._get(conn, row[0]))
            conn.execute(
                """UPDATE approvals SET message = '', words = '', erased = 1
                WHERE updated_wall < ? AND state NOT IN ('decided', 'written')""",
                (before,),
            )
            conn.execute(
                f"""UPDATE tool_calls SET {_NO_CALL_BODY} WHERE updated_wall < ?
                AND state IN ('confirmed', 'declined', 'lost')""",
                (before,),
            )
            return len(rows)

    def _erase(self, conn: sqlite3.Connection, send: Send) -> None:
        key = send.client_message_id
        if send.erased:
            return
        for row in conn.execute(
            "SELECT seq, payload FROM evidence WHERE client_message_id = ?", (key,)
        ).fetchall():
            kept = to_json(without_bodies(from_json(row["payload"], {})))
            if kept != row["payload"]:
                conn.execute("UPDATE evidence SET payload = ?, erased = 1 WHERE seq = ?", (kept, row["seq"]))
        if send.terminal is not None:
            conn.execute(
                "UPDATE sends SET terminal = ? WHERE client_message_id = ?",
                (to_json(without_bodies(dict(send.terminal))), key),
            )
        conn.execute("UPDATE sends SET text = '', erased = 1 WHERE client_message_id = ?", (key,))
        evidence = Evidence("redacted", payload={"was": send.delivery})
        if can_move(send.delivery, "redacted", "redacted"):
            self._move(conn, key, "redacted", evidence)
        else:
            self._record(conn, key, evidence)
            conn.execute(
                """UPDATE sends SET updated_wall = ?, updated_mono = ?, updated_boot = ?
                WHERE client_message_id = ?""",
                (*stamp_values(self._clock()), key),
            )
