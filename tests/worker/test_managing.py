"""Conversations and agents that are hidden or deleted, and what is forgotten here with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from letta_tui.ledger.store import Ledger
from letta_tui.ledger.values import Place
from letta_tui.seam import intents as want
from letta_tui.transport.endpoint import server_key
from letta_tui.worker.config import Hands, Target, WorkerConfig
from tests.support.seat import Seat
from tests.worker.fake import AGENT, FakeServer

OTHER = "agent-other"


def words(seat: Seat, said: str) -> Callable[[], bool]:
    return lambda: any(said in notice for notice in seat.notices)


@pytest.mark.parametrize("forget", [False, True])
async def test_what_is_stored_here_is_forgotten_only_on_request(tmp_path: Path, forget: bool) -> None:
    server, ledger_path = FakeServer(), tmp_path / "ledger.sqlite3"
    key = server_key(server.endpoint)
    with Ledger.open(ledger_path, Hands().stamp) as ledger:
        for agent in (AGENT, OTHER):
            for conversation in ("conv-8", "conv-9"):
                ledger.remember_conversation(Place(key, agent, conversation), title="kept")
    config = WorkerConfig(ledger_path=ledger_path, endpoint=server.endpoint, target=Target(AGENT, "conv-1"))
    seat = await Seat.start(config, server.open).ready()
    seat.send(want.ManageConversation(AGENT, "conv-8", "delete", forget=forget))
    await seat.until(words(seat, "Forgotten here" if forget else "Archived and hidden"))
    seat.send(want.ManageAgent(OTHER, "delete", forget=forget))
    await seat.until(words(seat, "The agent is deleted."))
    await seat.quit()
    assert [c["conversation_id"] for c in server.commands("conversation_update")] == ["conv-8"]
    assert [c["agent_id"] for c in server.commands("agent_delete")] == [OTHER]
    with Ledger.open(ledger_path, Hands().stamp) as ledger:
        kept = {
            (known.place.agent_id, known.place.conversation_id)
            for known in ledger.conversations()
            if known.title == "kept"
        }
    assert ((AGENT, "conv-8") in kept) is not forget
    assert ((OTHER, "conv-8") in kept, (OTHER, "conv-9") in kept) == (not forget, not forget)
    assert (AGENT, "conv-9") in kept


async def test_the_agent_one_talks_to_is_not_deleted(tmp_path: Path) -> None:
    server = FakeServer()
    config = WorkerConfig(
        ledger_path=tmp_path / "ledger.sqlite3", endpoint=server.endpoint, target=Target(AGENT, "conv-1")
    )
    seat = await Seat.start(config, server.open).ready()
    seat.send(want.ManageAgent(AGENT, "delete", forget=True))
    await seat.until(words(seat, "open another one first"))
    await seat.quit()
    assert server.commands("agent_delete") == []
