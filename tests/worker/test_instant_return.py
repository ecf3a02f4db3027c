"""Back in a conversation: its last known rows at once, settled by the server's answer without a jump."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from letta_tui.conversation.reconcile import Policy
from letta_tui.seam.intents import LoadOlder, SaveDraft
from letta_tui.seam.updates import TranscriptChanged
from letta_tui.worker.config import Hands, Target, WorkerConfig
from tests.support.seat import Seat
from tests.worker.fake import AGENT, FakeServer

Start = Callable[..., Seat]


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
async def start(server: FakeServer, tmp_path: Path) -> AsyncIterator[Start]:
    opened: list[Seat] = []

    def open_(**changes: Any) -> Seat:
        values: dict[str, Any] = {
            "ledger_path": tmp_path / "ours" / "ledger.sqlite3",
            "cache_path": tmp_path / "cache" / "transcripts.sqlite3",
            "endpoint": server.endpoint,
            "policy": Policy(settle=0.1),
            "hands": Hands(random=lambda: 0.0),
            "target": Target(agent_id=AGENT, conversation_id="conv-1"),
            "page_size": 10,
        }
        seat = Seat.start(WorkerConfig(**{**values, **changes}), server.open)
        opened.append(seat)
        return seat

    yield open_
    for seat in opened:
        if seat.closed is None:
            await seat.quit()


def turn(server: FakeServer, name: str) -> None:
    """A turn that another client had."""
    server.rows.append(server.row("user_message", content=name, otid=f"otid-{name}"))
    server.rows.append(server.row("assistant_message", content=[{"type": "text", "text": f"re: {name}"}]))


def texts(server: FakeServer) -> list[str]:
    return [r["content"] if isinstance(r["content"], str) else r["content"][0]["text"] for r in server.rows]


async def visited(server: FakeServer, start: Start, turns: int = 20) -> None:
    """A window that was here once and went: the cache has ``turns`` turns."""
    for number in range(turns):
        turn(server, f"old {number}")
    seat = await start().ready()
    await seat.until(lambda: len(seat.rows) == 2 * turns, what="older pages")
    await seat.quit()


async def painted(seat: Seat) -> Seat:
    await seat.until(lambda: seat.rows, what="the cached rows")
    first = next(u for u in seat.seen if isinstance(u, TranscriptChanged) and u.splices)
    assert first.as_of is not None
    return seat


async def older(seat: Seat) -> None:
    count = len(seat.rows)
    seat.send(LoadOlder())
    await seat.until(lambda: len(seat.rows) > count, what="older rows")


@pytest.mark.parametrize("newer", [0, 3, 60, 400])
async def test_a_cache_older_than_the_history_settles_into_it(
    server: FakeServer, start: Start, newer: int
) -> None:
    await visited(server, start)
    for number in range(newer):
        turn(server, f"new {number}")
    server.refuse_connections = 1
    seat = await painted(start())
    keys = {row.text: row.key for row in seat.rows}
    await seat.ready()
    seat.look()
    after = [u for u in seat.seen if isinstance(u, TranscriptChanged)]
    assert not any(u.reset for u in after[after.index(next(u for u in after if u.as_of is not None)) + 1 :])
    assert after[-1].as_of is None
    for _ in range(10):
        if [row.text for row in seat.rows] == texts(server):
            break
        await older(seat)
    assert [row.text for row in seat.rows] == texts(server)
    assert {row.text: row.key for row in seat.rows if row.text in keys} == keys


async def test_much_newer_history_takes_the_place_of_the_cache(server: FakeServer, start: Start) -> None:
    await visited(server, start, 5)
    for number in range(3_000):
        turn(server, f"new {number}")
    seat = await painted(await start().ready())
    await seat.until(lambda: seat.rows[-1].text == "re: new 2999", what="settled")
    shown = [row.text for row in seat.rows]
    assert shown == texts(server)[-len(shown) :]
    assert len(server.commands("conversation_messages_list")) < 30


async def test_without_a_server_one_can_read_and_write(server: FakeServer, start: Start) -> None:
    await visited(server, start)
    server.refuse_connections = 10_000
    seat = await painted(start())
    assert [row.text for row in seat.rows] == texts(server)
    await seat.until(lambda: seat.connection and seat.connection.phase == "lost", what="no connection")
    seat.send(SaveDraft("half a thought"))
    await seat.quit()
    again = await painted(start())
    await again.until(lambda: again.drafts, what="the draft")
    assert again.drafts[0].text == "half a thought"


async def test_the_ledger_says_what_became_of_a_message_and_the_cache_does_not(
    server: FakeServer, start: Start
) -> None:
    await visited(server, start, 2)
    seat = await start().ready()
    server.lose_acks, server.take_input = 1, False
    lost = await seat.said("lost on its way")
    server.version = "0.99"  # of which it is not known whether it remembers ids
    await seat.until(lambda: (v := seat.view_of(lost)) and v.delivery == "unknown", what="unknown")
    await seat.quit()
    server.refuse_connections = 10_000
    again = await painted(start())
    row = await again.until(lambda: again.row_of(lost), what="the message")
    assert row is not None
    assert row.delivery == "unknown"
    view = await again.until(lambda: again.view_of(lost), what="its card")
    assert view is not None
    assert view.delivery == "unknown"
    assert {c.action: bool(c.risk) for c in view.choices}["send_new"]
    assert "resend" not in [c.action for c in view.choices]
    assert [r.text for r in again.rows] == [*texts(server), "lost on its way"]


async def test_a_message_delivered_after_the_cache_was_written_is_painted(
    server: FakeServer, start: Start, tmp_path: Path
) -> None:
    """A window that is killed stores nothing; the ledger knows what it sent."""
    await visited(server, start, 2)
    cache = (tmp_path / "cache" / "transcripts.sqlite3").read_bytes()
    seat = await start().ready()
    key = await seat.said("the last word")
    await seat.until(lambda: (row := seat.row_of(key)) and row.delivery == "delivered", what="delivered")
    await seat.rest()
    await seat.quit()
    (tmp_path / "cache" / "transcripts.sqlite3").write_bytes(cache)
    server.refuse_connections = 1
    again = await painted(start())
    assert [(r.text, r.delivery) for r in again.rows][-1] == ("the last word", "delivered")
    await again.ready()
    await again.until(lambda: [r.text for r in again.rows] == texts(server), what="settled")


@pytest.mark.parametrize(
    "rows",
    [
        "[",
        "5",
        "{}",
        '[{"kind": "user"}]',
        '[{"kind": "user", "key": 5, "text": "x"}]',
        '[{"kind": "user", "key": "k", "text": 7}]',
        '[{"kind": "user", "key": "k", "when": "noon"}]',
        '[{"kind": "user", "key": "k", "delivery": "lost in space"}]',
        '[{"kind": "user", "key": "k", "marks": [1]}]',
        '[{"kind": "tool", "key": "k", "tool": {"call_id": "c", "name": "n", "state": "odd"}}]',
        '[{"kind": "tool", "key": "k", "tool": {"call_id": "c", "name": "n", "result": []}}]',
        '[{"kind": "tool", "key": "k", "tool": 1}]',
    ],
)
async def test_rows_that_make_no_sense_are_not_painted(
    server: FakeServer, start: Start, tmp_path: Path, rows: str
) -> None:
    await visited(server, start, 1)
    with sqlite3.connect(tmp_path / "cache" / "transcripts.sqlite3") as file:
        file.execute("UPDATE transcripts SET rows = ?", (rows,))
    file.close()
    seat = await start().ready()
    assert [row.text for row in seat.rows] == texts(server)
    assert not any(isinstance(u, TranscriptChanged) and u.as_of is not None for u in seat.seen)


async def test_a_damaged_cache_is_made_anew(server: FakeServer, start: Start, tmp_path: Path) -> None:
    path = tmp_path / "cache" / "transcripts.sqlite3"
    await visited(server, start, 1)
    path.write_bytes(path.read_bytes()[:1000] + b"\xff" * 20_000)
    seat = await start().ready()
    assert [row.text for row in seat.rows] == texts(server)
    await seat.quit()
    await painted(start())


async def test_what_was_growing_when_the_window_went_is_taken_from_history(
    server: FakeServer, start: Start
) -> None:
    await visited(server, start, 1)
    seat = await start().ready()
    server.hold_turns = True
    await seat.said("hello")
    await seat.until(lambda: "re: hello" in seat.texts("assistant"), what="the first words")
    await seat.quit()
    server.rows[-1]["content"] = [{"type": "text", "text": "re: hello and more"}]
    server.active = ""
    again = await painted(start())
    await again.until(lambda: again.recovery and again.recovery.notes, what="that it ended meanwhile")
    assert [row.text for row in again.rows if row.kind != "away"] == texts(server)
    assert [row.marks for row in again.rows if row.kind == "assistant"] == [(), ()]


async def test_what_is_shown_without_a_connection_is_no_newer_than_that(
    server: FakeServer, start: Start
) -> None:
    await visited(server, start, 1)
    seat = await start().ready()
    server.refuse_connections = 10_000
    server.cut()
    await seat.until(lambda: seat.connection and seat.connection.phase == "lost", what="lost")
    lost = time.time()
    await seat.quit()
    again = await painted(start())
    (as_of,) = {u.as_of for u in again.seen if isinstance(u, TranscriptChanged) and u.as_of}
    assert as_of < lost
