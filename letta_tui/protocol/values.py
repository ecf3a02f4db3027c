"""Lenient reading of wire values: what has an unexpected shape reads as absent, and 0 is a number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]


def text(source: Json, name: str) -> str | None:
    value = source.get(name)
    return value if isinstance(value, str) else None


def number(source: Json, name: str) -> int | None:
    value = source.get(name)
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None


def flag(source: Json, name: str) -> bool:
    return source.get(name) is True


def mapping(source: Json, name: str) -> Json:
    value = source.get(name)
    return value if isinstance(value, Mapping) else {}


def mappings(source: Json, name: str) -> Iterator[Json]:
    value = source.get(name)
    if isinstance(value, list | tuple):
        for item in value:
            if isinstance(item, Mapping):
                yield item


def texts(source: Json, name: str) -> tuple[str, ...]:
    value = source.get(name)
    if isinstance(value, list | tuple):
        return tuple(item for item in value if isinstance(item, str))
    return ()


def content_text(content: object) -> str:
    """The text of a message's ``content``: a string, or a list of parts of which the text ones count."""
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        parts = (part.get("text") for part in content if isinstance(part, Mapping))
        return "".join(part for part in parts if isinstance(part, str))
    return ""
