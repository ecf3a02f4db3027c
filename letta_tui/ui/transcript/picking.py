"""Selecting text: a place on the screen as (row ordinal and line, character), and back to text.

Textual keeps a selection as two offsets. Their y is ``ordinal * LINES_PER_ROW + line``, which stays true
when rows are added above, when estimates turn out wrong and when the view scrolls.
"""

from __future__ import annotations

from textual.selection import Selection

from letta_tui.ui.text.lines import Line
from letta_tui.ui.transcript.entries import Entry
from letta_tui.ui.transcript.model import Entries

LINES_PER_ROW = 1 << 24


def span_on_line(selection: Selection | None, place: int) -> tuple[int, int] | None:
    """(first, last) character selected on the line at ``place``; last is -1 for "to the end"."""
    return None if selection is None else selection.get_span(place)


def extract(entries: Entries, selection: Selection, gutter: int) -> str:
    """The text under ``selection``: as shown, without decorations, wrapped lines joined again.

    Rows that are wholly selected and were never on the screen come as their source.
    """
    start, end = selection.start, selection.end
    first = 0 if start is None else entries.at_ordinal(start.y // LINES_PER_ROW)
    last = len(entries) if end is None else entries.at_ordinal(end.y // LINES_PER_ROW + 1)
    parts: list[str] = []
    for index in range(first, min(last, len(entries))):
        entry = entries.items[index]
        low = entry.ordinal * LINES_PER_ROW
        inside = (start is None or start.y < low) and (end is None or end.y >= low + LINES_PER_ROW)
        if inside and not entry.laid_out:
            parts.append(("\n" * (1 + entry.margin) if parts else "") + entry.source)
            continue
        entries.lay_out(index)
        text = _from_entry(entry, selection, low, gutter, bool(parts))
        parts.append(text)
    return "".join(parts).strip("\n")


def _from_entry(entry: Entry, selection: Selection, low: int, gutter: int, more: bool) -> str:
    out: list[str] = []
    for number in range(entry.height):
        span = selection.get_span(low + number)
        if span is None:
            continue
        begin, stop = span
        line = entry.line(number)
        text = visible(line, max(0, begin - gutter), None if stop < 0 else max(0, stop - gutter))
        if out or more:
            out.append(line.join if out else "\n")
        out.append(text.rstrip())
    return "".join(out)


def visible(line: Line, start: int, end: int | None) -> str:
    """Characters ``start`` to ``end`` of a line without its decorations."""
    out: list[str] = []
    position = 0
    for text, style in line.spans:
        stop = position + len(text)
        if not style.startswith("~"):
            out.append(text[max(0, start - position) : None if end is None else max(0, end - position)])
        position = stop
    return "".join(out)
