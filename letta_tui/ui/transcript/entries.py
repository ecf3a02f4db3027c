"""The rows as the view keeps them: what they say, how they are folded, and their lines at a width."""

from __future__ import annotations

from letta_tui.seam.state import Row
from letta_tui.ui.text.document import MarkdownDocument
from letta_tui.ui.text.lines import BLANK, Line
from letta_tui.ui.transcript import rows as draw

_COMPACT = frozenset({"tool", "reasoning"})
_NONE: list[Line] = []


class Entry:
    """One row on the screen. Its lines are made when asked for and kept until something changes."""

    __slots__ = (
        "_body",
        "_document",
        "_key",
        "_pieces",
        "_tail",
        "_text",
        "everything",
        "folded",
        "margin",
        "ordinal",
        "row",
    )

    def __init__(self, row: Row, ordinal: int) -> None:
        self.row = row
        self.ordinal = ordinal  # a place in the selection's space of lines; never changes
        self.folded = draw.folds(row)
        self.everything = False
        self.margin = 0
        self._text = row.tool.result if row.tool is not None else row.text
        self._pieces: list[str] = []
        self._document: MarkdownDocument | None = None
        self._key: tuple[object, ...] | None = None
        self._body: list[Line] = _NONE
        self._tail: list[Line] = _NONE

    @property
    def text(self) -> str:
        """The row's text so far (of a tool: its result)."""
        if self._pieces:
            self._text += "".join(self._pieces)
            self._pieces = []
        return self._text

    @property
    def source(self) -> str:
        return draw.source(self.row, self.text)

    def append(self, text: str) -> None:
        self._pieces.append(text)
        if self._document is not None:
            self._document.append(text)
        self._key = None

    def replace(self, row: Row) -> None:
        """The same row with other contents; a text that only grew keeps what was laid out."""
        old, was_live = self.text, self.row.live
        self.row = row
        new = row.tool.result if row.tool is not None else row.text
        if self._document is not None:
            if row.kind != "assistant" or not new.startswith(old) or (not was_live and new != old):
                self._document = None
            elif len(new) > len(old):
                self._document.append(new[len(old) :])
        self._text = new
        self._key = None

    def lay_out(self, width: int, ascii_only: bool) -> int:
        """Make the lines for ``width`` cells if they are not there; their number, the margin included."""
        key = (width, self.folded, self.everything, ascii_only)
        if key != self._key:
            self._make(width, ascii_only)
            self._key = key
        return self.height

    @property
    def height(self) -> int:
        return self.margin + len(self._body) + len(self._tail)

    @property
    def laid_out(self) -> bool:
        return self._key is not None

    def forget(self) -> None:
        """Drop the lines; they can be made again."""
        self._key = None
        self._body = self._tail = _NONE
        self._document = None

    def line(self, number: int) -> Line:
        number -= self.margin
        if number < 0:
            return BLANK
        if number < len(self._body):
            return self._body[number]
        number -= len(self._body)
        return self._tail[number] if number < len(self._tail) else BLANK

    def estimate(self, width: int) -> int:
        """Lines it will probably take."""
        if self.folded or self.row.kind == "notice":
            return self.margin + 1
        text = self._text
        return self.margin + 1 + text.count("\n") + len(text) // max(8, width)

    def _make(self, width: int, ascii_only: bool) -> None:
        row, kind = self.row, self.row.kind
        self._tail = draw.mark_lines(row, width) if row.marks else _NONE
        if kind == "assistant":
            document = self._document
            if document is None:
                document = self._document = MarkdownDocument(self.text)
            if not row.live:
                document.end()
            self._body = document.closed_lines(width)
            self._tail = document.open_lines(width) + self._tail
            return
        text = self.text
        if kind == "user":
            self._body = draw.user_lines(row, text, width, ascii_only)
        elif kind == "tool" and row.tool is not None:
            self._body = draw.tool_lines(row.tool, text, width, self.folded, self.everything, ascii_only)
        elif kind == "reasoning":
            self._body = draw.reasoning_lines(row, text, width, self.folded, ascii_only)
        elif kind == "summary":
            self._body = draw.summary_lines(row, text, width, self.folded, ascii_only)
        else:
            self._body = draw.remark_lines(row, text, width)


def margin_between(before: Row | None, row: Row) -> int:
    """Blank lines above ``row``: tools and thoughts stand together, everything else apart."""
    if before is None:
        return 0
    return 0 if before.kind in _COMPACT and row.kind in _COMPACT else 1
