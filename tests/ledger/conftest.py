"""A ledger on a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from letta_tui.ledger.store import Ledger
from letta_tui.ledger.values import Evidence, EvidenceKind, Place, Stamp

PLACE = Place("server-a", "agent-1", "local-conv-1")
OTHER = Place("server-b", "agent-2", "local-conv-1")
CONSENT = Evidence("person", payload={"choice": "resend", "risk": "safe_same_id"})


class FakeClock:
    """Both clocks start at 1,000 seconds and stand until moved; ``sleep`` moves only the wall clock."""

    def __init__(self) -> None:
        self.wall = 1_000.0
        self.mono = 1_000.0
        self.boot = "boot-1"

    def __call__(self) -> Stamp:
        return Stamp(self.wall, self.mono, self.boot)

    def advance(self, seconds: float) -> None:
        self.wall += seconds
        self.mono += seconds

    def sleep(self, seconds: float) -> None:
        self.wall += seconds


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "ledger.sqlite3"


@pytest.fixture
def ledger(path: Path, clock: FakeClock) -> Iterator[Ledger]:
    with Ledger.open(path, clock) as opened:
        yield opened


@pytest.fixture
def see(ledger: Ledger) -> Callable[..., str]:
    """``see(id, kind, **fields)`` observes evidence on connection "c1" and returns the delivery."""

    def observe(client_message_id: str, kind: EvidenceKind, **fields: object) -> str:
        values: dict[str, object] = {"connection_id": "c1", **fields}
        send = ledger.observe(client_message_id, Evidence(kind, **values))  # type: ignore[arg-type]
        assert send is not None
        return send.delivery

    return observe
