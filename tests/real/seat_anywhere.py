"""A window without a screen as a process of its own, at any kind of server; killed at a named point.

``python -m tests.real.seat_anywhere FOLDER PLACE CWD AGENT CONVERSATION STEPS``. PLACE is an endpoint as
JSON; STEPS as in ``tests.support.headless``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from letta_tui.transport.endpoint import Endpoint
from letta_tui.worker.config import Target, WorkerConfig
from letta_tui.worker.ports import Variables, Whereabouts
from tests.support.headless import play
from tests.support.seat import Seat


def place_of(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "kind": endpoint.kind,
        "url": endpoint.url,
        "identity": endpoint.identity,
        "token": endpoint.token,
        "token_file": str(endpoint.token_file) if endpoint.token_file else None,
        "ca_file": str(endpoint.ca_file) if endpoint.ca_file else None,
        "device_id": endpoint.device_id,
    }


def endpoint_of(place: dict[str, Any]) -> Endpoint:
    files = {name: Path(place[name]) if place[name] else None for name in ("token_file", "ca_file")}
    return Endpoint(**{**place, **files})


class Held:
    """Stands where the keeper is: the test itself holds the conversation."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    async def endpoint(self) -> Whereabouts:
        return Whereabouts(self._endpoint, life="1")

    async def variables(self) -> Variables:
        return Variables()

    async def hold(self, agent_id: str, conversation_id: str) -> bool:
        return True

    async def release(self, agent_id: str, conversation_id: str) -> None:
        return None

    async def call(self, agent_id: str, conversation_id: str, what: str) -> None:
        raise AssertionError("the test is no tmux")

    async def restart_server(self) -> None:
        raise AssertionError("nobody asked for that")

    async def ends_since(self, agent_id: str, conversation_id: str, since: float) -> tuple[Any, ...]:
        return ()


async def main() -> None:
    folder, place, cwd, agent, conversation, steps = sys.argv[1:]
    endpoint = endpoint_of(json.loads(place))
    kept = endpoint.kind == "embedded"
    config = WorkerConfig(
        ledger_path=Path(folder) / "ledger.sqlite3",
        endpoint=None if kept else endpoint,
        keeper=Held(endpoint) if kept else None,
        cwd=cwd,
        target=Target(agent_id=agent, conversation_id=conversation),
        window_id="headless",
    )
    await play(Seat.start(config), json.loads(steps))


if __name__ == "__main__":
    asyncio.run(main())
