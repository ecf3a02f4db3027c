"""Looking into a ledger without opening it for work: nothing is created, migrated or salvaged."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from letta_tui.ledger.errors import LedgerError

_BUSY_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class LastUsed:
    """The conversation somebody would come back to, and the server it was on."""

    server_key: str
    label: str  # of the server: its address when it is a direct one
    kind: str
    agent_id: str
    conversation_id: str


@dataclass(frozen=True, slots=True)
class Health:
    """``problem`` is one sentence, empty when the file is sound."""

    version: int = 0
    sends: int = 0
    bytes: int = 0
    problem: str = ""


@contextmanager
def _read_only(path: Path) -> Iterator[sqlite3.Connection]:
    # A writer that was killed leaves a journal that has to be played back first, which a read-only
    # connection cannot do. "rw" creates nothing and changes nothing else.
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=_BUSY_SECONDS)
    else:
        from letta_tui.ledger.reading import picture

        connection = picture(path, _BUSY_SECONDS)
    try:
        connection.execute("PRAGMA query_only = ON")
        yield connection
    finally:
        connection.close()


def last_used(path: Path, agent_id: str = "", conversation_id: str = "") -> LastUsed | None:
    """The conversation last used, of this agent or with this id where they are given.

    ``None`` when there is none, and also when the file cannot be read: whoever opens it for work says why.
    """
    try:
        path.stat()
        with _read_only(path) as connection:
            row = connection.execute(
                """SELECT c.server_key, s.label, s.kind, c.agent_id, c.conversation_id
                FROM conversations c JOIN servers s USING (server_key)
                WHERE (? = '' OR c.agent_id = ?) AND (? = '' OR c.conversation_id = ?)
                AND (c.used_order > 0 OR ? <> '')
                ORDER BY c.used_order DESC LIMIT 1""",
                (agent_id, agent_id, conversation_id, conversation_id, conversation_id),
            ).fetchone()
    except (OSError, sqlite3.Error, LedgerError):
        return None
    return LastUsed(*map(str, row)) if row is not None else None


def examine(path: Path) -> Health:
    """Read the whole file and judge it; for ``doctor``."""
    from letta_tui.ledger.schema import APPLICATION_ID, VERSION

    try:
        size = path.stat().st_size
        with _read_only(path) as connection:
            application = int(connection.execute("PRAGMA application_id").fetchone()[0])
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            if application != APPLICATION_ID:
                return Health(version, bytes=size, problem=f"{path} is no ledger of this program.")
            if version > VERSION:
                return Health(version, bytes=size, problem=f"{path} was written by a newer version.")
            for (words,) in connection.execute("PRAGMA integrity_check(1)"):
                if words != "ok":
                    return Health(version, bytes=size, problem=f"{path} is damaged: {words}.")
            sends = int(connection.execute("SELECT count(*) FROM sends").fetchone()[0])
    except LedgerError as error:
        return Health(problem=error.words)
    except sqlite3.Error as error:
        return Health(problem=f"{path} cannot be read: {error}.")
    except OSError as error:
        return Health(problem=f"{path} cannot be read: {error.strerror or error}.")
    return Health(version, sends, size)
