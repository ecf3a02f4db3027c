"""Printing for people and for programs: plain text in columns, or JSON. Foreign text is made harmless."""

from __future__ import annotations

import datetime as dt
import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any


def plain(text: str, width: int = 0) -> str:
    """``text`` on one line, harmless for a terminal; cut to ``width`` columns if that is given."""
    flat = " ".join(text.split())
    clean = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in flat)
    return shorten(clean, width) if width else clean


def shorten(text: str, width: int) -> str:
    """``text`` cut to ``width`` terminal columns, with an ellipsis when something was left out."""
    if columns(text) <= width:
        return text
    kept, used = [], 0
    for char in text:
        used += columns(char)
        if used > width - 1:
            break
        kept.append(char)
    return "".join(kept) + "…"


def columns(text: str) -> int:
    """How many terminal columns ``text`` takes."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(bool(unicodedata.combining(c)) for c in text)


def table(rows: Sequence[Sequence[str]], head: Sequence[str]) -> str:
    """Columns as wide as their widest cell; the last one is not padded."""
    every = [list(head), *[list(row) for row in rows]]
    widths = [max(columns(row[n]) for row in every) for n in range(len(head))]
    lines = []
    for row in every:
        cells = [cell + " " * (widths[n] - columns(cell)) for n, cell in enumerate(row)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def show_json(value: Any) -> None:
    """Print ``value`` as indented JSON; a lone surrogate or other odd character is escaped."""
    json.dump(value, sys.stdout, indent=2, ensure_ascii=True)
    print()


def show(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def iso(wall: float | None) -> str | None:
    """Seconds since the epoch as ISO 8601 in UTC, with milliseconds."""
    if wall is None:
        return None
    try:
        moment = dt.datetime.fromtimestamp(wall, dt.UTC)
    except (OverflowError, OSError, ValueError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def local_time(wall: float) -> str:
    """Seconds since the epoch as the person's own date and time."""
    try:
        return dt.datetime.fromtimestamp(wall).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):
        return "?"
