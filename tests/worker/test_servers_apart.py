"""Two servers whose agents and conversations have equal ids: nothing of the one is taken for the other's."""

from __future__ import annotations

from pathlib import Path

from letta_tui.ledger.store import Ledger
from letta_tui.seam.intents import SaveDraft
from letta_tui.transport.endpoint import direct, server_key
from letta_tui.worker.config import Hands, Target, WorkerConfig
from tests.support.seat import Seat
from tests.worker.fake import AGENT, FakeServer


async def test_equal_ids_on_two_servers_never_mix(tmp_path: Path) -> None:
    servers = [FakeServer(endpoint=direct(f"ws://127.0.0.1:{port}/ws")) for port in (9, 10)]

    def window(number: int) -> Seat:
        config = WorkerConfig(
            ledger_path=tmp_path / "ledger.sqlite3",
            cache_path=tmp_path / "transcripts.sqlite3",
            endpoint=servers[number].endpoint,
            target=Target(AGENT, "conv-1"),
        )
        return Seat.start(config, servers[number].open)

    first = await window(0).ready()
    key = await first.said("for the first alone")
    await first.until(lambda: (row := first.row_of(key)) and row.delivery == "delivered")
    first.send(SaveDraft("half a thought"))
    await first.quit()

    second = await window(1).ready()
    await second.said("for the second alone")
    await second.until(lambda: "for the second alone" in second.texts("user"))
    await second.quit()
    assert second.texts("user") == ["for the second alone"]
    assert not any("half a thought" in str(update) for update in second.seen)

    again = await window(0).ready()
    await again.until(lambda: again.texts("user") == ["for the first alone"])
    assert any("half a thought" in str(update) for update in again.seen)
    await again.quit()
    assert [[c["payload"]["messages"][0]["content"] for c in s.commands("input")] for s in servers] == [
        ["for the first alone"],
        ["for the second alone"],
    ]
    with Ledger.open(tmp_path / "ledger.sqlite3", Hands().stamp) as ledger:
        for server in servers:
            known = ledger.conversations(server_key(server.endpoint))
            assert [one.place.conversation_id for one in known] == ["conv-1"]
