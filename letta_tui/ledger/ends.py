"""Ends of turns, noted by the keeper for people who were away: a file of its own in the ledger's folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from letta_tui.ledger.values import Clock, Place, Stamp


@dataclass(frozen=True, slots=True)
class NotedEnd:
    """``stop_reason`` is the server's word; ``client_message_ids`` the inputs its turn consumed."""

    place: Place
    turn_id: str
    stop_reason: str
    client_message_ids: tuple[str, ...]
    stamp: Stamp
    run_id: str = ""
    error: str = ""
    server_life: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)
    seq: int = 0


class Ends:
    """The file of noted ends; several processes may use it."""

    @classmethod
    def open(cls, path: Path, clock: Clock) -> Ends:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def note(self, end: NotedEnd) -> bool:
        """Record an end; ``False`` when this turn's end was already there."""
        raise NotImplementedError

    def since(self, seq: int = 0, place: Place | None = None) -> tuple[NotedEnd, ...]:
        raise NotImplementedError

    def forget(self, place: Place) -> None:
        raise NotImplementedError

    def trim(self, days: float = 30.0) -> int:
        raise NotImplementedError
