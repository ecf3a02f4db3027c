"""One SQLite file used by several processes: durable, short transactions, errors in words.

``journal_mode=DELETE`` with ``synchronous=EXTRA`` is the pair that lost nothing in power-cut images;
``fullfsync`` makes it true on macOS. One connection and one lock per process: transactions are short.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from letta_tui.ledger.errors import IllegalMove, LedgerDamaged, LedgerError, LedgerUnwritable

BUSY_SECONDS: Final = 10.0
SYNCHRONOUS: Final = "EXTRA"

_FULL: Final = frozenset({sqlite3.SQLITE_FULL})
_LOCKED: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_DENIED: Final = frozenset(
    {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
)
_BROKEN: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def in_words(error: sqlite3.Error, path: Path) -> LedgerError:
    """The error the rest of the program knows, with one sentence for the person."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if isinstance(error, sqlite3.IntegrityError) and "illegal move" in str(error):
        return IllegalMove(str(error))
    if code in _FULL:
        return LedgerUnwritable(f"The disk is full, so nothing can be kept safe ({path}).")
    if code in _LOCKED:
        return LedgerUnwritable(
            f"The ledger has been in use by another process for {BUSY_SECONDS:.0f} seconds ({path})."
        )
    if code in _DENIED:
        return LedgerUnwritable(f"The ledger cannot be written: {error} ({path}).")
    if code in _BROKEN:
        return LedgerDamaged(f"The ledger is damaged: {error} ({path}).")
    if code == sqlite3.SQLITE_IOERR:
        return LedgerUnwritable(f"The disk reported an error while the ledger was written: {error} ({path}).")
    return LedgerError(f"The ledger could not do this: {error} ({path}).")


def make_private(path: Path) -> tuple[str, ...]:
    """Create the folder (0700) and the empty file (0600) if missing; warnings about looser ones."""
    warnings: list[str] = []
    folder = path.parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            _sync_folder(folder)
        if os.name == "posix":
            if stat.S_IMODE(path.stat().st_mode) & 0o077:
                path.chmod(0o600)
            if stat.S_IMODE(folder.stat().st_mode) & 0o077:
                warnings.append(f"The folder {folder} can be read by other users of this machine.")
    except OSError as error:
        why = error.strerror or str(error)
        raise LedgerUnwritable(f"The ledger cannot be written: {why} ({path}).") from error
    return tuple(warnings)


def _sync_folder(folder: Path) -> None:
    """A new name is durable only when its folder is."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems cannot
            os.fsync(handle)
    finally:
        os.close(handle)


def connect(path: Path, *, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """An sqlite3 connection with the ledger's pragmas; touches the file only when used."""
    conn = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
    conn.row_factory = sqlite3.Row
    try:
        conn.execute(f"PRAGMA busy_timeout = {int(busy_seconds * 1000)}")
        conn.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        conn.execute("PRAGMA foreign_keys = ON")
        conn.execute("PRAGMA cell_size_check = ON")
        # What is erased is overwritten, not only unlinked.
        conn.execute("PRAGMA secure_delete = ON")
        if sys.platform == "darwin":
            conn.execute("PRAGMA fullfsync = ON")
        mode = conn.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
        if mode != "delete":
            raise sqlite3.OperationalError(f"journal mode is {mode}")
    except sqlite3.Error:
        conn.close()
        raise
    return conn


class Database:
    """The connection, its lock, and transactions whose errors are ``LedgerError``."""

    def __init__(self, path: Path, conn: sqlite3.Connection) -> None:
        self.path = path
        self._conn: sqlite3.Connection | None = conn
        self._lock = threading.RLock()
        self._identity = _identity(path)

    def close(self) -> None:
        with self._lock:
            if self._conn is not None:
                self._conn.close()
                self._conn = None

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One durable transaction: committed when the block ends, nothing stored when it raises."""
        with self._lock:
            conn = self._open()
            try:
                conn.execute("BEGIN IMMEDIATE")
                self._check_identity()
                yield conn
                conn.execute("COMMIT")
            except sqlite3.Error as error:
                self._rollback(conn)
                raise in_words(error, self.path) from error
            except BaseException:
                self._rollback(conn)
                raise

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """One consistent view."""
        with self._lock:
            conn = self._open()
            try:
                conn.execute("BEGIN")
                yield conn
            except sqlite3.Error as error:
                raise in_words(error, self.path) from error
            finally:
                self._rollback(conn)

    def _open(self) -> sqlite3.Connection:
        if self._conn is None:
            raise LedgerError("The ledger is closed.")
        return self._conn

    def _check_identity(self) -> None:
        # Another process may have moved a damaged file aside: a commit there would be lost.
        if _identity(self.path) != self._identity:
            raise LedgerDamaged(f"The ledger was replaced while it was open ({self.path}).")

    @staticmethod
    def _rollback(conn: sqlite3.Connection) -> None:
        with suppress(sqlite3.Error):
            if conn.in_transaction:
                conn.execute("ROLLBACK")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
