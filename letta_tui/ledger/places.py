"""Servers, conversations, windows, drafts, settings: the parts of the ledger that are not sends."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from letta_tui.ledger.database import Database
from letta_tui.ledger.rows import (
    AT_PLACE,
    clean,
    draft_of,
    from_json,
    place_values,
    remembered_of,
    stamp_values,
    to_json,
)
from letta_tui.ledger.transitions import AWAITS_PERSON, IN_FLIGHT
from letta_tui.ledger.values import Clock, Draft, Place, Remembered, Stamp

_OPEN = ", ".join(repr(d) for d in sorted(AWAITS_PERSON | IN_FLIGHT))
_REMEMBERED = f"""SELECT c.*, s.label AS label, s.kind AS server_kind,
    (SELECT COUNT(*) FROM sends x WHERE x.server_key = c.server_key AND x.agent_id = c.agent_id
        AND x.conversation_id = c.conversation_id AND x.delivery IN ({_OPEN})) AS open_sends
    FROM conversations c JOIN servers s ON s.server_key = c.server_key"""


def store_place(conn: sqlite3.Connection, place: Place, now: Stamp) -> None:
    """Make sure that server and conversation are there, inside an open transaction."""
    conn.execute(
        "INSERT OR IGNORE INTO servers (server_key, seen_wall, seen_mono, seen_boot) VALUES (?, ?, ?, ?)",
        (place.server_key, *stamp_values(now)),
    )
    conn.execute(
        """INSERT OR IGNORE INTO conversations (server_key, agent_id, conversation_id, created_wall,
        created_mono, created_boot, used_wall, used_mono, used_boot) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (*place_values(place), *stamp_values(now), *stamp_values(now)),
    )


class Places:
    """Mixed into the ledger."""

    _db: Database
    _clock: Clock

    def remember_server(self, server_key: str, *, label: str = "", kind: str = "") -> None:
        """Store or refresh label and kind (embedded, direct, hosted); "" keeps what is there."""
        with self._db.write() as conn:
            conn.execute(
                """INSERT INTO servers (server_key, label, kind, seen_wall, seen_mono, seen_boot)
                VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (server_key) DO UPDATE SET
                label = CASE WHEN excluded.label = '' THEN label ELSE excluded.label END,
                kind = CASE WHEN excluded.kind = '' THEN kind ELSE excluded.kind END,
                seen_wall = excluded.seen_wall, seen_mono = excluded.seen_mono,
                seen_boot = excluded.seen_boot""",
                (server_key, clean(label), clean(kind), *stamp_values(self._clock())),
            )

    def remember_conversation(
        self,
        place: Place,
        *,
        title: str = "",
        agent_name: str = "",
        state: Mapping[str, Any] | None = None,
        window_id: str = "",
        used: bool = True,
    ) -> Remembered:
        """Store a conversation, before anything is sent in it. Empty values never overwrite stored ones;
        ``state`` is merged key by key and a value of ``None`` or "" in it is ignored. ``used`` marks it as
        the one last used (by ``window_id`` too, when given)."""
        now = self._clock()
        with self._db.write() as conn:
            store_place(conn, place, now)
            key = place_values(place)
            stored = conn.execute(f"SELECT state FROM conversations WHERE {AT_PLACE}", key).fetchone()[0]
            merged = from_json(stored, {})
            merged.update({k: v for k, v in (state or {}).items() if v is not None and v != ""})
            conn.execute(
                """UPDATE conversations SET state = :state,
                title = CASE WHEN :title = '' THEN title ELSE :title END,
                agent_name = CASE WHEN :name = '' THEN agent_name ELSE :name END
                WHERE server_key = :s AND agent_id = :a AND conversation_id = :c""",
                {
                    "state": to_json(merged),
                    "title": clean(title),
                    "name": clean(agent_name),
                    "s": place.server_key,
                    "a": place.agent_id,
                    "c": place.conversation_id,
                },
            )
            if used:
                self._mark_used(conn, place, window_id, now)
            return self._remembered(conn, place)

    @staticmethod
    def _mark_used(conn: sqlite3.Connection, place: Place, window_id: str, now: Stamp) -> None:
        # Counted, not timed: a clock that was set back must not change what a relaunch opens.
        order = 1 + conn.execute("SELECT COALESCE(MAX(used_order), 0) FROM conversations").fetchone()[0]
        conn.execute(
            f"""UPDATE conversations SET used_order = ?, used_wall = ?, used_mono = ?, used_boot = ?,
            window_id = ? WHERE {AT_PLACE}""",
            (order, *stamp_values(now), window_id, *place_values(place)),
        )
        if window_id:
            conn.execute(
                "INSERT OR REPLACE INTO windows VALUES (?, ?, ?, ?, ?)",
                (window_id, *place_values(place), order),
            )

    @staticmethod
    def _remembered(conn: sqlite3.Connection, place: Place) -> Remembered:
        where = " WHERE c.server_key = ? AND c.agent_id = ? AND c.conversation_id = ?"
        return remembered_of(conn.execute(_REMEMBERED + where, place_values(place)).fetchone())

    def forget_state(self, place: Place, *keys: str) -> None:
        """Remove keys from a conversation's stored state (all keys when none is named)."""
        with self._db.write() as conn:
            row = conn.execute(
                f"SELECT state FROM conversations WHERE {AT_PLACE}", place_values(place)
            ).fetchone()
            if row is None:
                return
            state = {k: v for k, v in from_json(row[0], {}).items() if keys and k not in keys}
            conn.execute(
                f"UPDATE conversations SET state = ? WHERE {AT_PLACE}", (to_json(state), *place_values(place))
            )

    def conversation(self, place: Place) -> Remembered | None:
        with self._db.read() as conn:
            where = " WHERE c.server_key = ? AND c.agent_id = ? AND c.conversation_id = ?"
            row = conn.execute(_REMEMBERED + where, place_values(place)).fetchone()
            return remembered_of(row) if row is not None else None

    def conversations(
        self, server_key: str | None = None, agent_id: str | None = None
    ) -> tuple[Remembered, ...]:
        """Last used first."""
        with self._db.read() as conn:
            rows = conn.execute(
                _REMEMBERED
                + """ WHERE (?1 IS NULL OR c.server_key = ?1) AND (?2 IS NULL OR c.agent_id = ?2)
                ORDER BY c.used_order DESC, c.rowid DESC""",
                (server_key, agent_id),
            )
            return tuple(remembered_of(r) for r in rows)

    def last_used(
        self, server_key: str | None = None, agent_id: str | None = None, window_id: str = ""
    ) -> Remembered | None:
        """The conversation to come back to: of this window if it has one, else of any. One that was only
        stored (``used=False``) is never it."""
        with self._db.read() as conn:
            row = conn.execute(
                _REMEMBERED
                + """ LEFT JOIN windows w ON w.window_id = ?3 AND w.server_key = c.server_key
                AND w.agent_id = c.agent_id AND w.conversation_id = c.conversation_id
                WHERE c.used_order > 0 AND (?1 IS NULL OR c.server_key = ?1)
                AND (?2 IS NULL OR c.agent_id = ?2)
                ORDER BY COALESCE(w.used_order, 0) DESC, c.used_order DESC LIMIT 1""",
                (server_key, agent_id, window_id),
            ).fetchone()
            return remembered_of(row) if row is not None else None

    # --- drafts ----------------------------------------------------------------------------------

    def save_draft(self, window_id: str, place: Place, text: str) -> None:
        """Per window and conversation; an empty text removes it."""
        now = self._clock()
        with self._db.write() as conn:
            if not text:
                conn.execute(
                    f"DELETE FROM drafts WHERE window_id = ? AND {AT_PLACE}",
                    (window_id, *place_values(place)),
                )
                return
            store_place(conn, place, now)
            conn.execute(
                "INSERT OR REPLACE INTO drafts VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (window_id, *place_values(place), clean(text), *stamp_values(now)),
            )

    def draft(self, window_id: str, place: Place) -> Draft | None:
        with self._db.read() as conn:
            row = conn.execute(
                f"SELECT * FROM drafts WHERE window_id = ? AND {AT_PLACE}", (window_id, *place_values(place))
            ).fetchone()
            return draft_of(row) if row is not None else None

    def drafts(self, place: Place) -> tuple[Draft, ...]:
        """Of every window, newest first (a relaunched window adopts one of a window that is gone)."""
        with self._db.read() as conn:
            rows = conn.execute(
                f"SELECT * FROM drafts WHERE {AT_PLACE} ORDER BY saved_wall DESC, rowid DESC",
                place_values(place),
            )
            return tuple(draft_of(r) for r in rows)

    def adopt_draft(self, old_window_id: str, window_id: str, place: Place) -> Draft | None:
        """Take over the draft of a window that is gone; ``None`` when it is no longer there, or when this
        window has a draft of its own."""
        with self._db.write() as conn:
            done = conn.execute(
                f"UPDATE OR IGNORE drafts SET window_id = ? WHERE window_id = ? AND {AT_PLACE}",
                (window_id, old_window_id, *place_values(place)),
            )
            if not done.rowcount:
                return None
        return self.draft(window_id, place)

    # --- settings --------------------------------------------------------------------------------

    def setting(self, name: str) -> Any:
        """A stored value (plain JSON data), ``None`` when not set."""
        with self._db.read() as conn:
            row = conn.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
            return from_json(row[0], None) if row is not None else None

    def set_setting(self, name: str, value: Any) -> None:
        """Store a value; ``None`` removes it."""
        with self._db.write() as conn:
            if value is None:
                conn.execute("DELETE FROM settings WHERE name = ?", (name,))
            else:
                conn.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, to_json(value)))
