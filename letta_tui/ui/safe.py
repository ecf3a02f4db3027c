"""Small pieces of foreign text (names, titles, arguments) made harmless for one place on the screen."""

from __future__ import annotations

import re
import unicodedata

# Direction overrides and isolates, and the invisible tag block: they make text look like other text.
_HIDDEN = re.compile("[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def _show(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


def safe(text: str) -> str:
    """``text`` with control characters made visible and direction tricks removed; newlines stay."""
    text = text.replace("\r\n", "\n").replace("\t", "    ")
    return _CONTROL.sub(_show, _HIDDEN.sub("", text))


def one_line(text: str, limit: int = 200) -> str:
    """``text`` on a single line of at most ``limit`` characters."""
    flat = " ".join(safe(text[: limit * 4]).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def cells(text: str) -> int:
    """Columns ``text`` takes in a terminal."""
    if text.isascii():
        return len(text)
    total = 0
    for char in text:
        if unicodedata.combining(char):
            continue
        total += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return total


def ago(seconds: float) -> str:
    """A length of time in one short word."""
    seconds = max(0.0, seconds)
    if seconds < 60:
        return "just now"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return ""


def elapsed(seconds: float) -> str:
    """Minutes and seconds of something that is still going on."""
    whole = max(0, int(seconds))
    if whole >= 3600:
        return f"{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"
    return f"{whole // 60}:{whole % 60:02}"
