"""A growing Markdown text as lines: closed blocks are laid out once, only the open end again."""

from __future__ import annotations

import unicodedata

from letta_tui.ui.text.blocks import BlockParser
from letta_tui.ui.text.layout import layout
from letta_tui.ui.text.leaves import Leaf
from letta_tui.ui.text.lines import Line
from letta_tui.ui.text.sanitise import Sanitiser

LONG_LINE = 8_192
"""A source line longer than this is cut (at a space, if there is one) into pieces of about half of it."""


class MarkdownDocument:
    """Append text in pieces of any size; ask for its lines at a width.

    What is shown depends on the text alone, never on how it was cut into pieces.
    """

    def __init__(self, text: str = "") -> None:
        self._parser = BlockParser()
        self._sanitiser = Sanitiser()
        self._partial = ""  # the last line, not ended yet
        self._soft = False  # it goes on from a piece cut off before
        self._ended = False
        self._leaves: list[Leaf] = []
        self._width = 0
        self._lines: list[Line] = []  # of the closed leaves
        self._laid_out = 0  # closed leaves that are in _lines
        if text:
            self.append(text)

    def append(self, text: str) -> None:
        """Add raw text at the end."""
        self._take(self._sanitiser.feed(text))

    def end(self) -> None:
        """The text is complete: close what is open."""
        if self._ended:
            return
        self._take(self._sanitiser.close())
        self._ended = True
        if self._partial:
            self._line(self._partial)
            self._partial = ""
        self._parser.end()
        self._collect()

    def _take(self, text: str) -> None:
        if not text:
            return
        *whole, last = text.split("\n")
        for line in whole:
            self._partial += line
            self._cut()
            self._line(self._partial)
            self._partial = ""
            self._soft = False
        self._partial += last
        self._cut()
        self._collect()

    def _cut(self) -> None:
        while len(self._partial) > LONG_LINE:
            at = self._partial.rfind(" ", 1, LONG_LINE // 2) + 1
            if at <= 1 or not self._partial[:at].strip():
                at = LONG_LINE // 2
                while at < LONG_LINE and _joins(self._partial, at):
                    at += 1
            piece, self._partial = self._partial[:at], self._partial[at:]
            self._line(piece)
            self._soft = True

    def _line(self, line: str) -> None:
        self._parser.feed(line.expandtabs(4) if "\t" in line else line, self._soft)

    def _collect(self) -> None:
        if self._parser.closed:
            self._leaves += self._parser.closed
            self._parser.closed = []

    def lines(self, width: int) -> list[Line]:
        """All lines at ``width`` cells."""
        closed = self.closed_lines(width)
        tail = self.open_lines(width)
        return closed + tail if tail else list(closed)

    def closed_lines(self, width: int) -> list[Line]:
        """Lines that will not change at this width (the list itself: do not change it, it grows)."""
        if width != self._width:
            self._width = width
            self._lines = []
            self._laid_out = 0
        while self._laid_out < len(self._leaves):
            self._lines += layout(self._leaves[self._laid_out], width)
            self._laid_out += 1
        return self._lines

    def open_lines(self, width: int) -> list[Line]:
        """Lines of the open end, laid out anew: the price of a frame, bounded whatever the text is."""
        return [] if self._ended else self._tail(width)

    def _tail(self, width: int) -> list[Line]:
        if not self._partial and self._parser.leaf is None:
            return []
        parser = self._parser.copy()
        if self._partial:
            text = self._partial.expandtabs(4) if "\t" in self._partial else self._partial
            if not self._soft and _undecided(text, parser):
                text = ""
            if text:
                parser.feed(text, self._soft)
        lines: list[Line] = []
        for leaf in parser.closed:
            lines += layout(leaf, width)
        if parser.leaf is not None:
            lines += layout(parser.leaf, width)
        return lines


def _undecided(text: str, parser: BlockParser) -> bool:
    """A beginning that would flicker: it could become the underline of a heading or of a table."""
    leaf = parser.leaf
    return leaf is not None and leaf.kind == "para" and not text.strip(" -=|:") and len(text) < 80


def _joins(text: str, at: int) -> bool:
    """Whether the character at ``at`` belongs to the one before it."""
    return unicodedata.combining(text[at]) != 0 or text[at] in "\u200d\ufe0f" or text[at - 1] == "\u200d"
