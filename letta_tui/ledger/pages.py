"""Records found in the raw pages of a damaged SQLite file, when its trees can no longer be walked.

Format: https://www.sqlite.org/fileformat2.html, sections 1.6 (b-tree pages) and 2.1 (record format).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from letta_tui.ledger.transitions import DELIVERIES, OUTCOMES

_LEAF: Final = 0x0D
_MOST_BYTES: Final = 64 * 1024 * 1024  # of one record

Value = None | int | float | str | bytes


def carve(path: Path, table: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Rows that look like rows of ``table`` ("sends" or "drafts"), in page order."""
    data = path.read_bytes()
    size = _page_size(data)
    for start in range(0, len(data) - size + 1, size):
        header = start + (100 if start == 0 else 0)
        if data[header] != _LEAF:
            continue
        (count,) = struct.unpack_from(">H", data, header + 3)
        for index in range(min(count, size // 4)):
            try:
                (offset,) = struct.unpack_from(">H", data, header + 8 + 2 * index)
                rowid, values = _record(data, size, start + offset)
            except (IndexError, struct.error, ValueError, UnicodeDecodeError):
                continue
            row = _as_row(table, columns, rowid, values)
            if row is not None:
                yield row


def _page_size(data: bytes) -> int:
    (size,) = struct.unpack_from(">H", data.ljust(18, b"\0"), 16)
    size = 65536 if size == 1 else size
    return size if size in {512 << n for n in range(8)} else 4096


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for n in range(9):
        byte = data[at + n]
        if n == 8:
            return (value << 8) | byte, at + 9
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            return value, at + n + 1
    raise ValueError("varint")


def _record(data: bytes, page: int, at: int) -> tuple[int, list[Value]]:
    length, at = _varint(data, at)
    rowid, at = _varint(data, at)
    if length > _MOST_BYTES:
        raise ValueError("length")
    payload = _payload(data, page, at, length)
    end, at = _varint(payload, 0)
    kinds: list[int] = []
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values: list[Value] = []
    at = end
    for kind in kinds:
        value, at = _value(payload, kind, at)
        values.append(value)
    if at != length:
        raise ValueError("record")
    return rowid, values


def _payload(data: bytes, page: int, at: int, length: int) -> bytes:
    most = page - 35
    if length <= most:
        return _cut(data, at, length)
    least = (page - 12) * 32 // 255 - 23
    local = least + (length - least) % (page - 4)
    if local > most:
        local = least
    parts = [_cut(data, at, local)]
    (following,) = struct.unpack_from(">I", data, at + local)
    left = length - local
    while left > 0:
        if not following:
            raise ValueError("overflow")
        start = (following - 1) * page
        (following,) = struct.unpack_from(">I", data, start)
        piece = min(left, page - 4)
        parts.append(_cut(data, start + 4, piece))
        left -= piece
    return b"".join(parts)


def _cut(data: bytes, at: int, length: int) -> bytes:
    piece = data[at : at + length]
    if len(piece) != length:
        raise ValueError("short")
    return piece


def _value(payload: bytes, kind: int, at: int) -> tuple[Value, int]:
    if kind == 0:
        return None, at
    if kind <= 6:
        width = (0, 1, 2, 3, 4, 6, 8)[kind]
        return int.from_bytes(_cut(payload, at, width), "big", signed=True), at + width
    if kind == 7:
        return float(struct.unpack_from(">d", payload, at)[0]), at + 8
    if kind in (8, 9):
        return kind - 8, at
    if kind < 12:
        raise ValueError("kind")
    width = (kind - 12) // 2
    piece = _cut(payload, at, width)
    return (piece.decode() if kind % 2 else piece), at + width


def _as_row(table: str, columns: Sequence[str], rowid: int, values: list[Value]) -> dict[str, Any] | None:
    if len(values) != len(columns):
        return None
    row: dict[str, Any] = dict(zip(columns, values, strict=True))
    places = (row["server_key"], row["agent_id"], row["conversation_id"])
    if not all(isinstance(p, str) and p for p in places) or not isinstance(row["text"], str):
        return None
    if table == "drafts":
        good = isinstance(row["window_id"], str) and isinstance(row["saved_boot"], str)
        return row if good else None
    if row["delivery"] not in DELIVERIES or row["outcome"] not in OUTCOMES:
        return None
    # The position is the row id itself and is stored as NULL.
    row["position"] = rowid
    return row
