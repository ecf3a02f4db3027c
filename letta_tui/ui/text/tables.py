"""GitHub's tables: the row of dashes that makes a line a table's header, and the cells of a row."""

from __future__ import annotations

import re

from letta_tui.ui.text.leaves import TableShape

_DELIMITER = re.compile(r" {0,3}\|?[ ]*:?-+:?[ ]*(?:\|[ ]*:?-+:?[ ]*)*\|?[ ]*$")
_ALIGNMENTS = {(True, True): "center", (False, True): "right"}


def shape_of(header: str, line: str) -> TableShape | None:
    """The table that ``line`` makes of the line before it, if it is one of dashes with as many columns."""
    if "|" not in header or "-" not in line or _DELIMITER.match(line) is None:
        return None
    cells, columns = split_row(header), split_row(line)
    if len(cells) != len(columns):
        return None
    return TableShape([_ALIGNMENTS.get((c.startswith(":"), c.endswith(":")), "left") for c in columns], cells)


def split_row(line: str) -> list[str]:
    """The cells of a table row."""
    line = line.strip()
    if line.startswith("|"):
        line = line[1:]
    if line.endswith("|") and not line.endswith("\\|"):
        line = line[:-1]
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)]
