"""Lengths of time in a word or two."""

from __future__ import annotations


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
