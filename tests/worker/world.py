"""Windows on the scripted server, with clocks that a test moves and a keeper that can die."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from letta_tui.conversation.reconcile import Policy
from letta_tui.ledger.store import Ledger
from letta_tui.ledger.values import Place
from letta_tui.transport.endpoint import server_key
from letta_tui.worker.config import Hands, Target, WorkerConfig
from letta_tui.worker.ports import EndNote, KeeperTrouble, Variables, Whereabouts
from tests.support.seat import Seat
from tests.worker.fake import AGENT, FakeServer


class Clock:
    """Clocks that can be pushed ahead."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def hands(self) -> Hands:
        return Hands(
            random=lambda: 0.0,
            wall=lambda: time.time() + self.ahead,
            mono=lambda: time.monotonic() + self.ahead,
        )


class World:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "ours" / "ledger.sqlite3"
        self.server = FakeServer()
        self.clock = Clock()
        self.seats: list[Seat] = []

    async def window(self, **changes: Any) -> Seat:
        return await self.start(**changes).ready()

    def start(self, **changes: Any) -> Seat:
        values: dict[str, Any] = {
            "ledger_path": self.path,
            "endpoint": self.server.endpoint,
            "target": Target(agent_id=AGENT, conversation_id="conv-1"),
            "policy": Policy(settle=0.1),
            "hands": self.clock.hands(),
        }
        seat = Seat.start(WorkerConfig(**{**values, **changes}), self.server.open)
        self.seats.append(seat)
        return seat

    def ledger(self) -> Ledger:
        return Ledger.open(self.path, Hands().stamp)

    @property
    def place(self) -> Place:
        return Place(server_key(self.server.endpoint), AGENT, "conv-1")


class Keeper:
    """A keeper that can die; ``holds`` counts what it was asked."""

    def __init__(self, server: FakeServer) -> None:
        self.server = server
        self.alive = True
        self.holds = 0
        self.noted: list[EndNote] = []
        self.called: list[tuple[str, str, str]] = []
        self.named = Variables()

    async def endpoint(self) -> Whereabouts:
        return Whereabouts(self.server.endpoint)

    async def variables(self) -> Variables:
        return self.named

    async def hold(self, agent_id: str, conversation_id: str) -> bool:
        if not self.alive:
            raise KeeperTrouble("The keeper is gone.")
        self.holds += 1
        return True

    async def release(self, agent_id: str, conversation_id: str) -> None: ...

    async def call(self, agent_id: str, conversation_id: str, what: str) -> None:
        self.called.append((agent_id, conversation_id, what))

    async def restart_server(self) -> None: ...

    async def ends_since(self, agent_id: str, conversation_id: str, since: float) -> Sequence[EndNote]:
        return [note for note in self.noted if note.when > since]
