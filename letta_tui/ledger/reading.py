"""Reading a ledger whose disk takes nothing: a picture of it in memory, older versions brought up to date.

SQLite cannot play back the journal of a writer that was killed where nothing can be written. Then file and
journal are copied to a temporary folder (0700) for the moment that takes.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from letta_tui.ledger import schema
from letta_tui.ledger.database import BUSY_SECONDS, Database, connect, in_words
from letta_tui.ledger.errors import LedgerDamaged, LedgerError, LedgerUnwritable

_TRIES: Final = 5  # to copy a file that somebody else may be writing
_NO_HELP: Final = frozenset(
    {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
)


def open_to_read(path: Path, busy_seconds: float = BUSY_SECONDS) -> Database:
    """The ledger as it is now. Nothing on the disk is created or changed, and writing to it fails.

    Raises ``LedgerError``, ``LedgerDamaged`` (it is not salvaged here), ``LedgerTooNew``.
    """
    try:
        conn = picture(path, busy_seconds)
        try:
            conn.row_factory = sqlite3.Row
            _bring_up_to_date(conn, path)
            conn.execute("PRAGMA query_only = ON")
        except BaseException:
            conn.close()
            raise
    except sqlite3.Error as error:
        raise in_words(error, path) from error
    return Database(path, conn)


def picture(path: Path, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """A copy in memory, of one moment. Raises ``sqlite3.Error``, ``LedgerUnwritable``."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=busy_seconds, isolation_level=None)) as source:
            return _in_memory(source)
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NO_HELP or not path.exists():
            raise
    try:
        with tempfile.TemporaryDirectory(prefix="letta-tui-") as folder:
            copied = Path(folder) / path.name
            _copy(path, copied)
            with closing(connect(copied)) as source:
                return _in_memory(source)
    except OSError as error:
        why = error.strerror or str(error)
        raise LedgerUnwritable(
            f"A program died while it wrote the ledger, and there is no room to read a copy: {why} ({path})."
        ) from error


def _in_memory(source: sqlite3.Connection) -> sqlite3.Connection:
    source.execute("BEGIN")
    source.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()  # from here on nobody changes it
    memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        source.backup(memory)
    except BaseException:
        memory.close()
        raise
    return memory


def _copy(path: Path, target: Path) -> None:
    """Both files, of one moment."""
    journal = path.with_name(f"{path.name}-journal")
    for _ in range(_TRIES):
        before = _seen(path), _seen(journal)
        shutil.copyfile(path, target)
        copied_journal = target.with_name(f"{target.name}-journal")
        copied_journal.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            shutil.copyfile(journal, copied_journal)
        if before == (_seen(path), _seen(journal)):
            return
    raise LedgerUnwritable(f"The ledger is being written by another process all the time ({path}).")


def _seen(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns


def _bring_up_to_date(conn: sqlite3.Connection, path: Path) -> None:
    application = conn.execute("PRAGMA application_id").fetchone()[0]
    if application == 0 and conn.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0] == 0:
        conn.execute("BEGIN")
        schema.create(conn)  # the file was made, and nothing was ever written to it
        conn.execute("COMMIT")
    elif application != schema.APPLICATION_ID:
        raise LedgerError(f"{path} is no ledger of this program.")
    for (problem,) in conn.execute("PRAGMA quick_check(1)"):
        if problem != "ok":
            raise LedgerDamaged(f"The ledger is damaged: {problem} ({path}).")
    conn.execute("BEGIN")
    schema.migrate(conn)
    conn.execute("COMMIT")
