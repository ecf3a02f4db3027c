"""Code to styled lines with Pygments, imported only when there is code to colour."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

from letta_tui.ui.text.lines import Span, slice_spans

WHOLE_LIMIT = 12_000
"""Characters up to which a closed fence is coloured as a whole; larger ones line by line."""
_LINE_LIMIT = 2_000  # a longer line is data, not code: regular expressions may be slow on it

_STYLES: tuple[tuple[str, str], ...] = (
    ("Token.Comment", "code.comment"),
    ("Token.Keyword.Constant", "code.number"),
    ("Token.Keyword.Type", "code.type"),
    ("Token.Keyword", "code.keyword"),
    ("Token.Literal.String.Doc", "code.comment"),
    ("Token.Literal.String", "code.string"),
    ("Token.Literal.Number", "code.number"),
    ("Token.Operator.Word", "code.keyword"),
    ("Token.Operator", "code.operator"),
    ("Token.Name.Function", "code.function"),
    ("Token.Name.Class", "code.type"),
    ("Token.Name.Tag", "code.keyword"),
    ("Token.Name.Attribute", "code.function"),
    ("Token.Name.Decorator", "code.function"),
    ("Token.Name.Builtin", "code.builtin"),
    ("Token.Name.Exception", "code.type"),
    ("Token.Name.Constant", "code.number"),
    ("Token.Name.Variable", "code.text"),
    ("Token.Generic.Deleted", "code.removed"),
    ("Token.Generic.Inserted", "code.added"),
    ("Token.Generic.Heading", "code.keyword"),
    ("Token.Generic.Subheading", "code.function"),
    ("Token.Generic.Prompt", "code.comment"),
)


@lru_cache(maxsize=512)
def _style(token: Any) -> str:
    name = str(token)
    for prefix, style in _STYLES:
        if name == prefix or name.startswith(prefix + "."):
            return style
    return "code.text"


@lru_cache(maxsize=64)
def lexer_for(language: str) -> Any:
    """Pygments' lexer for the word after a fence, or None: nothing is guessed."""
    name = language.strip().lower()
    if not name or name in {"text", "plain", "txt", "plaintext"} or len(name) > 40:
        return None
    try:
        return import_module("pygments.lexers").get_lexer_by_name(
            name, stripnl=False, stripall=False, ensurenl=False
        )
    except ValueError:  # pygments.util.ClassNotFound is one
        return None


def highlight(code: str, language: str) -> list[list[Span]]:
    """The lines of ``code`` (no line end at the end) as spans."""
    lexer = lexer_for(language)
    if lexer is None or any(len(line) > _LINE_LIMIT for line in code.split("\n")):
        return [[(line, "code.text")] for line in code.split("\n")]
    lines: list[list[Span]] = [[]]
    for token, value in lexer.get_tokens(code):
        style = _style(token)
        first, *others = value.split("\n")
        if first:
            lines[-1].append((first, style))
        for other in others:
            lines.append([(other, style)] if other else [])
    wanted = code.count("\n") + 1
    del lines[wanted:]
    lines.extend([] for _ in range(wanted - len(lines)))
    return lines


@lru_cache(maxsize=2048)
def highlight_line(line: str, language: str) -> tuple[Span, ...]:
    """One line on its own: what a fence looks like while it is still open."""
    return tuple(highlight(line, language)[0])


@lru_cache(maxsize=64)
def _highlight_block(lines: tuple[str, ...], language: str) -> list[list[Span]]:
    return highlight("\n".join(lines), language)


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A piece of code that is coloured only when some of it is painted."""

    lines: tuple[str, ...]
    language: str
    whole: bool  # coloured as a whole; otherwise line by line

    def spans(self, line: int, start: int, end: int) -> list[Span]:
        """Characters ``start`` to ``end`` of a line, coloured."""
        if self.whole:
            return slice_spans(_highlight_block(self.lines, self.language)[line], start, end)
        return slice_spans(highlight_line(self.lines[line], self.language), start, end)
