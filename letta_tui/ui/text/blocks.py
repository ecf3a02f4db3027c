"""Markdown's block structure, line by line, so that a growing text is never parsed twice.

The result is a flat sequence of leaves (paragraph, heading, fence, table, rule), each with the marks of
the quotes and list items it stands in. A leaf is *open* while lines may still join it; there is at most
one, the last. Leaves are bounded: a giant paragraph, fence or table continues in further leaves, so the
cost of the open one never grows with the text.

The rules are CommonMark's block rules and GitHub's tables, with these choices for a conversation: HTML is
text, reference definitions are text, and a line that is only indented after a list keeps to its item.
"""

from __future__ import annotations

import re

from letta_tui.ui.text.leaves import Container, Leaf, LeafKind
from letta_tui.ui.text.tables import shape_of, split_row

PARA_LIMIT = 4_096  # characters after which a paragraph continues in another leaf
FENCE_LIMIT = 8_000  # characters, and
FENCE_LINES = 160  # lines after which a fence does
TABLE_ROWS = 60  # rows after which a table does; the first leaf's rows settle the columns
MAX_DEPTH = 24  # containers in containers; deeper ones are text

_QUOTE = re.compile(r" {0,3}> ?")
_FENCE = re.compile(r"( {0,3})(`{3,})([^`]*)$|( {0,3})(~{3,})(.*)$")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ ]+(.*?))?(?:[ ]+#+)?[ ]*$")
_RULE = re.compile(r" {0,3}(?:(?:\*[ ]*){3,}|(?:-[ ]*){3,}|(?:_[ ]*){3,})$")
_ITEM = re.compile(r"( {0,3})([-*+]|(\d{1,9})([.)]))( +|$)")
_TASK = re.compile(r"\[([ xX])\] +(?=\S)")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ ]*$")


class BlockParser:
    """Feed it lines; it hands back leaves that are closed and keeps the open one."""

    def __init__(self) -> None:
        self.stack: list[Container] = []
        self.leaf: Leaf | None = None
        self._fence = ("", 0)  # (closing marks, indentation)
        self._gap = False
        self._previous: tuple[list[Container], LeafKind] | None = None
        self._sibling: tuple[int, Container] | None = None
        self._last: Leaf | None = None
        self.closed: list[Leaf] = []

    def copy(self) -> BlockParser:
        """A parser that can go on from here without changing this one; costs the open leaf only."""
        other = BlockParser()
        other.stack = [each.copy() for each in self.stack]
        if self.leaf is not None:
            other.leaf = self.leaf.copy()
        other._fence = self._fence
        other._gap = self._gap
        if self._previous is not None:
            # Identity decides what two leaves have in common: map the old containers to their copies.
            copies = {id(old): new for old, new in zip(self.stack, other.stack, strict=True)}
            stack, kind = self._previous
            other._previous = ([copies.get(id(each), each) for each in stack], kind)
        other._sibling = self._sibling
        other._last = self._last
        return other

    def feed(self, line: str, soft: bool = False) -> None:
        """One line without its end, tabs expanded. ``soft``: it continues the line before."""
        if soft:
            self._continue(line)
            return
        rest, matched = self._match(line)
        leaf = self.leaf
        whole = matched == len(self.stack)
        if leaf is not None and leaf.kind == "fence":
            if whole:
                self._fence_line(rest)
                return
            self._close_to(matched)
            leaf = None
        if not rest.strip():
            self._blank(matched)
            return
        self._start_blocks(rest, matched)

    def end(self) -> None:
        """No more lines."""
        self._close_leaf()
        self._close_to(0)

    # Containers

    def _match(self, line: str) -> tuple[str, int]:
        rest, matched = line, 0
        for container in self.stack:
            if container.kind == "quote":
                mark = _QUOTE.match(rest)
                if mark is None:
                    break
                rest = rest[mark.end() :]
            elif not rest.strip():
                if container.empty_start:
                    break
                rest = ""
            elif len(rest) - len(rest.lstrip(" ")) >= container.width:
                rest = rest[container.width :]
            else:
                break
            matched += 1
        return rest, matched

    def _blank(self, matched: int) -> None:
        while matched < len(self.stack) and self.stack[matched].kind == "item":
            if self.stack[matched].empty_start:
                break
            matched += 1
        self._close_to(matched)
        self._close_leaf()
        self._gap = True

    def _close_to(self, depth: int) -> None:
        if depth >= len(self.stack):
            return
        self._close_leaf()
        for container in reversed(self.stack[depth:]):
            if container.kind == "item" and not container.shown:
                self._add(Leaf("para", [""]))
                self._close_leaf()
        if self.stack[depth].kind == "item":
            self._sibling = (depth, self.stack[depth])
        del self.stack[depth:]

    def _start_blocks(self, rest: str, matched: int) -> None:
        fresh = False  # a container was opened on this line
        while True:
            indent = len(rest) - len(rest.lstrip(" "))
            para = self.leaf if self.leaf is not None and self.leaf.kind in ("para", "table") else None
            if indent >= 4 and para is not None and not fresh:
                break
            if len(self.stack) < MAX_DEPTH and (mark := _QUOTE.match(rest)) is not None:
                self._close_to(matched)
                self._close_leaf()
                self.stack.append(Container("quote"))
                rest = rest[mark.end() :]
            elif (
                len(self.stack) < MAX_DEPTH
                and _RULE.match(rest) is None
                and (item := _ITEM.match(rest)) is not None
                and self._may_start_item(item, rest, matched, para, fresh)
            ):
                rest = self._open_item(item, rest, matched)
            else:
                break
            fresh = True
            matched = len(self.stack)
            if not rest.strip():
                return
        self._start_leaf(rest, matched, fresh)

    def _may_start_item(
        self, item: re.Match[str], rest: str, matched: int, para: Leaf | None, fresh: bool
    ) -> bool:
        if para is None or fresh or matched < len(self.stack):
            return True
        # Into a running paragraph only a list that surely is one: not empty, and from one.
        return bool(rest[item.end() :].strip()) and item.group(3) in (None, "1")

    def _open_item(self, item: re.Match[str], rest: str, matched: int) -> str:
        self._close_to(matched)
        self._close_leaf()
        lead, mark, digits, delimiter, spaces = item.groups()
        content = rest[item.end() :]
        empty = not content.strip()
        pad = len(spaces) if 1 <= len(spaces) <= 4 and not empty else 1
        width = len(lead) + len(mark) + pad
        family = delimiter or mark
        number = int(digits) if digits else 0
        sibling = self._sibling
        if sibling is not None and sibling[0] == matched and sibling[1].family == family and digits:
            number = sibling[1].number + 1
        depth = sum(1 for each in self.stack if each.kind == "item")
        new = Container("item", width, "", family, number, empty_start=empty, depth=depth)
        if digits:
            new.marker = f"{number}{delimiter}"
        else:
            new.marker = "•◦▪"[min(depth, 2)]
        self.stack.append(new)
        self._sibling = None
        text = rest[width:] if not empty else ""
        task = _TASK.match(text)
        if task is not None:
            new.task = "x" if task.group(1) in "xX" else " "
            text = text[task.end() :]
        return text

    # Leaves

    def _start_leaf(self, rest: str, matched: int, fresh: bool) -> None:
        leaf = self.leaf
        running = leaf if leaf is not None and leaf.kind in ("para", "table") and not fresh else None
        indent = len(rest) - len(rest.lstrip(" "))
        fence = _FENCE.match(rest)
        if fence is not None:
            self._open(matched)
            lead = fence.group(1) if fence.group(2) else fence.group(4)
            marks = fence.group(2) or fence.group(5)
            info = (fence.group(3) or fence.group(6) or "").strip()
            self._fence = (marks, len(lead or ""))
            self._add(Leaf("fence", [], language=info.split(" ", 1)[0].strip("{}.")[:40]))
            return
        if running is not None and running.kind == "para" and matched == len(self.stack):
            under = _SETEXT.match(rest)
            if under is not None and not running.continued and running.lines != [""]:
                running.kind = "heading"
                running.level = 1 if under.group(1)[0] == "=" else 2
                self._close_leaf()
                return
            if self._begins_table(rest, running):
                return
        heading = _HEADING.match(rest)
        if heading is not None:
            self._open(matched)
            self._add(Leaf("heading", [heading.group(2) or ""], level=len(heading.group(1))))
            self._close_leaf()
            return
        if _RULE.match(rest) is not None:
            self._open(matched)
            self._add(Leaf("rule", []))
            self._close_leaf()
            return
        if running is not None:
            if running.kind == "table":
                if matched == len(self.stack):
                    self._table_row(rest)
                    return
            else:
                self._para_line(rest.lstrip(" "))
                return
        self._open(matched)
        if indent >= 4:
            self._fence = ("", 4)
            self._add(Leaf("fence", [rest[4:]], size=len(rest), language=""))
            # Indented code is closed by the first line that is not: it is a fence of one line here,
            # and the next indented line joins it.
            self._join_indented()
            return
        self._add(Leaf("para", [rest.lstrip(" ")], size=len(rest)))

    def _join_indented(self) -> None:
        """An indented code line directly after another is one block with it."""
        leaf = self.leaf
        assert leaf is not None
        last = self._last
        leaf.continued = (
            last is not None
            and last.kind == "fence"
            and not leaf.gap
            and last.language == ""
            and last.rest == leaf.rest
        )
        self._close_leaf()

    def _open(self, matched: int) -> None:
        self._close_to(matched)
        self._close_leaf()

    def _add(self, leaf: Leaf) -> None:
        """Make ``leaf`` the open one, with the prefixes of the containers it stands in."""
        first: list[str] = []
        rest: list[str] = []
        for container in self.stack:
            if container.kind == "quote":
                first.append("▎ ")
                rest.append("▎ ")
                continue
            container.empty_start = False
            marker = container.marker
            if container.task:
                marker = "☑" if container.task == "x" else "☐"
                if not container.shown:
                    leaf.done = container.task
            first.append(" " * (len(marker) + 1) if container.shown else marker + " ")
            rest.append(" " * (len(marker) + 1))
            container.shown = True
        leaf.first, leaf.rest = tuple(first), tuple(rest)
        if self._previous is not None and not leaf.continued:
            stack, kind = self._previous
            common = 0
            for one, two in zip(stack, self.stack, strict=False):
                if one is not two:
                    break
                common += 1
            leaf.gap_prefix = leaf.rest[:common]
            apart = kind in ("heading", "fence", "table", "rule") or leaf.kind in (
                "heading",
                "fence",
                "table",
                "rule",
            )
            leaf.gap = self._gap or apart
        elif leaf.continued:
            leaf.first = leaf.rest
        self._gap = False
        self._previous = (list(self.stack), leaf.kind)
        if self._sibling is not None and self._sibling[0] >= len(self.stack):
            self._sibling = None
        self.leaf = leaf

    def _close_leaf(self) -> None:
        leaf = self.leaf
        if leaf is None:
            return
        self.leaf = None
        leaf.open = False
        if leaf.shape is not None:
            leaf.shape.settled = True
        self._previous = (self._previous[0] if self._previous else [], leaf.kind)
        self._last = leaf
        self.closed.append(leaf)

    def _fence_line(self, rest: str) -> None:
        leaf = self.leaf
        assert leaf is not None
        marks, indent = self._fence
        if re.fullmatch(r" {0,3}" + re.escape(marks[0]) + f"{{{len(marks)},}} *", rest):
            self._close_leaf()
            return
        lead = len(rest) - len(rest.lstrip(" "))
        self._code_line(rest[min(lead, indent) :])

    def _code_line(self, line: str) -> None:
        leaf = self.leaf
        assert leaf is not None
        if leaf.lines and (leaf.size + len(line) > FENCE_LIMIT or len(leaf.lines) >= FENCE_LINES):
            language = leaf.language
            self._close_leaf()
            leaf = Leaf("fence", [], language=language, continued=True)
            self._add(leaf)
        leaf.lines.append(line)
        leaf.size += len(line) + 1

    def _para_line(self, line: str) -> None:
        leaf = self.leaf
        assert leaf is not None
        if leaf.size + len(line) > PARA_LIMIT:
            self._close_leaf()
            self._add(Leaf("para", [line], size=len(line), continued=True))
            return
        leaf.lines.append(line)
        leaf.size += len(line) + 1

    def _continue(self, piece: str) -> None:
        leaf = self.leaf
        if leaf is None:
            self._add(Leaf("para", [piece], size=len(piece), continued=True))
        elif leaf.kind == "fence":
            self._code_line(piece)
        elif leaf.kind == "table":
            self._table_row(piece)
        else:
            self._close_leaf()
            self._add(Leaf("para", [piece], size=len(piece), continued=True))

    # Tables

    def _begins_table(self, rest: str, running: Leaf) -> bool:
        shape = shape_of(running.lines[-1], rest)
        if shape is None:
            return False
        if len(running.lines) > 1:
            running.lines.pop()
            self._close_leaf()
            self._add(Leaf("table", [], shape=shape))
        else:
            running.kind = "table"
            running.lines = []
            running.shape = shape
            running.size = 0
        return True

    def _table_row(self, line: str) -> None:
        leaf = self.leaf
        assert leaf is not None
        shape = leaf.shape
        assert shape is not None
        if len(leaf.lines) >= TABLE_ROWS:
            self._close_leaf()
            leaf = Leaf("table", [], shape=shape, continued=True)
            self._add(leaf)
        leaf.lines.append(line)
        if not shape.settled:
            shape.rows.append(split_row(line))
