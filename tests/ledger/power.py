"""Images of a disk whose power was cut: what SQLite wrote is recorded through a VFS and replayed to a point.

What was synced is there; what was written since the last sync is there, missing or torn, as luck has it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

SECTOR = 512


@dataclass
class Log:
    """``("write", name, offset, data)``, ``("truncate", name, size)``, ``("sync", name)``,
    ``("delete", name, durable)``, ``("told", key)`` in the order they happened."""

    ops: list[tuple[Any, ...]] = field(default_factory=list)

    def told(self, key: str) -> None:
        self.ops.append(("told", key))


class RecordingVFS(apsw.VFS):
    def __init__(self, name: str, log: Log) -> None:
        self.log = log
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: Any) -> RecordingFile:
        return RecordingFile(name, flags, self.log)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        self.log.ops.append(("delete", Path(filename).name, syncdir))


class RecordingFile(apsw.VFSFile):
    def __init__(self, name: Any, flags: Any, log: Log) -> None:
        self.log = log
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self.name = Path(path).name if path else ""
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self.log.ops.append(("write", self.name, offset, bytes(data)))

    def xTruncate(self, size: int) -> None:
        super().xTruncate(size)
        self.log.ops.append(("truncate", self.name, size))

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self.log.ops.append(("sync", self.name))


class Row(tuple[Any, ...]):
    """A row by index and by name."""

    names: Sequence[str] = ()

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self.names.index(key) if isinstance(key, str) else key)

    def keys(self) -> Sequence[str]:
        return self.names


class Cursor:
    def __init__(self, connection: apsw.Connection, rows: list[Row], changes: int) -> None:
        self._rows = iter(rows)
        self.rowcount = changes
        self.lastrowid = connection.last_insert_rowid()

    def fetchone(self) -> Row | None:
        return next(self._rows, None)

    def fetchall(self) -> list[Row]:
        return list(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return self._rows


class Connection:
    """As much of ``sqlite3.Connection`` as the ledger uses, over APSW."""

    def __init__(self, path: Path, vfs: str) -> None:
        self._conn = apsw.Connection(str(path), vfs=vfs)

    def execute(self, sql: str, values: Any = ()) -> Cursor:
        before = self._conn.total_changes()
        cursor = self._conn.cursor()
        rows: list[Row] = []
        names: Sequence[str] = ()
        for found in cursor.execute(sql, values):
            names = names or [d[0] for d in cursor.get_description()]
            row = Row(found)
            row.names = names
            rows.append(row)
        return Cursor(self._conn, rows, self._conn.total_changes() - before)

    def executemany(self, sql: str, many: Any) -> None:
        self._conn.cursor().executemany(sql, many)

    @property
    def in_transaction(self) -> bool:
        return bool(self._conn.in_transaction)

    def close(self) -> None:
        self._conn.close()


def image(log: Log, at: int, luck: random.Random) -> tuple[dict[str, bytes], list[str]]:
    """The files as they may be when the power goes after ``at`` operations, and what had been told."""
    durable: dict[str, bytearray] = {}
    pending: dict[str, list[tuple[Any, ...]]] = {}
    told: list[str] = []
    unsure: dict[str, bytearray] = {}  # deleted, but the folder was not synced
    for op in log.ops[:at]:
        if op[0] == "told":
            told.append(op[1])
        elif op[0] == "delete":
            pending.pop(op[1], None)
            gone = durable.pop(op[1], None)
            if gone is not None and not op[2]:
                unsure[op[1]] = gone
        elif op[0] == "sync":
            content = durable.setdefault(op[1], bytearray())
            unsure.pop(op[1], None)
            for change in pending.pop(op[1], []):
                _apply(content, change)
        else:
            pending.setdefault(op[1], []).append(op)
    for name, changes in pending.items():
        if name not in durable and luck.random() < 0.5:
            continue  # not even its name
        content = durable.setdefault(name, bytearray())
        for change in changes:
            fate = luck.random()
            if fate < 0.4:
                _apply(content, change)
            elif fate < 0.6 and change[0] == "write":
                keep = luck.randrange(len(change[3]) // SECTOR + 1) * SECTOR
                _apply(content, ("write", name, change[2], change[3][:keep]))
    for name, content in unsure.items():
        if name not in durable and luck.random() < 0.5:
            durable[name] = content
    return {name: bytes(content) for name, content in durable.items()}, told


def _apply(content: bytearray, change: tuple[Any, ...]) -> None:
    if change[0] == "truncate":
        del content[change[2] :]
        return
    _, _, offset, data = change
    if len(content) < offset + len(data):
        content.extend(bytes(offset + len(data) - len(content)))
    content[offset : offset + len(data)] = data
