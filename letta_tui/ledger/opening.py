"""Opening the ledger: new, current, older (migrated, a copy kept), newer (refused), damaged (salvaged)."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from letta_tui.ledger import schema
from letta_tui.ledger.database import Database, connect, in_words, make_private
from letta_tui.ledger.errors import LedgerDamaged, LedgerError
from letta_tui.ledger.lock import replacing
from letta_tui.ledger.salvage import move_aside, rescue
from letta_tui.ledger.values import Clock, Opening


def open_database(
    path: Path,
    clock: Clock,
    *,
    migrations: Mapping[int, schema.Migration] = schema.MIGRATIONS,
    version: int = schema.VERSION,
) -> tuple[Database, Opening]:
    """Open the file and say what happened. Raises ``LedgerTooNew``, ``LedgerUnwritable``, ``LedgerError``."""
    warnings = make_private(path)
    with replacing(path):
        try:
            conn, created, migrated = _open(path, migrations, version)
        except LedgerDamaged as damage:
            moved = move_aside(path, clock())
            make_private(path)
            conn = connect(path)
            report = rescue(conn, moved, damage.words, clock())
            return Database(path, conn), Opening(salvage=report, warnings=warnings)
        opening = Opening(created=created, migrated_from=migrated, warnings=warnings)
        return Database(path, conn), opening


def _open(
    path: Path, migrations: Mapping[int, schema.Migration], version: int
) -> tuple[sqlite3.Connection, bool, int | None]:
    conn: sqlite3.Connection | None = None
    try:
        conn = connect(path)
        conn.execute("BEGIN IMMEDIATE")
        application = conn.execute("PRAGMA application_id").fetchone()[0]
        tables = {r[0] for r in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables and application == 0:
            schema.create(conn)
            conn.execute("COMMIT")
            return conn, True, None
        if application not in (0, schema.APPLICATION_ID):
            raise LedgerError(f"{path} is the database of another program; nothing was changed.")
        for (problem,) in conn.execute("PRAGMA quick_check(1)"):
            if problem != "ok":
                raise LedgerDamaged(f"The ledger is damaged: {problem} ({path}).")
        found = int(conn.execute("PRAGMA user_version").fetchone()[0])
        if found <= version:
            missing = sorted(set(schema.tables_of(found)) - tables)
            if missing or application == 0:
                what = f"it lacks {', '.join(missing)}" if missing else "it has lost its mark"
                raise LedgerDamaged(f"The ledger is damaged: {what} ({path}).")
        if found < version:
            _keep_copy(path, found)
        migrated = schema.migrate(conn, migrations, version)
        conn.execute("COMMIT")
        return conn, False, migrated
    except sqlite3.Error as error:
        _close(conn)
        raise in_words(error, path) from error
    except BaseException:
        _close(conn)
        raise


def _close(conn: sqlite3.Connection | None) -> None:
    if conn is not None:
        with suppress(sqlite3.Error):
            conn.close()


def _keep_copy(path: Path, version: int) -> None:
    """Copy the file as it was before a migration, once."""
    target = path.with_name(f"{path.name}.version-{version}")
    if target.exists():
        return
    make_private(target)
    source = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    copy = sqlite3.connect(target)
    try:
        source.backup(copy)
    finally:
        copy.close()
        source.close()
