"""What a server that was killed has of a conversation on its disk, read between two of its lives."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.server import RealServer


@dataclass(frozen=True)
class Left:
    """A conversation on a dead server's disk: its record can be read, it has the message, and the answer."""

    readable: bool
    delivered: bool
    answered: bool


def left_by(server: RealServer, mark: str, answer: str) -> Iterator[tuple[str, Left]]:
    """By conversation; ``mark`` is in the message, ``answer`` all that was to be said (see ``plain``)."""
    for folder in (server.folder / "backend" / "conversations").iterdir():
        name = base64.urlsafe_b64decode(f"{folder.name}==").decode()
        try:
            json.loads((folder / "conversation.json").read_text())
            readable = True
        except (OSError, ValueError):
            readable = False
        rows = list(_rows(folder / "messages.jsonl"))
        delivered = any(row.get("role") == "user" and mark in plain(row.get("content")) for row in rows)
        said = any(row.get("role") == "assistant" and plain(row.get("content")) == answer for row in rows)
        yield name.removeprefix("conversation:"), Left(readable, delivered, delivered and said)


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    for line in file.read_text(errors="replace").splitlines() if file.exists() else ():
        with suppress(ValueError):  # cut off by the kill
            yield json.loads(line).get("message") or {}


def plain(content: Any) -> str:
    """The words of a message, with one space between."""
    parts = content if isinstance(content, list) else [{"text": content}]
    return " ".join(" ".join(str(part.get("text") or "") for part in parts).split())
