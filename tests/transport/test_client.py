"""Requests and events, over a small server that misbehaves on demand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection

from letta_tui.protocol import Runtime, commands
from letta_tui.transport import Client, ConnectionLost, Gap, GapSync, NoAnswer, Refused, SaidNo, identify
from letta_tui.transport.direct import open_socket
from tests.support.server import until
from tests.transport.fake_server import FakeServer, answer_plainly

RUNTIME = Runtime("agent-1", "conv-1")


async def never(socket: ServerConnection, command: dict[str, Any]) -> None:
    """Take every command and say nothing."""


async def join(server: FakeServer, **options: Any) -> Client:
    client = Client(await open_socket(server.url, None), **options)
    await server.joined.wait()
    return client


@pytest.fixture
async def silent() -> AsyncIterator[FakeServer]:
    async with FakeServer(never) as server:
        yield server


def event(seq: int, key: str | None = None, kind: str = "update_queue") -> dict[str, Any]:
    return {
        "type": kind,
        "runtime": RUNTIME.wire(),
        "event_seq": seq,
        "idempotency_key": key or f"{kind}:{seq}",
        "queue": [],
        "removed": [],
    }


async def test_answers_reach_who_asked_in_whatever_order(silent: FakeServer) -> None:
    client = await join(silent)
    first = asyncio.create_task(client.request(commands.sync(RUNTIME, request_id="a")))
    second = asyncio.create_task(client.request(commands.sync(RUNTIME, request_id="b")))
    await until(lambda: len(silent.heard) == 2)
    await silent.say({"type": "sync_response", "request_id": "b", "success": True, "n": 2})
    await silent.say({"type": "sync_response", "request_id": "a", "success": True, "n": 1})
    assert ((await first).raw["n"], (await second).raw["n"]) == (1, 2)
    await client.close()


async def test_an_answer_of_another_type_late_or_repeated_is_ignored(silent: FakeServer) -> None:
    client = await join(silent)
    waiting = asyncio.create_task(client.request(commands.sync(RUNTIME, request_id="a")))
    await until(lambda: silent.heard)
    await silent.say({"type": "abort_message_response", "request_id": "a", "success": True})
    await silent.say({"type": "sync_response", "request_id": "other", "success": True})
    await silent.say({"type": "sync_response", "request_id": "a", "success": True, "n": 1})
    await silent.say({"type": "sync_response", "request_id": "a", "success": False, "n": 2})
    assert (await waiting).raw["n"] == 1
    with pytest.raises(NoAnswer, match="did not answer sync"):
        await client.request(commands.sync(RUNTIME, request_id="c"), timeout=0.05)
    await silent.say({"type": "sync_response", "request_id": "c", "success": True})
    await until(lambda: client.counts.stray_answers == 4)
    assert client.counts.answers == 1
    await client.close()


async def test_a_request_id_is_made_when_none_is_given(silent: FakeServer) -> None:
    client = await join(silent, new_id=iter(["n1", "n2"]).__next__)
    with pytest.raises(NoAnswer):
        await client.request(commands.sync(RUNTIME), timeout=0.05)
    assert silent.heard[0]["request_id"] == "n1"
    with pytest.raises(ValueError, match="no answer"):
        await client.request(commands.change_device_state(RUNTIME, mode="standard"))
    waiting = asyncio.create_task(client.request(commands.sync(RUNTIME, request_id="same")))
    await until(lambda: len(silent.heard) == 2)
    with pytest.raises(ValueError, match="in use"):
        await client.request(commands.sync(RUNTIME, request_id="same"))
    await client.close()
    with pytest.raises(ConnectionLost):
        await waiting


async def test_a_refusal_is_told_in_the_servers_words() -> None:
    async def refuse(socket: ServerConnection, command: dict[str, Any]) -> None:
        answer = {"type": f"{command['type']}_response", "success": False, "error": "Agent x not found"}
        await socket.send(json.dumps({**answer, "request_id": command["request_id"]}))

    async with FakeServer(refuse) as server:
        client = await join(server)
        with pytest.raises(SaidNo, match="Agent x not found") as caught:
            await client.ask(commands.agent_retrieve("x"))
        assert caught.value.command == "agent_retrieve"
        frame = await client.request(commands.agent_retrieve("x"))
        assert frame.answer is not None
        assert not frame.answer.success
        await client.close()


@pytest.mark.parametrize("how", ["cut", "goodbye", "here"])
async def test_every_waiter_fails_at_once_when_the_connection_goes(silent: FakeServer, how: str) -> None:
    client = await join(silent)
    waiting = [asyncio.create_task(client.request(commands.sync(RUNTIME), timeout=60)) for _ in range(5)]
    events = asyncio.create_task(client.next_event())
    await until(lambda: len(silent.heard) == 5)
    if how == "cut":
        silent.sockets[0].transport.abort()
    elif how == "goodbye":
        await silent.sockets[0].close(1001)
    else:
        await client.close()
    async with asyncio.timeout(30):
        for outcome in await asyncio.gather(*waiting, events, return_exceptions=True):
            assert isinstance(outcome, ConnectionLost)
            assert outcome.reason
        lost = await client.wait_lost()
    assert client.lost is lost
    with pytest.raises(ConnectionLost):
        await client.request(commands.sync(RUNTIME))
    await client.close()


async def test_events_before_the_loss_can_still_be_taken(silent: FakeServer) -> None:
    client = await join(silent)
    await silent.say(event(1))
    await silent.say(event(2))
    await silent.sockets[0].close()
    await client.wait_lost()
    events = client.events()
    assert [(await anext(events)).event_seq for _ in range(2)] == [1, 2]
    with pytest.raises(ConnectionLost):
        await anext(events)


async def test_an_answer_knows_which_events_came_before_it(silent: FakeServer) -> None:
    client = await join(silent)
    waiting = asyncio.create_task(client.request(commands.sync(RUNTIME, request_id="a")))
    await until(lambda: silent.heard)
    await silent.say(event(1))
    await silent.say(event(2))
    await silent.say({"type": "sync_response", "request_id": "a", "success": True})
    await silent.say(event(3))
    answer = await waiting
    await until(lambda: client.counts.events == 3)
    assert [frame.event_seq for frame in client.take_before(answer.arrival)] == [1, 2]
    assert (await client.next_event()).event_seq == 3
    await client.close()


async def test_each_event_is_passed_on_once(silent: FakeServer) -> None:
    client = await join(silent)
    call = {"type": "external_tool_call_request", "request_id": "x1", "tool_name": "t", "input": {}}
    for frame in (event(1, "k1"), event(1, "k1"), call, call, event(2, "k2"), event(1, "k1")):
        await silent.say(frame)
    await silent.say("this is no frame")
    await silent.say({"type": "sparkles", "event_seq": 3})
    taken = [await client.next_event() for _ in range(4)]
    assert [frame.type for frame in taken] == [
        "update_queue", "external_tool_call_request", "update_queue", "sparkles",
    ]  # fmt: skip
    assert client.counts.duplicates == 3
    assert client.counts.malformed == 1
    assert client.counts.unknown == {"sparkles": 1}
    assert client.counts.gaps == 0
    await client.close()


async def test_kinds_nobody_knows_are_counted_within_bounds(silent: FakeServer) -> None:
    client = await join(silent)
    for number in range(300):
        await silent.say({"type": f"odd-{number}"})
    await until(lambda: client.counts.events == 300)
    assert len(client.counts.unknown) == 101
    assert client.counts.unknown["(others)"] == 200
    await client.close()


async def test_a_gap_is_reported(silent: FakeServer) -> None:
    gaps: list[Gap] = []
    client = await join(silent, on_gap=gaps.append)
    for seq in (0, 1, 4, 2, 5, 9):
        await silent.say(event(seq))
    await until(lambda: client.counts.events == 6)
    assert gaps == [Gap(2, 3), Gap(6, 8)]
    assert client.sequence.missing == 4
    await client.close()


async def test_reading_goes_on_while_nobody_takes_events(silent: FakeServer) -> None:
    """A server drops a client that does not read 512 frames; here nobody takes 5,000."""
    client = await join(silent)
    for seq in range(5_000):
        await silent.say(event(seq))
    assert await client.probe(5)
    await until(lambda: client.counts.events == 5_000)
    assert [(await client.next_event()).event_seq for _ in range(5_000)] == list(range(5_000))
    await client.close()


async def test_a_cancelled_request_leaves_nothing_behind(silent: FakeServer) -> None:
    client = await join(silent)
    waiting = asyncio.create_task(client.request(commands.sync(RUNTIME, request_id="a")))
    await until(lambda: silent.heard)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    again = asyncio.create_task(client.request(commands.sync(RUNTIME, request_id="a")))
    await until(lambda: len(silent.heard) == 2)
    await silent.say({"type": "sync_response", "request_id": "a", "success": True})
    assert (await again).request_id == "a"
    await client.close()


async def test_who_does_not_answer_as_a_letta_server_is_none(silent: FakeServer) -> None:
    client = await join(silent)
    with pytest.raises(Refused) as caught:
        await identify(client, timeout=0.05)
    assert caught.value.kind == "not_letta"
    await client.close()
    async with FakeServer() as other:
        client = await join(other)
        assert (await identify(client)).protocol_version == 1
        await client.close()


# Gaps


class Syncs:
    """A client with gap handling, over a server that counts the syncs."""

    def __init__(self, server: FakeServer, client: Client, gaps: GapSync, told: list[int]) -> None:
        self.server, self.client, self.gaps, self.told = server, client, gaps, told

    @property
    def asked(self) -> list[dict[str, Any]]:
        return [command for command in self.server.heard if command["type"] == "sync"]


@pytest.fixture
async def syncs() -> AsyncIterator[Syncs]:
    async with FakeServer(answer_plainly) as server:
        client = await join(server)
        told: list[int] = []
        gaps = GapSync(
            client, lambda: [RUNTIME, Runtime("agent-1", "conv-2")], on_sync=told.append,
            settle=0.05, quiet=0.3, longest=5.0,
        )  # fmt: skip
        yield Syncs(server, client, gaps, told)
        await gaps.stop()
        await client.close()


async def test_a_gap_is_answered_by_one_sync_for_each_conversation(syncs: Syncs) -> None:
    for seq in (1, 2, 5, 6, 9):
        await syncs.server.say(event(seq))
    await until(lambda: syncs.told)
    assert syncs.told == [4]
    assert [command["runtime"]["conversation_id"] for command in syncs.asked] == ["conv-1", "conv-2"]
    assert all(command["recover_approvals"] is False for command in syncs.asked)


async def test_a_gap_that_fills_itself_costs_nothing(syncs: Syncs) -> None:
    for seq in (1, 3, 2):
        await syncs.server.say(event(seq))
    await until(lambda: syncs.gaps.healed == 1)
    assert syncs.asked == []


async def test_spurious_gaps_make_no_storm(syncs: Syncs) -> None:
    """A gap at every event for a second and a half: a handful of syncs, further and further apart."""
    async with asyncio.timeout(20):
        for step in range(150):
            await syncs.server.say(event(2 * step))
            await asyncio.sleep(0.01)
    assert 1 <= syncs.gaps.syncs <= 4
    assert len(syncs.asked) <= 8


async def test_a_later_gap_is_answered_again(syncs: Syncs) -> None:
    await syncs.server.say(event(1))
    await syncs.server.say(event(3))
    await until(lambda: syncs.gaps.syncs == 1)
    await syncs.server.say(event(9))
    await until(lambda: syncs.gaps.syncs == 2)
    assert syncs.told == [1, 5]


async def test_a_connection_that_goes_in_the_middle_of_a_sync(syncs: Syncs) -> None:
    await syncs.server.say(event(1))
    await syncs.server.say(event(3))
    syncs.server.sockets[0].transport.abort()
    await syncs.client.wait_lost()
    await until(lambda: syncs.gaps._task is not None and syncs.gaps._task.done())
    assert syncs.told == []
