"""The transcript cache: something to look at before the server answers, and nothing that decides anything."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from letta_tui.conversation.reconcile import Policy
from letta_tui.ledger.values import Place
from letta_tui.seam.intents import ForgetConversation, Redact
from letta_tui.seam.state import Row, ToolView
from letta_tui.seam.updates import TranscriptChanged
from letta_tui.transport.endpoint import server_key
from letta_tui.worker.cache import MOST_ROWS, Cache
from letta_tui.worker.config import Hands, Target, WorkerConfig
from tests.support.seat import Seat
from tests.worker.fake import AGENT, FakeServer

PLACE = Place("direct:ws://x", "agent", "conv")


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
async def seats(server: FakeServer, tmp_path: Path) -> AsyncIterator[Any]:
    opened: list[Seat] = []

    def start(**changes: Any) -> Seat:
        values: dict[str, Any] = {
            "ledger_path": tmp_path / "ours" / "ledger.sqlite3",
            "cache_path": tmp_path / "cache" / "transcripts.sqlite3",
            "endpoint": server.endpoint,
            "policy": Policy(settle=0.1),
            "hands": Hands(random=lambda: 0.0),
        }
        seat = Seat.start(WorkerConfig(**{**values, **changes}), server.open)
        opened.append(seat)
        return seat

    yield start
    for seat in opened:
        if seat.closed is None:
            await seat.quit()


async def test_the_last_known_transcript_is_there_before_the_connection(
    server: FakeServer, seats: Any
) -> None:
    first = await seats(target=Target(agent_id=AGENT, conversation_id="conv-1")).ready()
    await first.said("hello")
    await first.until(lambda: first.texts("assistant") == ["re: hello"])
    await first.rest()
    rows = [(row.kind, row.text, row.delivery) for row in first.rows]
    await first.quit()

    server.refuse_connections = 1_000
    second = seats(window_id="second")
    await second.until(lambda: [(row.kind, row.text, row.delivery) for row in second.rows] == rows)
    painted = [u for u in second.seen if isinstance(u, TranscriptChanged) and u.as_of is not None]
    assert painted
    key = await second.said("while away")  # kept, and sent when there is a connection
    server.refuse_connections = 0
    await second.ready()
    await second.until(lambda: (row := second.row_of(key)) and row.delivery == "delivered")
    await second.rest()
    assert [row.text for row in second.rows] == ["hello", "re: hello", "while away", "re: while away"]


async def test_an_erased_message_is_not_in_the_cache(server: FakeServer, seats: Any, tmp_path: Path) -> None:
    """Not after the erasing, not after the next turn, and not after leaving."""
    first = await seats(target=Target(agent_id=AGENT, conversation_id="conv-1")).ready()
    key = await first.said("my secret word")
    await first.until(lambda: first.texts("assistant"))
    await first.rest()
    first.send(Redact(key))
    await first.until(lambda: first.notices)
    cache = tmp_path / "cache" / "transcripts.sqlite3"
    assert b"my secret word" not in cache.read_bytes()
    await first.said("something else")
    await first.until(lambda: b"re: something else" in cache.read_bytes())
    assert b'"my secret word' not in cache.read_bytes()
    await first.quit()
    assert b'"my secret word' not in cache.read_bytes()


async def test_a_forgotten_conversation_is_not_kept_again_by_leaving_it(
    server: FakeServer, seats: Any, tmp_path: Path
) -> None:
    first = await seats(target=Target(agent_id=AGENT, conversation_id="conv-1")).ready()
    await first.said("my secret word")
    await first.until(lambda: first.texts("assistant"))
    await first.rest()
    first.send(ForgetConversation(AGENT, "conv-1"))
    await first.until(lambda: first.notices)
    await first.quit()
    assert b"secret" not in (tmp_path / "cache" / "transcripts.sqlite3").read_bytes()


async def test_what_another_window_forgot_is_not_kept_again(
    server: FakeServer, seats: Any, tmp_path: Path
) -> None:
    cache = Cache(tmp_path / "cache" / "transcripts.sqlite3")
    place = Place(server_key(server.endpoint), AGENT, "conv-1")
    here, there = [
        await seats(target=Target(agent_id=AGENT, conversation_id="conv-1"), window_id=name).ready()
        for name in ("here", "there")
    ]
    await here.said("my secret word")
    for seat in (here, there):
        await seat.until(lambda seat=seat: seat.texts("assistant"))
        await seat.rest()
    here.send(ForgetConversation(AGENT, "conv-1"))
    await here.until(lambda: here.notices)
    await there.said("something else")
    await there.until(lambda: "re: something else" in there.texts("assistant"))
    await there.rest()
    for seat in (here, there):
        await seat.quit()
    assert cache.load(place) is None


async def test_a_copy_that_cannot_be_erased_is_named(server: FakeServer, seats: Any, tmp_path: Path) -> None:
    path = tmp_path / "no file"
    path.mkdir()
    target = Target(agent_id=AGENT, conversation_id="conv-1")
    first = await seats(target=target, cache_path=path).ready()
    key = await first.said("my secret word")
    await first.until(lambda: first.texts("assistant"))
    await first.rest()
    first.send(Redact(key))
    await first.until(lambda: any(str(path) in notice for notice in first.notices), what="its name")


def test_what_was_read_before_an_erasing_is_not_written_after_it(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "c.sqlite3")
    rows = [Row("user:1", "user", "a secret", when=1.0, client_message_id="1", delivery="delivered")]
    read = cache.erasings()
    cache.forget(PLACE)  # while the rows are on their way
    cache.store(PLACE, rows, 12.0, read)
    assert cache.load(PLACE) is None
    cache.store(PLACE, rows, 13.0, cache.erasings())
    assert cache.load(PLACE) == (tuple(rows), 13.0)


@pytest.mark.parametrize("how", ["another window", "a command"])
def test_nor_when_somebody_else_erased_it(tmp_path: Path, how: str) -> None:
    path = tmp_path / "c.sqlite3"
    rows = [Row("user:1", "user", "a secret", when=1.0, client_message_id="1", delivery="delivered")]
    here = Cache(path)
    here.store(PLACE, rows, 11.0)
    read = here.erasings()
    if how == "another window":
        Cache(path).forget(PLACE)
    else:
        path.unlink()  # `letta-tui ledger redact`
    here.store(PLACE, rows, 12.0, read)
    assert here.load(PLACE) is None
    assert b"a secret" not in path.read_bytes()


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "c.sqlite3")
    rows = [
        Row("user:1", "user", "hello", when=1.0, client_message_id="1", delivery="delivered", outcome="done"),
        Row("tool:2", "tool", tool=ToolView("2", "Bash", '{"a": 1}', "done", "out", "you", "", 0.5)),
        Row("assistant:3", "assistant", "reply", marks=("a mark",)),
    ]
    cache.store(PLACE, rows, 12.0, cache.erasings())
    assert cache.load(PLACE) == (tuple(rows), 12.0)
    assert cache.load(Place("other", "agent", "conv")) is None
    cache.forget(PLACE)
    assert cache.load(PLACE) is None


def test_only_the_newest_rows_are_kept(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "c.sqlite3")
    cache.store(PLACE, [Row(f"assistant:{n}", "assistant", str(n)) for n in range(MOST_ROWS + 50)], 1.0)
    found = cache.load(PLACE)
    assert found is not None
    assert [row.text for row in found[0]] == [str(n) for n in range(50, MOST_ROWS + 50)]


def test_a_damaged_or_missing_cache_is_no_cache(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite3"
    path.write_bytes(b"this is no database" * 100)
    assert Cache(path).load(PLACE) is None
    Cache(path).store(PLACE, [Row("a", "assistant", "x")], 1.0)
    assert Cache(None).load(PLACE) is None
