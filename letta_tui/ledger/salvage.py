"""A database that cannot be trusted is moved aside whole and rescued row by row into a new one.

Rescued rows are marked, so that nothing of them is ever sent by itself.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from letta_tui.ledger import schema
from letta_tui.ledger.database import in_words
from letta_tui.ledger.errors import LedgerUnwritable
from letta_tui.ledger.pages import carve
from letta_tui.ledger.values import Salvage, Stamp

_MOST_ROWS: Final = 1_000_000
_GIVE_UP: Final = 5_000  # rowids in a row that cannot be read


def move_aside(path: Path, now: Stamp) -> Path:
    """Rename the file and its journal together; the new path of the file."""
    number = int(now.wall)
    while True:
        target = path.with_name(f"{path.name}.damaged-{number}")
        if not target.exists():
            break
        number += 1
    try:
        journal = path.with_name(path.name + "-journal")
        if journal.exists():
            journal.rename(target.with_name(target.name + "-journal"))
        path.rename(target)
    except OSError as error:
        why = error.strerror or str(error)
        raise LedgerUnwritable(f"The damaged ledger cannot be moved aside: {why} ({path}).") from error
    return target


def rescue(conn: sqlite3.Connection, damaged: Path, reason: str, now: Stamp) -> Salvage:
    """Create a new ledger in ``conn`` with every row of ``damaged`` that can be read.

    Works on a copy: the damaged file stays as it was found.
    """
    counts: dict[str, int] = {}
    lost: list[str] = []
    with tempfile.TemporaryDirectory(dir=damaged.parent, prefix="salvage-") as folder:
        copy = Path(folder) / "copy"
        shutil.copyfile(damaged, copy)
        journal = damaged.with_name(damaged.name + "-journal")
        if journal.exists():
            shutil.copyfile(journal, copy.with_name("copy-journal"))
        source = _open_copy(copy)

        def fill(target: sqlite3.Connection) -> None:
            for table in schema.TABLES:
                rescued, whole = _rescue_table(source, copy, target, table)
                counts[table] = rescued
                if not whole:
                    lost.append(table)
            _mark(target, now, reason)

        try:
            conn.execute("PRAGMA foreign_keys = OFF")
            conn.execute("BEGIN IMMEDIATE")
            schema.create(conn, fill)
            conn.execute("COMMIT")
            conn.execute("PRAGMA foreign_keys = ON")
        except sqlite3.Error as error:
            raise in_words(error, damaged) from error
        finally:
            if source is not None:
                source.close()
    sends = counts.get("sends", 0)
    part = f"not all of {', '.join(lost)} could be read" if lost else "every table could be read"
    words = (
        f"The ledger was damaged. {sends} {'message was' if sends == 1 else 'messages were'} rescued "
        f"({part}); nothing rescued is sent by itself. The damaged file is kept beside it: {damaged.name}"
    )
    return Salvage(reason=reason, moved_to=str(damaged), rows=counts, lost=tuple(lost), words=words)


def _open_copy(copy: Path) -> sqlite3.Connection | None:
    try:
        conn = sqlite3.connect(copy, isolation_level=None)
        conn.execute("SELECT name FROM sqlite_master").fetchall()
    except sqlite3.Error:
        return None
    return conn


def _columns(target: sqlite3.Connection, table: str) -> list[str]:
    return [r["name"] for r in target.execute(f"PRAGMA table_info({table})")]


def _rescue_table(
    source: sqlite3.Connection | None, copy: Path, target: sqlite3.Connection, table: str
) -> tuple[int, bool]:
    """Copy what can be read of a table; how many rows, and whether nothing failed."""
    columns = _columns(target, table)
    whole = source is not None
    rows: list[dict[str, Any]] = []
    if source is not None:
        try:
            names = {r[1] for r in source.execute(f"PRAGMA table_info({table})")}
        except sqlite3.Error:
            names = set()
        if not names:
            whole = table not in schema.tables_of(_version(source))
        for row in _read(source, table) if names else ():
            if row is None:
                whole = False
            else:
                rows.append(row)
    if not whole and table in ("sends", "drafts"):
        # What a person wrote: look for its records in the raw pages too.
        rows.extend(carve(copy, table, columns))
    rescued = 0
    for row in rows:
        known = [c for c in columns if c in row]
        marks = ", ".join("?" for _ in known)
        try:
            done = target.execute(
                f"INSERT OR IGNORE INTO {table} ({', '.join(known)}) VALUES ({marks})",
                [row[c] for c in known],
            )
            rescued += done.rowcount
        except sqlite3.Error:
            whole = False
    return rescued, whole


def _version(source: sqlite3.Connection) -> int:
    try:
        return int(source.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.Error:
        return schema.VERSION


def _read(source: sqlite3.Connection, table: str) -> Iterator[dict[str, Any] | None]:
    """Rows of a table, ``None`` for each stretch that cannot be read."""
    source.row_factory = sqlite3.Row
    last = 0
    try:
        for row in source.execute(f"SELECT rowid AS rowid_, * FROM {table} ORDER BY rowid"):
            last = row["rowid_"]
            yield dict(row)
        return
    except sqlite3.Error:
        yield None
    seen = last
    failed = 0
    try:
        top = source.execute(f"SELECT MAX(rowid) FROM {table}").fetchone()[0] or 0
    except sqlite3.Error:
        top = last + _GIVE_UP
    for rowid in range(last + 1, min(top, last + _MOST_ROWS) + 1):
        try:
            row = source.execute(f"SELECT * FROM {table} WHERE rowid = ?", (rowid,)).fetchone()
        except sqlite3.Error:
            failed += 1
            if rowid - seen > _GIVE_UP:
                break
            continue
        if row is not None:
            seen = rowid
            yield dict(row)


def _mark(target: sqlite3.Connection, now: Stamp, reason: str) -> None:
    """Flag rescued messages, give parents to orphans, and leave evidence of the rescue."""
    stamp = (now.wall, now.mono, now.boot)
    target.execute("UPDATE sends SET salvaged = 1")
    target.execute(
        """INSERT OR IGNORE INTO servers (server_key, seen_wall, seen_mono, seen_boot)
        SELECT DISTINCT server_key, ?, ?, ? FROM
        (SELECT server_key FROM sends UNION SELECT server_key FROM conversations
         UNION SELECT server_key FROM drafts) WHERE server_key <> ''""",
        stamp,
    )
    for table in ("sends", "drafts", "approvals", "tool_calls", "windows"):
        target.execute(
            f"""INSERT OR IGNORE INTO conversations (server_key, agent_id, conversation_id,
            created_wall, created_mono, created_boot, used_wall, used_mono, used_boot)
            SELECT DISTINCT server_key, agent_id, conversation_id, ?, ?, ?, ?, ?, ? FROM {table}
            WHERE agent_id <> '' AND conversation_id <> ''""",
            stamp * 2,
        )
    for table in ("attempts", "evidence"):
        target.execute(
            f"DELETE FROM {table} WHERE client_message_id NOT IN (SELECT client_message_id FROM sends)"
        )
    target.execute(
        """INSERT INTO evidence (client_message_id, kind, payload, at_wall, at_mono, at_boot)
        SELECT client_message_id, 'salvaged', json_object('reason', ?), ?, ?, ? FROM sends""",
        (reason, *stamp),
    )
