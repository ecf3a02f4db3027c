"""Rows of the conversation to lines, one function per kind. Colours and the gutter come later."""

from __future__ import annotations

import json
import re

from rich.cells import cell_len

from letta_tui.seam.state import Row, ToolView
from letta_tui.ui.text.document import MarkdownDocument
from letta_tui.ui.text.lines import Line, Span, crop_spans, width_of, wrap_spans
from letta_tui.ui.text.sanitise import clean, clean_line
from letta_tui.ui.transcript.glyphs import DELIVERY, FOLDED, TOOL, UNFOLDED

OUTPUT_LINES = 40  # of a tool's output before "… N more lines"
PREVIEW = 2_000  # characters looked at for one-line summaries
_ARGUMENT_KEYS = ("command", "cmd", "file_path", "path", "pattern", "query", "url", "description", "prompt")
_PARTIAL_VALUE = re.compile(r'"(?:' + "|".join(_ARGUMENT_KEYS) + r')"\s*:\s*"((?:[^"\\]|\\.)*)')
_FOLDS = frozenset({"reasoning", "tool", "summary"})


def folds(row: Row) -> bool:
    """Whether the row has a folded form."""
    return row.kind in _FOLDS


def source(row: Row, text: str) -> str:
    """What copying the whole row gives: its source, made harmless."""
    tool = row.tool
    if tool is None:
        return clean(text).strip("\n")
    parts = [clean_line(tool.name), pretty_arguments(tool.arguments), clean(text).strip("\n")]
    return "\n".join(part for part in parts if part)


def plain_lines(
    text: str, width: int, style: str, limit: int | None = None, lead: tuple[Span, ...] = ()
) -> tuple[list[Line], int]:
    """Text as it is, wrapped; (lines, source lines left out by ``limit``)."""
    raw = text.split("\n")
    kept = raw if limit is None else raw[:limit]
    lines: list[Line] = []
    for line in kept:
        shown = line.expandtabs(4)
        lines += wrap_spans([(shown, style)] if shown else [], width, lead, lead)
    return lines, len(raw) - len(kept)


def user_lines(row: Row, text: str, width: int, ascii_only: bool) -> list[Line]:
    """What the person wrote, as written, and how far it got."""
    lines, _ = plain_lines(clean(text).strip("\n"), width, "user")
    if row.delivery is not None:
        fancy, plain, word, style = DELIVERY[row.delivery]
        glyph = plain if ascii_only else fancy
        tag = f"{glyph} {word}".rstrip()
        last = lines[-1]
        if last.cells + 2 + cell_len(tag) <= width:
            lines[-1] = Line((*last.spans, ("  ", "~pad"), (tag, "~" + style)), last.join)
        else:
            lines.append(Line(((tag, "~" + style),)))
    return lines


def reasoning_lines(row: Row, text: str, width: int, folded: bool, ascii_only: bool) -> list[Line]:
    words = len(text.split())
    count = f"{words:,} word" + ("" if words == 1 else "s")
    mark = (FOLDED if folded else UNFOLDED)[ascii_only]
    verb = "thinking…" if row.live else "thought"
    head = Line(((f"{mark} ", "~fold"), (f"{verb} · {count}", "dim")))
    if folded:
        return [head]
    body, _ = plain_lines(clean(text).strip("\n"), width, "dim+em", lead=(("  ", "~pad"),))
    return [head, *body]


def summary_lines(row: Row, text: str, width: int, folded: bool, ascii_only: bool) -> list[Line]:
    body = clean(text).strip("\n")
    mark = (FOLDED if folded else UNFOLDED)[ascii_only]
    if folded:
        first = clean_line(body[:PREVIEW])
        spans = [(f"{mark} ", "~fold"), ("summary of what came before · ", "dim"), (first, "dim")]
        return [Line(tuple(crop_spans(spans, width)))]
    lines, _ = plain_lines(body, width, "dim", lead=(("  ", "~pad"),))
    return [Line(((f"{mark} ", "~fold"), ("summary of what came before", "dim"))), *lines]


def short_argument(arguments: str) -> str:
    """The argument that says most, on one line; works on JSON that is still growing."""
    text = arguments.strip()
    if not text:
        return ""
    if len(text) <= 100_000 and text.endswith("}"):
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if isinstance(value, dict):
            for key in _ARGUMENT_KEYS:
                if isinstance(value.get(key), str):
                    return clean_line(value[key][:PREVIEW])
            strings = [each for each in value.values() if isinstance(each, str)]
            return clean_line(strings[0][:PREVIEW]) if strings else ""
    found = _PARTIAL_VALUE.search(text[:PREVIEW])
    return clean_line(found.group(1).replace("\\n", " ").replace('\\"', '"')) if found else ""


def pretty_arguments(arguments: str) -> str:
    """Arguments for reading: "name: value" per key, or the text as it came."""
    try:
        value = json.loads(arguments) if len(arguments) <= 400_000 else None
    except ValueError:
        value = None
    if not isinstance(value, dict):
        return clean(arguments).strip()
    parts: list[str] = []
    for key, each in value.items():
        shown = each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)
        shown = clean(shown).rstrip("\n")
        name = clean_line(str(key))
        parts.append(f"{name}:\n  " + shown.replace("\n", "\n  ") if "\n" in shown else f"{name}: {shown}")
    return "\n".join(parts)


def tool_lines(
    tool: ToolView, result: str, width: int, folded: bool, everything: bool, ascii_only: bool
) -> list[Line]:
    fancy, plain, word, style = TOOL[tool.state]
    head: list[Span] = [(f"{plain if ascii_only else fancy} ", "~" + style), (clean_line(tool.name), "tool")]
    argument = short_argument(tool.arguments)
    notes = [word] if word else []
    if tool.state == "denied" and tool.decided_by:
        notes = [f"denied by {clean_line(tool.decided_by)}"]
    if tool.reason:
        notes.append(clean_line(tool.reason))
    if tool.seconds is not None and tool.seconds >= 1:
        notes.append(f"{tool.seconds:.0f} s")
    note = " · ".join(notes)
    note_style = style if style in ("bad", "pending") else "dim"
    room = width - width_of(head) - (cell_len(note) + 3 if note else 0)
    if argument and room > 6:
        # The result's first line gets what the argument leaves, and never less than a third.
        head += crop_spans(
            [("  ", "pad"), (argument, "argument")], max(6, room if not folded else room * 2 // 3)
        )
    if note:
        head += [("  ", "pad"), (note, note_style)]
    first = next((line for line in clean_line_by_line(result[:PREVIEW]) if line), "")
    if tool.state == "denied" and (tool.reason or tool.decided_by == "you"):
        first = ""  # the result of a denied call is its reason once more
    if tool.state == "closed" and tool.reason:
        first = ""  # so is that of one that was cut off
    if folded and first and width - width_of(head) > 12:
        head += [("  ", "pad"), (first, "bad" if tool.state == "failed" else "dim")]
    lines = [Line(tuple(crop_spans(head, width)))]
    if folded:
        return lines
    lead: tuple[Span, ...] = (("│ ", "~rule"),)
    arguments = pretty_arguments(tool.arguments)
    if arguments:
        shown, left = plain_lines(arguments, width, "argument", None if everything else OUTPUT_LINES, lead)
        lines += shown + ([_more(left)] if left else [])
    output = clean(result).strip("\n")
    if output:
        if arguments:
            lines.append(Line((("├" + "─" * min(16, width - 2), "~rule"),)))
        shown, left = plain_lines(output, width, "output", None if everything else OUTPUT_LINES, lead)
        lines += shown + ([_more(left)] if left else [])
    return lines


def _more(left: int) -> Line:
    return Line((("│ ", "~rule"), (f"… {left:,} more lines", "~fold"), ("  → shows all", "~dim")))


def clean_line_by_line(text: str) -> list[str]:
    return [" ".join(line.split()) for line in clean(text).split("\n")]


def remark_lines(row: Row, text: str, width: int) -> list[Line]:
    """Notices, errors and the line that says how far the person had read."""
    lines: list[Line] = []
    if row.kind == "away":
        words = clean_line(text) or "you were away"
        lines = wrap_spans([(words, "away")], width, (("── ", "~rule"),), (("   ", "~pad"),))
        last = lines[-1]
        if (rest := width - last.cells - 1) > 0:
            lines[-1] = Line((*last.spans, (" ", "~pad"), ("─" * rest, "~rule")), last.join)
        return lines
    style = "bad" if row.kind == "error" else "dim"
    mark = "✗ " if row.kind == "error" else "· "
    hang: tuple[Span, ...] = (("  ", "~pad"),)
    for number, line in enumerate(clean(text).strip("\n").split("\n")):
        lead = ((mark, "~" + style),) if not number else hang
        lines += wrap_spans([(line.expandtabs(4), style)], width, lead, hang)
    return lines


def mark_lines(row: Row, width: int) -> list[Line]:
    """The row's remarks."""
    lines: list[Line] = []
    for mark in row.marks:
        lines += wrap_spans([(clean_line(mark), "dim")], width, (("↳ ", "~dim"),), (("  ", "~pad"),))
    return lines


def assistant_document(text: str) -> MarkdownDocument:
    return MarkdownDocument(text)
