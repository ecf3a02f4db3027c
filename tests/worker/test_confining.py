"""A window on a confined server stays with its agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from letta_tui.seam import intents as want
from letta_tui.worker.config import Target, WorkerConfig
from letta_tui.worker.confining import refusal
from tests.support.seat import Seat
from tests.worker.fake import AGENT, FakeServer

OTHER = "agent-other"


@pytest.mark.parametrize(
    "intent",
    [
        want.OpenConversation(OTHER, "conv-9"),
        want.NewConversation(OTHER),
        want.ManageConversation(OTHER, "conv-9", "fork"),
        want.ManageAgent(OTHER, "delete"),
        want.CreateAgent("New", "a/model"),
    ],
)
def test_what_concerns_another_agent_is_refused(intent: want.Intent) -> None:
    assert f"confined to the memory of {AGENT}" in refusal(AGENT, intent)
    assert refusal("", intent) == ""


def test_its_own_agent_is_free() -> None:
    own = (want.OpenConversation(AGENT, "conv-2"), want.NewConversation(), want.ManageAgent(AGENT, "rename"))
    assert [refusal(AGENT, intent) for intent in own] == ["", "", ""]


async def test_the_conversation_stays_open_and_the_server_is_not_asked(tmp_path: Path) -> None:
    server = FakeServer()
    config = WorkerConfig(
        ledger_path=tmp_path / "ledger.sqlite3",
        endpoint=server.endpoint,
        target=Target(AGENT, "conv-1"),
        confined_to=AGENT,
    )
    seat = await Seat.start(config, server.open).ready()
    seat.send(want.OpenConversation(OTHER, "conv-9"))
    await seat.until(lambda: any("serves that agent alone" in words for words in seat.notices))
    key = await seat.said("still here")
    await seat.until(lambda: (row := seat.row_of(key)) and row.delivery in ("started", "delivered"))
    assert OTHER not in str(server.commands("runtime_start"))
    await seat.quit()


async def test_a_conversation_of_another_agent_named_at_the_start_is_not_opened(tmp_path: Path) -> None:
    server = FakeServer()
    config = WorkerConfig(
        ledger_path=tmp_path / "ledger.sqlite3",
        endpoint=server.endpoint,
        target=Target(AGENT, "conv-1"),
        confined_to=OTHER,
    )
    seat = Seat.start(config, server.open)
    asked = await seat.until(lambda: seat.question, what="a question")
    assert asked is not None
    assert "serves that agent alone" in asked.body
    assert server.commands("runtime_start") == []
    await seat.quit()
