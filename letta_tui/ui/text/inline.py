"""Inline Markdown to spans, by markdown-it's inline rules.

Links show where they go, images become their words and their address, HTML stays text. Reference
definitions are not resolved: what a link points to is always beside it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

from letta_tui.ui.text.lines import Span
from letta_tui.ui.text.sanitise import clean

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_SPECIAL = re.compile(r"[*_`\[\]!\\~&<]|https?:|www\.")
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"'`]+[^\s<>\"'`.,;:!?)\]}*_]")
_BREAKS = {0x0A: " ", 0x09: " "}
_OPENING = {"strong_open": "strong", "em_open": "em", "s_open": "strike", "link_open": ""}
_MARKER = re.compile(r"\\.|(`+)|(\*{1,3}|_{1,3}|~~)")


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    # Imported late: the first screen should not wait for it.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False})
    parser.enable("strikethrough")
    # "link" stays; reference definitions never reach this parser.
    return parser


def inline_lines(text: str, base: str = "text") -> list[list[Span]]:
    """The spans of ``text``, one list per line (a line end in the source is a line end on the screen)."""
    if _SPECIAL.search(text) is None:
        return [[(_trim(line), base)] for line in text.split("\n")]
    lines: list[list[Span]] = [[]]
    tokens = _parser().parseInline(text)
    for token in tokens:
        _collect(token.children or [], base, lines)
    return lines


def _trim(line: str) -> str:
    return line.rstrip(" \\") if line.endswith((" ", "\\")) else line


def _shown(content: str) -> str:
    """A token's text once more as data: character references may name what was cleaned away before."""
    return clean(content).translate(_BREAKS) if not content.isprintable() else content


def _collect(tokens: list[Token], base: str, lines: list[list[Span]]) -> None:
    flags: list[str] = []
    links: list[tuple[str, str]] = []  # (target, text so far)
    for token in tokens:
        kind = token.type
        style = "+".join((base, *flags)) if flags else base
        content = _shown(token.content)
        if kind == "text":
            _add_text(content, style, lines[-1], inside_link=bool(links))
            links = [(target, shown + content) for target, shown in links]
        elif kind in ("softbreak", "hardbreak"):
            lines.append([])
        elif kind == "code_inline":
            lines[-1].append((content, f"{style}+code"))
            links = [(target, shown + content) for target, shown in links]
        elif kind == "link_open":
            flags.append("link")
            links.append((str(token.attrGet("href") or ""), ""))
        elif kind == "link_close":
            if "link" in flags:
                flags.remove("link")
            target, shown = links.pop() if links else ("", "")
            if target and not _same_address(target, shown):
                target = _shown(target)
                after = "+".join((base, *flags, "target"))
                lines[-1].append((f" ({target})", after))
        elif kind == "image":
            words = content or "image"
            lines[-1].append((f"{words} ({_shown(str(token.attrGet('src') or ''))})", f"{style}+target"))
        elif kind in _OPENING:
            flags.append(_OPENING[kind])
        elif kind.endswith("_close"):
            name = _OPENING.get(kind.replace("_close", "_open"), "")
            if name in flags:
                flags.remove(name)
        elif content:
            lines[-1].append((content, style))


def _add_text(text: str, style: str, line: list[Span], inside_link: bool) -> None:
    if not text:
        return
    if inside_link or ("http" not in text and "www." not in text):
        line.append((text, style))
        return
    position = 0
    for match in _URL.finditer(text):
        if match.start() > position:
            line.append((text[position : match.start()], style))
        line.append((match.group(), f"{style}+link"))
        position = match.end()
    if position < len(text):
        line.append((text[position:], style))


def _same_address(target: str, shown: str) -> bool:
    def plain(address: str) -> str:
        address = address.strip()
        for scheme in ("https://", "http://", "mailto:"):
            address = address.removeprefix(scheme)
        return address.rstrip("/")

    # Percent encoding is markdown-it's doing; compare without it where that is all that differs.
    return plain(unquote(target)) == plain(unquote(shown))


def heal(text: str) -> str:
    """``text``, the unfinished end of a paragraph, with its open markers closed (or left out when bare).

    So "some **bold" is shown bold at once instead of flickering when the closing stars arrive.
    """
    opened: list[str] = []
    code = ""
    for match in _MARKER.finditer(text):
        ticks, marker = match.groups()
        if ticks:
            if not code:
                code = ticks
            elif code == ticks:
                code = ""
        elif marker and not code:
            _track(text, match.start(2), marker, opened)
    if code:
        bare = text.rstrip().endswith(code)
        return text.rstrip()[: -len(code)] if bare and text.count(code) % 2 else text + code
    body = text
    if any(len(marker) > 2 for marker in opened):
        return body
    closers = ""
    while opened:
        marker = opened.pop()
        stripped = body.rstrip()
        if not closers and stripped.endswith(marker) and not stripped.endswith("\\" + marker):
            body = stripped[: -len(marker)]
        else:
            closers += marker
    return body.rstrip() + closers if closers else body


def _track(text: str, at: int, marker: str, opened: list[str]) -> None:
    before = text[at - 1] if at else " "
    end = at + len(marker)
    after = text[end] if end < len(text) else ""
    if len(marker) < 3 and marker in opened and not before.isspace():
        del opened[len(opened) - 1 - opened[::-1].index(marker) :]
    elif marker[0] == "_" and (before.isalnum() or before == "_"):
        return
    elif (after and not after.isspace()) or (not after and before.isspace() and marker[0] != "~"):
        opened.append(marker)
