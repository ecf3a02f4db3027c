"""A message, a ledger, and readings of a server, to be judged by ``reconcile``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from letta_tui.conversation.reconcile import (
    HistoryRead,
    HistoryRow,
    LoopRead,
    QueueRead,
    Reading,
    Verdict,
    reconcile,
)
from letta_tui.ledger.store import Ledger
from letta_tui.ledger.values import Anchor, Evidence, EvidenceKind, Send
from tests.ledger.conftest import PLACE, FakeClock

ANCHORED = Anchor("row-9", 9)
ANCHOR = HistoryRow("row-9", "", "assistant")
IDLE = LoopRead(2, True, processing=False)
BUSY = LoopRead(2, False, ("run-1",), processing=True)


class Bench:
    """One message "m1" on connection "c1", and readings of the server."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.ledger = Ledger.open(folder / "ledger.sqlite3", self.clock)

    def prepare(self, key: str = "m1", anchor: Anchor | None = ANCHORED) -> None:
        self.ledger.prepare(PLACE, "hello", key, anchor=anchor)

    def write(self, key: str = "m1", connection: str = "c1") -> None:
        attempt = self.ledger.begin_attempt(
            key, request_id=f"r-{key}", connection_id=connection, server_version="0.34.12"
        )
        self.ledger.written(attempt)
        self.clock.advance(1)

    def see(self, kind: EvidenceKind, key: str = "m1", **fields: Any) -> Send:
        values: dict[str, Any] = {"connection_id": "c1", "request_id": f"r-{key}", **fields}
        send = self.ledger.observe(key, Evidence(kind, **values))
        assert send is not None
        self.clock.advance(1)
        return send

    def reading(self, rows: tuple[HistoryRow, ...] = (), **changes: Any) -> Reading:
        if changes.get("connection_id", "c1") != "c1":
            self.clock.advance(3)  # what was written before the break has had its time to arrive
        fence = self.clock()
        self.clock.advance(0.1)
        reading = Reading(
            PLACE,
            "c1",
            self.clock(),
            server_version="0.34.12",
            fence=fence,
            second=True,
            queue=QueueRead(1, frozenset()),
            loop=IDLE,
            history=HistoryRead(3, (ANCHOR, *rows)),
        )
        return replace(reading, **changes)

    def judge(self, rows: tuple[HistoryRow, ...] = (), **changes: Any) -> Verdict:
        """Read, judge, store; and the same reading again says and stores nothing new."""
        reading = self.reading(rows, **changes)
        sends = self.ledger.sends()
        verdicts = reconcile(sends, reading)
        for send, verdict in zip(sends, verdicts, strict=True):
            self.store(send, verdict)
        for send, verdict in zip(self.ledger.sends(), reconcile(self.ledger.sends(), reading), strict=True):
            assert (verdict.delivery, verdict.outcome) == (send.delivery, send.outcome)
            assert verdict.evidence == ()
        self.clock.advance(1)
        return verdicts[0]

    def store(self, send: Send, verdict: Verdict) -> Send:
        return self.ledger.judge(
            send,
            delivery=verdict.delivery,
            outcome=verdict.outcome,
            evidence=verdict.evidence,
            sentence=verdict.sentence,
            terminal=verdict.terminal,
        )


def mine(number: int = 1, key: str = "m1") -> HistoryRow:
    return HistoryRow(f"ui-msg-{number}", key, "user")
