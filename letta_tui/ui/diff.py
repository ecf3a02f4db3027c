"""Diffs and arguments as lines for the screen."""

from __future__ import annotations

import json

from textual.content import Content

from letta_tui.seam.state import ApprovalView, DiffView
from letta_tui.ui.text.lines import cells
from letta_tui.ui.text.sanitise import one_line, safe

_MARK = {
    "context": (" ", "$quiet"),
    "add": ("+", "$success on $add-bg"),
    "remove": ("-", "$error on $remove-bg"),
}


def _clip(text: str, width: int) -> str:
    """``text`` on one line of ``width`` columns; what is cut away is shown to be cut."""
    text = safe(text).replace("\n", "␊")
    if cells(text) <= width:
        return text + " " * (width - cells(text))
    while cells(text) > width - 1:
        text = text[: -max(1, (cells(text) - width + 1) // 2)]
    return text + "…" + " " * (width - 1 - cells(text))


def diff_lines(diff: DiffView, width: int) -> list[Content]:
    """A diff of one file: its name, then lines with numbers, a sign and a colour."""
    lines = [Content.styled(safe(diff.file_name).replace("\n", "␊"), "bold $secondary")]
    if not diff.hunks:
        lines.append(Content.styled(safe(diff.reason) or "No preview of the change.", "$quiet"))
        return lines
    highest = max(
        (max(h.old_start, h.new_start) + len(h.lines) for h in diff.hunks),
        default=1,
    )
    gutter = max(3, len(str(highest)))
    for number, hunk in enumerate(diff.hunks):
        if number:
            lines.append(Content.styled("⋯".rjust(gutter), "$quiet"))
        old, new = hunk.old_start, hunk.new_start
        for line in hunk.lines:
            sign, style = _MARK[line.kind]
            shown = old if line.kind == "remove" else new
            lines.append(
                Content.assemble(
                    (str(shown).rjust(gutter) + " ", "$quiet"),
                    (_clip(f"{sign} {line.text}", max(8, width - gutter - 1)), style),
                )
            )
            old += line.kind != "add"
            new += line.kind != "remove"
    return lines


def approval_lines(approval: ApprovalView, width: int) -> list[Content]:
    """All there is to know about a tool call: the changes it would make, else what it was given."""
    lines: list[Content] = []
    if approval.blocked_path:
        lines.append(
            Content.assemble(("Outside the allowed folders: ", "$warning"), safe(approval.blocked_path))
        )
    for diff in approval.diffs:
        lines += diff_lines(diff, width)
    if not any(d.hunks for d in approval.diffs):
        lines += argument_lines(approval.arguments)
    return lines


def argument_lines(arguments: str) -> list[Content]:
    """Arguments as names and values when they are a flat JSON object, else as they came."""
    try:
        values = json.loads(arguments)
    except ValueError:
        values = None
    if not isinstance(values, dict) or not values:
        return [Content(line) for line in safe(arguments).rstrip().split("\n")]
    lines: list[Content] = []
    for name, value in values.items():
        text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
        first, *rest = safe(text).split("\n")
        lines.append(Content.assemble((one_line(str(name), 40) + "  ", "$quiet"), first))
        lines += [Content(f"  {line}") for line in rest]
    return lines
