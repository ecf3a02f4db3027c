"""The worker before a server that loses answers, lies, repeats, skips and falls silent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from letta_tui.conversation.reconcile import Policy
from letta_tui.ledger.store import Ledger
from letta_tui.seam.intents import LoadOlder, Reconnect, ResolveSend
from letta_tui.transport.connection import RefusedKind
from letta_tui.worker.config import Hands, Target, WorkerConfig
from tests.support.seat import Seat
from tests.worker.fake import AGENT, FakeServer

Start = Callable[..., Seat]
HERE = Target(agent_id=AGENT, conversation_id="conv-1")


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
async def start(server: FakeServer, tmp_path: Path) -> AsyncIterator[Start]:
    """Start a window; every window is closed at the end. The folder is the same for all of them."""
    seats: list[Seat] = []

    def begin(**changes: Any) -> Seat:
        values: dict[str, Any] = {
            "ledger_path": tmp_path / "ours" / "ledger.sqlite3",
            "endpoint": server.endpoint,
            "target": HERE,
            "policy": Policy(settle=0.1),
            "hands": Hands(random=lambda: 0.0),
        }
        seat = Seat.start(WorkerConfig(**{**values, **changes}), server.open)
        seats.append(seat)
        return seat

    yield begin
    for seat in seats:
        if seat.closed is None:
            await seat.quit()


async def test_an_answer_that_was_lost_after_the_input_was_taken_runs_nothing_twice(
    server: FakeServer, start: Start
) -> None:
    seat = await start().ready()
    server.lose_acks = 1
    key = await seat.said("hello")
    await seat.until(lambda: len(server.connections) == 2, what="a new connection")
    await seat.until(lambda: (row := seat.row_of(key)) and row.delivery == "delivered", what="delivered")
    assert server.ran == {key: 1}
    assert len(server.commands("input")) == 1
    assert seat.recovery is None or not seat.recovery.sends


@pytest.mark.parametrize("deduplicates", [True, False])
async def test_an_input_that_was_lost_is_offered_and_runs_once_when_the_person_says_so(
    server: FakeServer, start: Start, deduplicates: bool
) -> None:
    server.deduplicates = deduplicates
    seat = await start().ready()
    server.lose_acks, server.take_input = 1, False
    key = await seat.said("hello")
    card = await seat.until(
        lambda: seat.recovery and not seat.recovery.checking and seat.recovery.sends, what="an offer"
    )
    assert "resend" in [choice.action for choice in card[0].choices]
    assert server.ran == {}, "nothing is sent again by itself"
    assert len(server.commands("input")) == 1

    seat.send(ResolveSend(key, "resend"))
    await seat.until(lambda: (row := seat.row_of(key)) and row.delivery == "delivered", what="delivered")
    assert server.ran == {key: 1}


async def test_a_message_behind_one_in_doubt_is_held_and_goes_when_that_is_settled(
    server: FakeServer, start: Start
) -> None:
    seat = await start().ready()
    server.lose_acks, server.take_input = 1, False
    first = await seat.said("first")
    await seat.until(lambda: seat.recovery and not seat.recovery.checking and seat.recovery.sends)
    second = await seat.said("second")
    item = await seat.until(lambda: next((i for i in seat.queue if i.client_message_id == second), None))
    assert item.held_here
    assert item.note
    assert server.ran == {}
    seat.send(ResolveSend(first, "resend"))
    await seat.until(lambda: (row := seat.row_of(second)) and row.delivery == "delivered")
    assert seat.texts("user") == ["first", "second"]
    assert server.ran == {first: 1, second: 1}


async def test_nothing_is_sent_when_the_server_opened_another_conversation(
    server: FakeServer, start: Start
) -> None:
    server.answer_runtime = {"agent_id": AGENT, "conversation_id": "conv-other"}
    seat = start()
    question = await seat.until(lambda: seat.question, what="a question")
    assert "conv-other" in question.body
    token = seat.say("to the wrong place")
    settled = await seat.until(lambda: seat.settled.get(token))
    assert not settled.ok
    assert server.commands("input") == []


async def test_an_input_that_failed_before_any_run_is_failed_and_its_id_is_spent(
    server: FakeServer, start: Start
) -> None:
    server.loop_error = "The model is on strike."
    seat = await start().ready()
    key = await seat.said("hello")
    view = await seat.until(lambda: (v := seat.view_of(key)) and v.delivery == "failed" and v, what="failed")
    assert "on strike" in view.explanation
    assert "resend" not in [choice.action for choice in view.choices]
    server.loop_error = ""
    seat.send(ResolveSend(key, "send_new"))
    await seat.until(lambda: seat.texts("assistant") == ["re: hello"])
    assert list(server.ran.values()) == [1]
    assert key not in server.ran


async def test_a_wedged_conversation_is_recognised(server: FakeServer, start: Start) -> None:
    server.loop_error = "Conversation conv-1 already has an active run (local-run-3)"
    seat = await start().ready()
    await seat.said("hello")
    question = await seat.until(lambda: seat.question, what="a question")
    assert [choice.action for choice in question.choices] == ["fork", "keep"]


async def test_a_gap_is_answered_by_one_sync_that_stages_no_denials_and_by_history(
    server: FakeServer, start: Start
) -> None:
    seat = await start().ready()
    before = len(server.commands("sync"))
    server.rows.append(server.row("assistant_message", content=[{"type": "text", "text": "missed"}]))
    server.skip_seq = 3
    server.replay(server.connections[-1])
    await seat.until(lambda: "missed" in seat.texts("assistant"), what="the missed text")
    syncs = server.commands("sync")[before:]
    assert syncs
    assert not any(command["recover_approvals"] for command in syncs)


async def test_a_refused_port_is_told_and_tried_again(server: FakeServer, start: Start) -> None:
    server.refuse_connections = 2
    seat = start()
    await seat.until(lambda: seat.connection is not None and seat.connection.phase == "lost")
    assert seat.connection is not None
    assert "Nothing listens" in seat.connection.words
    assert seat.connection.retry_at is not None
    await seat.ready()


async def test_what_is_written_while_the_connection_is_lost_waits_and_goes(
    server: FakeServer, start: Start
) -> None:
    seat = await start().ready()
    server.refuse_connections = 1
    server.cut()
    await seat.until(lambda: seat.connection is not None and seat.connection.phase == "lost")
    key = await seat.said("held")
    assert (await seat.until(lambda: seat.queue))[0].held_here
    await seat.until(lambda: (row := seat.row_of(key)) and row.delivery == "delivered")
    assert server.ran == {key: 1}


async def test_what_was_not_sent_before_the_program_ended_is_only_offered(
    server: FakeServer, start: Start, tmp_path: Path
) -> None:
    first = await start().ready()
    server.refuse_connections = 1_000
    server.cut()
    await first.until(lambda: first.connection is not None and first.connection.phase == "lost")
    key = await first.said("for later")
    await first.quit()
    server.refuse_connections = 0
    second = await start(window_id="second").ready()
    card = await second.until(lambda: second.recovery and second.recovery.sends, what="an offer")
    assert card[0].text == "for later"
    assert server.ran == {}
    assert second.queue == ()
    second.send(ResolveSend(key, "edit"))
    await second.until(lambda: [d.text for d in second.drafts] == ["for later"])
    await second.until(lambda: second.recovery is None)
    with Ledger.open(tmp_path / "ours" / "ledger.sqlite3", Hands().stamp) as ledger:
        send = ledger.send(key)
        assert send is not None
        assert send.delivery == "discarded"
    assert server.ran == {}


@pytest.mark.parametrize("refusal", ["silent", "not_letta", "not_found", "tls"])
async def test_what_a_tunnel_answers_while_its_end_is_away_is_waited_out(
    server: FakeServer, start: Start, refusal: RefusedKind
) -> None:
    seat = await start().ready()
    server.refusal, server.refuse_connections = refusal, 2
    server.cut()
    await seat.until(lambda: seat.connection is not None and seat.connection.phase == "lost", what="lost")
    await seat.ready()
    assert server.refuse_connections == 0


async def test_an_address_that_never_was_one_is_not_tried_again_and_again(
    server: FakeServer, start: Start
) -> None:
    server.refusal, server.refuse_connections = "not_letta", 1
    seat = start()
    await seat.until(lambda: seat.connection is not None and seat.connection.phase == "failed", what="failed")
    seat.send(Reconnect())
    await seat.ready()


async def test_an_input_without_an_acknowledgement_is_found_in_history(
    server: FakeServer, start: Start
) -> None:
    server.mute_acks = True
    seat = await start().ready()
    key = await seat.said("hello")
    await seat.until(lambda: (row := seat.row_of(key)) and row.delivery == "delivered")
    assert server.ran == {key: 1}


async def test_a_long_history_is_painted_from_its_newest_page_and_all_of_it_can_be_reached(
    server: FakeServer, start: Start
) -> None:
    server.rows = [
        server.row("user_message" if n % 2 == 0 else "assistant_message", content=f"row {n}", otid=f"o{n}")
        for n in range(10_000)
    ]
    seat = await start().ready()
    assert seat.rows[-1].text == "row 9999"
    assert len(server.commands("conversation_messages_list")) <= 6
    for _ in range(100):
        if seat.rows[0].text == "row 0":
            break
        oldest = seat.rows[0].key
        seat.send(LoadOlder())
        await seat.until(lambda oldest=oldest: seat.rows[0].key != oldest, what="older rows")
    assert [row.text for row in seat.rows] == [f"row {n}" for n in range(10_000)]


@pytest.mark.parametrize(("size", "pages"), [(10, 8), (10_000, 30)])
async def test_the_way_to_the_beginning_takes_few_pages_unless_the_rows_are_long(
    server: FakeServer, start: Start, size: int, pages: int
) -> None:
    server.rows = [
        server.row("user_message", content=f"row {n} " + "x" * size, otid=f"o{n}") for n in range(2_500)
    ]
    seat = await start().ready()
    before = len(server.commands("conversation_messages_list"))
    while not seat.rows[0].text.startswith("row 0 "):
        oldest = seat.rows[0].key
        seat.send(LoadOlder(to_start=True))
        await seat.until(lambda oldest=oldest: seat.rows[0].key != oldest, what="older rows")
    asked = server.commands("conversation_messages_list")[before:]
    assert len(asked) <= pages
    longest = max(command["query"]["limit"] for command in asked)
    assert longest > 1_000 if size == 10 else longest < 200


async def test_two_runs_of_one_message_are_told_once(server: FakeServer, start: Start) -> None:
    seat = await start().ready()
    server.hold_turns = True
    key = await seat.said("hello")
    await seat.until(lambda: (row := seat.row_of(key)) and row.delivery == "started")
    # The server dies, and runs what it had journaled once more when it is back.
    server.refuse_connections = 1
    server.cut()
    server.active = ""
    server.hold_turns = False
    server.rows.append(server.row("user_message", content="hello", otid=key))
    server.rows.append(server.row("assistant_message", content=[{"type": "text", "text": "again"}]))
    notes = await seat.until(lambda: seat.recovery and seat.recovery.notes, what="a note")
    assert notes.count("The server restarted and ran one message twice.") == 1
