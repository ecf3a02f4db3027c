"""Leaves of Markdown to lines of a given width."""

from __future__ import annotations

from rich.cells import cell_len

from letta_tui.ui.text.highlight import WHOLE_LIMIT, CodeBlock
from letta_tui.ui.text.inline import heal, inline_lines
from letta_tui.ui.text.leaves import Leaf, TableShape
from letta_tui.ui.text.lines import (
    CodeRef,
    Line,
    Span,
    crop_text,
    slice_spans,
    width_of,
    wrap_spans,
    wrap_text,
)
from letta_tui.ui.text.tables import split_row

_MIN_COLUMN = 4
_MAX_RULE = 60
_BORDER = " │ "


def layout(leaf: Leaf, width: int) -> list[Line]:
    """The lines of ``leaf`` in ``width`` cells, the blank line before it included."""
    width = max(width, 8)
    base = "done" if leaf.done == "x" else "text"
    if "▎ " in leaf.first:
        base = "quote"
    first = _prefix(leaf.first, width)
    rest = _prefix(leaf.rest, width)
    lines: list[Line] = []
    if leaf.gap:
        lines.append(Line(tuple(_prefix(leaf.gap_prefix, width))))
    if leaf.kind == "para":
        lines += _para(leaf, base, width, first, rest)
    elif leaf.kind == "heading":
        text = "\n".join(leaf.lines)
        for number, spans in enumerate(inline_lines(text, f"heading{min(leaf.level, 3)}")):
            lines += wrap_spans(spans, width, rest if number else first, rest)
    elif leaf.kind == "rule":
        room = min(_MAX_RULE, width - width_of(first))
        lines.append(Line((*first, ("─" * max(1, room), "~rule"))))
    elif leaf.kind == "fence":
        lines += _fence(leaf, width, first, rest)
    else:
        lines += _table(leaf, width, first, rest)
    if leaf.continued and lines and not leaf.gap and leaf.kind == "para":
        lines[0] = lines[0]._replace(join=" ")
    return lines


def _prefix(pieces: tuple[str, ...], width: int) -> list[Span]:
    """Container marks as spans; deep nesting never takes more than half of the width."""
    spans: list[Span] = []
    room = width // 2
    for piece in pieces:
        size = cell_len(piece)
        if size > room:
            break
        room -= size
        if piece == "▎ ":
            spans.append((piece, "~bar"))
        elif piece.isspace():
            spans.append((piece, "~pad"))
        else:
            spans.append((piece, "marker"))
    return spans


def _para(leaf: Leaf, base: str, width: int, first: list[Span], rest: list[Span]) -> list[Line]:
    text = "\n".join(leaf.lines)
    if leaf.open:
        text = heal(text)
    lines: list[Line] = []
    for number, spans in enumerate(inline_lines(text, base)):
        lines += wrap_spans(spans, width, rest if number else first, rest)
    return lines


def _fence(leaf: Leaf, width: int, first: list[Span], rest: list[Span]) -> list[Line]:
    """Code on a panel of its own; a long line goes on below, indented, and is copied as one."""
    block = CodeBlock(tuple(leaf.lines), leaf.language, whole=not leaf.open and leaf.size <= WHOLE_LIMIT)
    room = max(4, width - width_of(rest) - 2)
    label = "" if leaf.continued else leaf.language
    lines: list[Line] = []
    for number, text in enumerate(leaf.lines or [""]):
        for piece, (start, end) in enumerate(_code_pieces(text, room)):
            lead = rest if number or piece else first
            part = text[start:end]
            mark: Span = ("  ↪ ", "~code.mark") if piece else (" ", "~code.pad")
            space = width - width_of(lead) - len(mark[0]) - cell_len(part)
            line = [*lead, mark, (part, "code.text")]
            if not lines and label and space > len(label) + 3:
                line += [(" " * (space - len(label) - 1), "~code.pad"), (label + " ", "~code.mark")]
            elif space > 0:
                line.append((" " * space, "~code.pad"))
            ref = CodeRef(block, len(lead) + 1, number, start, end) if leaf.language and part else None
            lines.append(Line(tuple(line), "" if piece else "\n", ref))
    return lines


def _code_pieces(text: str, room: int) -> list[tuple[int, int]]:
    if cell_len(text) <= room:
        return [(0, len(text))]
    pieces: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        size = max(1, len(crop_text(text[start : start + room + 8], room if not pieces else room - 3)))
        pieces.append((start, start + size))
        start += size
    return pieces


# Tables


def _table(leaf: Leaf, width: int, first: list[Span], rest: list[Span]) -> list[Line]:
    shape = leaf.shape
    assert shape is not None
    room = width - width_of(rest)
    widths = column_widths(shape, room)
    lines: list[Line] = []
    if not widths:
        return _table_as_list(leaf, shape, width, first, rest)
    if not leaf.continued:
        lines += _table_row(shape.header, widths, shape.alignments, "table.head", first, rest)
        bar = "─┼─".join("─" * each for each in widths)
        lines.append(Line((*rest, (bar, "~rule"))))
    for row in leaf.lines:
        lines += _table_row(split_row(row), widths, shape.alignments, "text", rest, rest)
    return lines


def column_widths(shape: TableShape, room: int) -> list[int]:
    """Cells per column so that the table fits in ``room``; empty when that would be unreadable.

    Only the header and the first leaf's rows are looked at, so later rows never move earlier ones.
    """
    count = len(shape.header)
    room -= len(_BORDER) * (count - 1)
    if room < count * _MIN_COLUMN:
        return []
    widths = [1] * count
    for row in (shape.header, *shape.rows):
        for index, cell in enumerate(row[:count]):
            if cell:
                widths[index] = max(widths[index], _natural(cell))
    while sum(widths) > room:
        widest = max(widths)
        second = max((each for each in widths if each < widest), default=_MIN_COLUMN)
        tops = [index for index, each in enumerate(widths) if each == widest]
        cut = min(max(1, (sum(widths) - room) // len(tops)), max(1, widest - second))
        for index in tops:
            if sum(widths) > room:
                widths[index] -= min(cut, sum(widths) - room)
    return widths


def _natural(cell: str) -> int:
    return max(width_of(spans) for spans in inline_lines(cell))


def _table_row(
    cells: list[str], widths: list[int], alignments: list[str], base: str, first: list[Span], rest: list[Span]
) -> list[Line]:
    columns: list[list[list[Span]]] = []
    for index, width in enumerate(widths):
        text = cells[index] if index < len(cells) else ""
        spans = [span for line in inline_lines(text, base) for span in line]
        whole = "".join(part for part, _ in spans)
        columns.append([slice_spans(spans, start, end) for start, end, _ in wrap_text(whole, width, width)])
    height = max(len(column) for column in columns)
    lines: list[Line] = []
    for number in range(height):
        out: list[Span] = list(rest if number else first)
        for index, column in enumerate(columns):
            if index:
                out.append((_BORDER, "table.line"))
            spans = column[number] if number < len(column) else []
            space = max(0, widths[index] - width_of(spans))
            left = {"right": space, "center": space // 2}.get(alignments[index], 0)
            if left:
                out.append((" " * left, "pad"))
            out += spans
            if space - left and index < len(columns) - 1:
                out.append((" " * (space - left), "pad"))
        lines.append(Line(tuple(out)))
    return lines


def _table_as_list(
    leaf: Leaf, shape: TableShape, width: int, first: list[Span], rest: list[Span]
) -> list[Line]:
    """A table too narrow for its columns: every row as "header: cell" lines."""
    lines: list[Line] = []
    for row in leaf.lines or [""]:
        cells = split_row(row)
        for index, name in enumerate(shape.header):
            cell = cells[index] if index < len(cells) else ""
            spans = [*inline_lines(name, "table.head")[0], (": ", "table.line"), *inline_lines(cell)[0]]
            lines += wrap_spans(spans, width, first if not lines else rest, rest)
        lines.append(Line((*rest, ("─" * 3, "~rule"))))
    return lines
