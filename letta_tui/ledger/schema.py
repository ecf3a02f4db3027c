"""The database's schema: tables, the transition tables, the triggers that guard them, migrations.

Guards live in the file so that no process, old or new, can store a state without what justifies it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from letta_tui.ledger import calls, transitions
from letta_tui.ledger.errors import LedgerTooNew

APPLICATION_ID: Final = 0x4C54_5549  # "LTUI"
VERSION: Final = 2

TABLES: Final[tuple[str, ...]] = (
    "settings",
    "servers",
    "conversations",
    "windows",
    "sends",
    "evidence",
    "attempts",
    "approvals",
    "tool_calls",
    "drafts",
)
"""Tables that hold what a person would miss, in an order that satisfies the foreign keys."""

_SINCE: Final[Mapping[str, int]] = {"tool_calls": 2}


def tables_of(version: int) -> tuple[str, ...]:
    """The tables that a file of this version has."""
    return tuple(table for table in TABLES if _SINCE.get(table, 1) <= version)


def _stamp(name: str, null: bool = False) -> str:
    end = "" if null else " NOT NULL"
    return f"{name}_wall REAL{end}, {name}_mono REAL{end}, {name}_boot TEXT{end}"


def _one_of(column: str, words: Iterable[str]) -> str:
    return f"CHECK ({column} IN ({', '.join(repr(w) for w in words)}))"


_PLACE = "server_key TEXT NOT NULL, agent_id TEXT NOT NULL, conversation_id TEXT NOT NULL"
_PLACE_FK = (
    "FOREIGN KEY (server_key, agent_id, conversation_id) "
    "REFERENCES conversations (server_key, agent_id, conversation_id)"
)
_BOOL = "INTEGER NOT NULL DEFAULT 0 CHECK ({0} IN (0, 1))"

CREATE_TABLES: Final[tuple[str, ...]] = (
    "CREATE TABLE settings (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL CHECK (json_valid(value)))",
    f"""CREATE TABLE servers (
        server_key TEXT PRIMARY KEY NOT NULL CHECK (server_key <> ''),
        label TEXT NOT NULL DEFAULT '', kind TEXT NOT NULL DEFAULT '', {_stamp("seen")})""",
    f"""CREATE TABLE conversations (
        {_PLACE}, title TEXT NOT NULL DEFAULT '', agent_name TEXT NOT NULL DEFAULT '',
        state TEXT NOT NULL DEFAULT '{{}}' CHECK (json_valid(state)),
        {_stamp("created")}, {_stamp("used")}, used_order INTEGER NOT NULL DEFAULT 0,
        window_id TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (server_key, agent_id, conversation_id),
        CHECK (agent_id <> '' AND conversation_id <> ''),
        FOREIGN KEY (server_key) REFERENCES servers (server_key))""",
    f"""CREATE TABLE windows (
        window_id TEXT NOT NULL CHECK (window_id <> ''), {_PLACE}, used_order INTEGER NOT NULL,
        PRIMARY KEY (window_id, server_key, agent_id, conversation_id), {_PLACE_FK})""",
    f"""CREATE TABLE sends (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        client_message_id TEXT NOT NULL UNIQUE CHECK (client_message_id <> ''),
        otid TEXT NOT NULL CHECK (otid <> ''), {_PLACE}, text TEXT NOT NULL,
        delivery TEXT NOT NULL {_one_of("delivery", transitions.DELIVERIES)},
        outcome TEXT NOT NULL {_one_of("outcome", transitions.OUTCOMES)},
        rests_on INTEGER NOT NULL DEFAULT 0, outcome_rests_on INTEGER NOT NULL DEFAULT 0,
        anchor_row TEXT, anchor_position INTEGER,
        supersedes TEXT NOT NULL DEFAULT '', superseded_by TEXT NOT NULL DEFAULT '',
        window_id TEXT NOT NULL DEFAULT '',
        run_ids TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(run_ids)),
        terminal TEXT CHECK (terminal IS NULL OR json_valid(terminal)),
        sentence TEXT NOT NULL DEFAULT '',
        salvaged {_BOOL.format("salvaged")}, erased {_BOOL.format("erased")},
        {_stamp("created")}, {_stamp("updated")},
        CHECK (erased = 0 OR text = ''), {_PLACE_FK})""",
    "CREATE INDEX sends_by_place ON sends (server_key, agent_id, conversation_id, position)",
    f"""CREATE TABLE evidence (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        client_message_id TEXT NOT NULL REFERENCES sends (client_message_id),
        kind TEXT NOT NULL {_one_of("kind", transitions.KINDS)},
        connection_id TEXT NOT NULL DEFAULT '', event_seq INTEGER,
        idempotency_key TEXT NOT NULL DEFAULT '', run_id TEXT NOT NULL DEFAULT '',
        request_id TEXT NOT NULL DEFAULT '', server_life TEXT NOT NULL DEFAULT '',
        payload TEXT NOT NULL DEFAULT '{{}}' CHECK (json_valid(payload)),
        erased {_BOOL.format("erased")}, {_stamp("at")})""",
    "CREATE INDEX evidence_by_send ON evidence (client_message_id, seq)",
    """CREATE UNIQUE INDEX evidence_once ON evidence (client_message_id, kind, connection_id, idempotency_key)
        WHERE idempotency_key <> ''""",
    f"""CREATE TABLE attempts (
        client_message_id TEXT NOT NULL REFERENCES sends (client_message_id),
        number INTEGER NOT NULL CHECK (number >= 1), request_id TEXT NOT NULL, connection_id TEXT NOT NULL,
        server_version TEXT NOT NULL DEFAULT '', server_life TEXT NOT NULL DEFAULT '',
        {_stamp("began")}, {_stamp("written", null=True)},
        PRIMARY KEY (client_message_id, number))""",
    f"""CREATE TABLE approvals (
        position INTEGER PRIMARY KEY AUTOINCREMENT, {_PLACE},
        request_id TEXT NOT NULL CHECK (request_id <> ''), number INTEGER NOT NULL CHECK (number >= 1),
        tool_call_id TEXT NOT NULL, tool_name TEXT NOT NULL,
        decision TEXT NOT NULL CHECK (decision IN ('allow', 'deny')), message TEXT NOT NULL DEFAULT '',
        suggestion_ids TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(suggestion_ids)),
        state TEXT NOT NULL {_one_of("state", transitions.APPROVAL_STATES)},
        window_id TEXT NOT NULL DEFAULT '', input_request_id TEXT NOT NULL DEFAULT '',
        connection_id TEXT NOT NULL DEFAULT '', words TEXT NOT NULL DEFAULT '',
        erased {_BOOL.format("erased")}, {_stamp("decided")}, {_stamp("updated")},
        UNIQUE (server_key, agent_id, conversation_id, request_id, number), {_PLACE_FK})""",
    calls.TABLE,
    f"""CREATE TABLE drafts (
        window_id TEXT NOT NULL CHECK (window_id <> ''), {_PLACE}, text TEXT NOT NULL, {_stamp("saved")},
        PRIMARY KEY (window_id, server_key, agent_id, conversation_id), {_PLACE_FK})""",
    """CREATE TABLE delivery_moves (old TEXT NOT NULL, new TEXT NOT NULL, kind TEXT NOT NULL,
        PRIMARY KEY (old, new, kind)) WITHOUT ROWID""",
    """CREATE TABLE outcome_moves (old TEXT NOT NULL, new TEXT NOT NULL, kind TEXT NOT NULL,
        PRIMARY KEY (old, new, kind)) WITHOUT ROWID""",
    """CREATE TABLE approval_moves (old TEXT NOT NULL, new TEXT NOT NULL,
        PRIMARY KEY (old, new)) WITHOUT ROWID""",
)


def _refuse(name: str, event: str, condition: str, words: str) -> str:
    when = f" WHEN {condition}" if condition else ""
    return f"CREATE TRIGGER {name} BEFORE {event}{when} BEGIN SELECT RAISE(ABORT, '{words}'); END"


def _justified(table: str, old: str, new: str, rests_on: str) -> str:
    return f"""NOT EXISTS (SELECT 1 FROM evidence e JOIN {table} m ON m.kind = e.kind
        WHERE e.seq = {rests_on} AND e.client_message_id = NEW.client_message_id
        AND m.old = {old} AND m.new = {new})"""


CREATE_TRIGGERS: Final[tuple[str, ...]] = (
    _refuse(
        "sends_start_prepared",
        "INSERT ON sends",
        "NEW.delivery <> 'prepared' OR NEW.outcome <> 'none'",
        "illegal move: a message starts as prepared",
    ),
    _refuse(
        "sends_delivery_moves",
        "UPDATE OF delivery ON sends",
        f"""NEW.delivery IS NOT OLD.delivery AND (NEW.rests_on <= OLD.rests_on OR
        {_justified("delivery_moves", "OLD.delivery", "NEW.delivery", "NEW.rests_on")})""",
        "illegal move: delivery",
    ),
    _refuse(
        "sends_outcome_moves",
        "UPDATE OF outcome ON sends",
        f"""NEW.outcome IS NOT OLD.outcome AND (NEW.outcome_rests_on <= OLD.outcome_rests_on OR
        {_justified("outcome_moves", "OLD.outcome", "NEW.outcome", "NEW.outcome_rests_on")})""",
        "illegal move: outcome",
    ),
    _refuse(
        "sends_keep_identity",
        """UPDATE OF position, client_message_id, otid, server_key, agent_id, conversation_id, supersedes,
        created_wall, created_mono, created_boot ON sends""",
        "",
        "illegal move: identity of a message",
    ),
    _refuse(
        "sends_keep_text",
        "UPDATE OF text, erased, salvaged ON sends",
        """(NEW.text IS NOT OLD.text AND NOT (NEW.text = '' AND NEW.erased = 1))
        OR NEW.erased < OLD.erased OR NEW.salvaged <> OLD.salvaged""",
        "illegal move: text of a message",
    ),
    _refuse("sends_stay", "DELETE ON sends", "", "illegal move: a message is never deleted"),
    _refuse("evidence_stays", "DELETE ON evidence", "", "illegal move: evidence is never deleted"),
    _refuse(
        "evidence_unchanged",
        "UPDATE ON evidence",
        """NEW.erased <> 1 OR NEW.seq <> OLD.seq OR NEW.client_message_id <> OLD.client_message_id
        OR NEW.kind <> OLD.kind OR NEW.connection_id <> OLD.connection_id
        OR NEW.event_seq IS NOT OLD.event_seq OR NEW.idempotency_key <> OLD.idempotency_key
        OR NEW.run_id <> OLD.run_id OR NEW.request_id <> OLD.request_id
        OR NEW.server_life <> OLD.server_life OR NEW.at_wall <> OLD.at_wall
        OR NEW.at_mono <> OLD.at_mono OR NEW.at_boot <> OLD.at_boot""",
        "illegal move: evidence is append-only",
    ),
    _refuse(
        "attempts_in_order",
        "INSERT ON attempts",
        """NEW.number <> 1 + (SELECT COALESCE(MAX(a.number), 0) FROM attempts a
            WHERE a.client_message_id = NEW.client_message_id)
        OR NOT EXISTS (SELECT 1 FROM sends s WHERE s.client_message_id = NEW.client_message_id
            AND s.delivery = 'unconfirmed')
        OR ((NEW.number > 1 OR EXISTS (SELECT 1 FROM sends s
                WHERE s.client_message_id = NEW.client_message_id AND s.salvaged = 1))
            AND (SELECT COUNT(*) FROM evidence e WHERE e.client_message_id = NEW.client_message_id
                AND e.kind = 'person') < NEW.number - 1 + (SELECT s.salvaged FROM sends s
                WHERE s.client_message_id = NEW.client_message_id))""",
        "illegal move: attempt",
    ),
    _refuse("attempts_stay", "DELETE ON attempts", "", "illegal move: an attempt is never deleted"),
    _refuse(
        "attempts_unchanged",
        "UPDATE ON attempts",
        """OLD.written_wall IS NOT NULL OR NEW.client_message_id <> OLD.client_message_id
        OR NEW.number <> OLD.number OR NEW.request_id <> OLD.request_id
        OR NEW.connection_id <> OLD.connection_id OR NEW.began_wall <> OLD.began_wall
        OR NEW.began_mono <> OLD.began_mono OR NEW.began_boot <> OLD.began_boot""",
        "illegal move: an attempt does not change",
    ),
    _refuse(
        "approvals_start_decided",
        "INSERT ON approvals",
        "NEW.state <> 'decided'",
        "illegal move: an approval starts as decided",
    ),
    _refuse(
        "approvals_moves",
        "UPDATE OF state ON approvals",
        """NEW.state IS NOT OLD.state AND NOT EXISTS (SELECT 1 FROM approval_moves m
        WHERE m.old = OLD.state AND m.new = NEW.state)""",
        "illegal move: approval",
    ),
    _refuse(
        "approvals_keep_decision",
        "UPDATE OF decision, request_id, tool_call_id, number ON approvals",
        "",
        "illegal move: a decision does not change",
    ),
    _refuse("approvals_stay", "DELETE ON approvals", "", "illegal move: a decision is never deleted"),
    *calls.TRIGGERS,
)


def fill_transitions(conn: sqlite3.Connection) -> None:
    """Write the transition tables of this version into an open transaction."""
    for table in ("delivery_moves", "outcome_moves", "approval_moves"):
        conn.execute(f"DELETE FROM {table}")
    conn.executemany("INSERT INTO delivery_moves VALUES (?, ?, ?)", transitions.delivery_rows())
    conn.executemany("INSERT INTO outcome_moves VALUES (?, ?, ?)", transitions.outcome_rows())
    conn.executemany("INSERT INTO approval_moves VALUES (?, ?)", transitions.approval_rows())


def create(conn: sqlite3.Connection, fill: Callable[[sqlite3.Connection], None] | None = None) -> None:
    """Create the newest schema in an open transaction. ``fill`` writes salvaged rows before the triggers
    are there."""
    for statement in CREATE_TABLES:
        conn.execute(statement)
    fill_transitions(conn)
    if fill is not None:
        fill(conn)
    for statement in CREATE_TRIGGERS:
        conn.execute(statement)
    conn.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    conn.execute(f"PRAGMA user_version = {VERSION}")


Migration = Callable[[sqlite3.Connection], None]


def _add_tool_calls(conn: sqlite3.Connection) -> None:
    conn.execute(calls.TABLE)
    for trigger in calls.TRIGGERS:
        conn.execute(trigger)


MIGRATIONS: Final[Mapping[int, Migration]] = {1: _add_tool_calls}
"""From version n to n + 1. A migration never deletes a row; it runs in one transaction with the others,
and the file as it was is kept beside the new one."""


def migrate(
    conn: sqlite3.Connection,
    migrations: Mapping[int, Migration] = MIGRATIONS,
    target: int = VERSION,
) -> int | None:
    """Bring an open transaction's database to ``target``; the version it had, or ``None`` if it was there.

    Raises ``LedgerTooNew`` for a file of a newer program.
    """
    found = int(conn.execute("PRAGMA user_version").fetchone()[0])
    if found > target:
        raise LedgerTooNew(
            f"This ledger was written by a newer letta-tui (its version is {found}, this program knows "
            f"{target}): update letta-tui to open it. Nothing was changed."
        )
    if found == target:
        return None
    counts = {t: conn.execute(f"SELECT COUNT(*) FROM {t}").fetchone()[0] for t in TABLES if _has(conn, t)}
    for version in range(found, target):
        migrations[version](conn)
    for table, before in counts.items():
        after = conn.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
        if after < before:
            raise AssertionError(f"a migration removed rows of {table}")
    conn.execute(f"PRAGMA user_version = {target}")
    return found


def _has(conn: sqlite3.Connection, table: str) -> bool:
    row = conn.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone()
    return row is not None
