"""The send ledger's file.

Every public method of :class:`Ledger` is one transaction, safe from any thread and beside other
processes, and raises only :class:`letta_tui.ledger.errors.LedgerError`. A commit returns when it is on
the disk: some milliseconds, so a caller with an event loop runs it in a thread.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

from letta_tui.ledger import schema
from letta_tui.ledger.calls import Calls
from letta_tui.ledger.database import Database
from letta_tui.ledger.decisions import Decisions
from letta_tui.ledger.erasing import Erasing, without_bodies
from letta_tui.ledger.opening import open_database
from letta_tui.ledger.places import Places
from letta_tui.ledger.reading import open_to_read
from letta_tui.ledger.rows import from_json
from letta_tui.ledger.values import Clock, Opening

_JSON_COLUMNS = frozenset({"state", "run_ids", "terminal", "payload", "suggestion_ids", "value"})
_PRIVATE_COLUMNS = frozenset({"text", "message", "title", "agent_name", "words", "label", "input", "result"})
_PRIVATE_IN_STATE = frozenset({"cwd", "external_tools", "workspace_sandbox"})


class Ledger(Places, Decisions, Calls, Erasing):
    """An open ledger. Use :meth:`open`; the methods are in ``places``, ``sends``, ``decisions``, ``calls``
    and ``erasing``."""

    def __init__(self, database: Database, clock: Clock, opening: Opening) -> None:
        self._db = database
        self._clock = clock
        self.opening = opening

    @classmethod
    def open(cls, path: Path, clock: Clock) -> Ledger:
        """Open or create the file (0600 in a 0700 folder), migrate it, salvage it when damaged.

        What happened is in ``.opening``; a salvage must be said to the person.
        Raises ``LedgerTooNew``, ``LedgerUnwritable``.
        """
        database, opening = open_database(path, clock)
        return cls(database, clock, opening)

    @classmethod
    def open_to_read(cls, path: Path, clock: Clock) -> Ledger:
        """The ledger as it is now, where nothing can be written; whatever would write raises.

        Raises ``LedgerTooNew``, ``LedgerDamaged``, ``LedgerError``.
        """
        return cls(open_to_read(path), clock, Opening())

    @property
    def path(self) -> Path:
        return self._db.path

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def export(self, *, bodies: bool = False) -> dict[str, Any]:
        """Everything as plain JSON data, for a bug report.

        Bodies, titles, names, addresses, folders and drafts are left out unless asked for; what is left out
        shows as its length.
        """
        out: dict[str, Any] = {"version": schema.VERSION, "bodies": bodies}
        with self._db.read() as conn:
            for table in schema.TABLES:
                rows = conn.execute(f"SELECT * FROM {table} ORDER BY rowid").fetchall()
                out[table] = [_exported(dict(r), table, bodies) for r in rows]
        return out


def _exported(row: dict[str, Any], table: str, bodies: bool) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in row.items():
        if name in _JSON_COLUMNS:
            value = from_json(value, None)
            if not bodies:
                value = without_bodies(value)
                if table == "conversations" and isinstance(value, dict):
                    value = {k: "" if k in _PRIVATE_IN_STATE else v for k, v in value.items()}
        elif not bodies and name in _PRIVATE_COLUMNS and isinstance(value, str):
            out[f"{name}_length"] = len(value)
            continue
        out[name] = value
    return out
