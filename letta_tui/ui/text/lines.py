"""Lines of styled text that know nothing of colours, and the wrapping that makes them.

A style is a name; names joined by ``+`` add up; a name that starts with ``~`` marks decoration that is
never copied. What a name looks like is the palette's matter, so a change of theme costs no layout.
Widths are terminal cells as Rich measures them, which is what Textual uses to place text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from rich.cells import cell_len, split_graphemes

Span = tuple[str, str]
"""(text, style name)"""


class Colouring(Protocol):
    """Gives code its colours when it is painted, which most of it never is."""

    def spans(self, line: int, start: int, end: int) -> list[Span]: ...


class CodeRef(NamedTuple):
    """Span ``at`` of a line is characters ``start`` to ``end`` of line ``line`` of a block of code."""

    block: Colouring
    at: int
    line: int
    start: int
    end: int


class Line(NamedTuple):
    """One line of the screen. ``join`` is what stands between it and the line before when copied:
    a line end, a space (wrapped between words) or nothing (wrapped in a word)."""

    spans: tuple[Span, ...]
    join: str = "\n"
    code: CodeRef | None = None

    def painted(self) -> tuple[Span, ...]:
        """The spans with code in its colours; the text is the same."""
        if self.code is None:
            return self.spans
        block, at, line, start, end = self.code
        return (*self.spans[:at], *block.spans(line, start, end), *self.spans[at + 1 :])

    @property
    def text(self) -> str:
        """All of it, decorations included."""
        return "".join(text for text, _ in self.spans)

    @property
    def cells(self) -> int:
        return sum(cell_len(text) for text, _ in self.spans)


BLANK = Line(())

_WORDS = re.compile(r" +|[^ ]+")
_SINGLE = re.compile(r"[\x20-\x7e\u00a0-\u00ac\u00ae-\u02ff\u0370-\u0482\u2500-\u25fc\u2800-\u28ff]*")


def is_single(text: str) -> bool:
    """Whether every character of ``text`` is surely one cell wide (then cells are characters)."""
    return _SINGLE.fullmatch(text) is not None


def cells(text: str) -> int:
    """Columns that ``text`` takes in a terminal."""
    return cell_len(text)


def width_of(spans: Iterable[Span]) -> int:
    """Cells that ``spans`` take."""
    return sum(cell_len(text) for text, _ in spans)


def wrap_text(text: str, first: int, rest: int) -> list[tuple[int, int, str]]:
    """Where to break ``text`` (one paragraph line, no line ends): (start, end, join) per line.

    ``first`` and ``rest`` are the cells available on the first and the later lines. Words longer than a
    line are broken; wide characters may be broken apart at any of them. Indentation stays on the first
    line, up to half of it; spaces at a break belong to neither line.
    """
    room, rest = max(1, first), max(1, rest)
    single = is_single(text)
    if single and len(text) <= room:
        return [(0, len(text), "\n")]
    lines: list[tuple[int, int, str]] = []
    start = end = used = 0  # the line being filled: text[start:end], and cells up to the current word
    join = "\n"
    for match in _WORDS.finditer(text):
        at, stop = match.span()
        if text[at] == " ":
            if at == 0:
                used = min(stop, room // 2)
                start, end = stop - used, stop
            else:
                used += stop - at
            continue
        size = stop - at if single else cell_len(match.group())
        if used + size <= room:
            used += size
            end = stop
            continue
        narrow = single or size == _characters(match.group())
        if size <= rest and narrow and end > start:
            lines.append((start, end, join))
            join = " "
            start, end, used, room = at, stop, size, rest
            continue
        for piece_at, piece_stop, cells in _pieces(match.group(), at, min(room, rest), single):
            if used + cells > room:
                if end > start:
                    lines.append((start, end, join))
                    join = "" if end == piece_at else " "
                start, used, room = piece_at, 0, rest
            used += cells
            end = piece_stop
    if end > start or not lines:
        lines.append((start, max(start, end), join))
    return lines


def _characters(word: str) -> int:
    """Characters of ``word``, a mark and what it stands on being one."""
    return len(split_graphemes(word)[0])


def _pieces(word: str, at: int, room: int, single: bool) -> Iterator[tuple[int, int, int]]:
    """The parts a word may be broken into: (start, end, cells). Narrow runs that fit stay whole."""
    if single:
        for index in range(at, at + len(word)):
            yield index, index + 1, 1
        return
    mixed = cell_len(word) != _characters(word)
    room = min(room, 12)
    run_at = run_stop = run_cells = 0
    for start, end, cells in split_graphemes(word)[0]:
        if cells == 1 and mixed and run_cells < room:
            run_at = run_at if run_cells else start
            run_stop = end
            run_cells += 1
            continue
        if run_cells:
            yield at + run_at, at + run_stop, run_cells
            run_cells = 0
        yield at + start, at + end, cells
    if run_cells:
        yield at + run_at, at + run_stop, run_cells


def slice_spans(spans: Sequence[Span], start: int, end: int) -> list[Span]:
    """The part of ``spans`` between character positions ``start`` and ``end``."""
    out: list[Span] = []
    position = 0
    for text, style in spans:
        stop = position + len(text)
        if stop > start and position < end:
            out.append((text[max(0, start - position) : end - position], style))
        if stop >= end:
            break
        position = stop
    return out


def wrap_spans(
    spans: Sequence[Span], width: int, prefix: Sequence[Span] = (), hanging: Sequence[Span] = ()
) -> list[Line]:
    """Wrap a line of ``spans`` to ``width`` cells; ``prefix`` leads the first line, ``hanging`` the rest."""
    text = spans[0][0] if len(spans) == 1 else "".join(part for part, _ in spans)
    breaks = wrap_text(text, width - width_of(prefix), width - width_of(hanging))
    if len(breaks) == 1 and breaks[0][:2] == (0, len(text)):
        return [Line((*prefix, *spans))]
    return [
        Line((*(hanging if number else prefix), *slice_spans(spans, start, end)), join)
        for number, (start, end, join) in enumerate(breaks)
    ]


def crop_spans(spans: Sequence[Span], width: int, style: str = "~dim") -> list[Span]:
    """``spans`` in at most ``width`` cells, with "…" where something is left out."""
    if width <= 0:
        return []
    if width_of(spans) <= width:
        return list(spans)
    out: list[Span] = []
    room = width - 1
    for text, name in spans:
        cells = cell_len(text)
        if cells <= room:
            out.append((text, name))
            room -= cells
            continue
        kept = crop_text(text, room)
        if kept:
            out.append((kept, name))
        break
    out.append(("…", style))
    return out


def crop_text(text: str, width: int) -> str:
    """The longest beginning of ``text`` that takes at most ``width`` cells."""
    if is_single(text[: width + 1]):
        return text[:width]
    used = 0
    keep = 0
    # No grapheme is longer than a few dozen characters, so a slice is enough to look at.
    for _, end, cells in split_graphemes(text[: width * 8 + 32])[0]:
        if used + cells > width:
            break
        used += cells
        keep = end
    return text[:keep]
