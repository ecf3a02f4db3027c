"""``explain``: what happened to a message, from recorded evidence, as lines or plain data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from letta_tui.ledger.values import Attempt, Evidence, Send


def explain(send: Send, attempts: Iterable[Attempt], evidence: Iterable[Evidence]) -> tuple[str, ...]:
    """Lines of plain text in time order, with every identity. Free of glyphs and colours."""
    raise NotImplementedError


def explain_data(send: Send, attempts: Iterable[Attempt], evidence: Iterable[Evidence]) -> dict[str, Any]:
    """The same as plain JSON data."""
    raise NotImplementedError
