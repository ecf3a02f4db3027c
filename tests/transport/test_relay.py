"""The pair of sockets to the hosted relay, over the double: alone, and in front of the real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from letta_tui.protocol import Runtime, commands
from letta_tui.transport import Client, ConnectionLost, Endpoint, Refused, hosted, open_connection
from letta_tui.transport.connect import wants_pair
from letta_tui.transport.discovery import look_ahead
from letta_tui.transport.endpoint import direct
from letta_tui.transport.relay import channel_url, open_pair, relay_url
from tests.support.server import RealServer, until
from tests.transport.fake_server import FakeServer
from tests.transport.relay_double import TOKEN, RelayDouble, Trouble

RUNTIME = Runtime("agent-1", "conv-1")


def endpoint(double: RelayDouble) -> Endpoint:
    return hosted(double.base, token=TOKEN, device_id="device-1")


@pytest.fixture
async def double() -> AsyncIterator[RelayDouble]:
    async with RelayDouble() as double:
        yield double
        assert double.violations == []


async def join(double: RelayDouble, runtime: Runtime = RUNTIME) -> Client:
    client = Client(await open_connection(endpoint(double), runtime))
    await until(lambda: len(double.subscribers) == 2)
    return client


def event(seq: int, kind: str = "update_loop_status", **fields: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "runtime": RUNTIME.wire(),
        "event_seq": seq,
        "idempotency_key": f"{kind}:{seq}",
        **fields,
    }


def delta(seq: int, text: str) -> dict[str, Any]:
    return event(seq, "stream_delta", delta={"message_type": "assistant_message", "content": text})


def test_addresses() -> None:
    url = relay_url("https://api.letta.com", "con/1", Runtime("a 1", "default"))
    assert url == "wss://api.letta.com/v1/environments/con%2F1/status/ws?agentId=a+1&conversationId=default"
    assert channel_url(url, "stream") == f"{url}&channel=stream"
    assert channel_url("ws://h/ws?channel=x", "control") == "ws://h/ws?channel=control"
    with pytest.raises(Refused, match="needs an agent"):
        relay_url("https://api.letta.com", "c", Runtime(None, "c"))


async def test_both_sockets_open_and_commands_go_on_control(double: RelayDouble) -> None:
    client = await join(double)
    assert sorted(s.channel for s in double.subscribers) == ["control", "stream"]
    assert {(s.agent_id, s.conversation_id) for s in double.subscribers} == {("agent-1", "conv-1")}
    await client.send(commands.sync(RUNTIME, request_id="r"))
    await until(lambda: double.commands)
    assert double.commands == [commands.sync(RUNTIME, request_id="r")]
    await client.close()


async def test_one_socket_refused_means_no_connection(double: RelayDouble) -> None:
    for channel in ("control", "stream"):
        double.refuse_channel = channel
        with pytest.raises(Refused) as caught:
            await open_connection(endpoint(double), RUNTIME)
        assert caught.value.kind == "busy"
        await until(lambda: not double.subscribers)


@pytest.mark.parametrize("channel", ["control", "stream"])
async def test_a_pair_of_which_one_never_opens_is_given_up(double: RelayDouble, channel: str) -> None:
    double.stall_channel = channel
    with pytest.raises(Refused) as caught:
        await open_connection(endpoint(double), RUNTIME, timeout=0.3)
    assert caught.value.kind == "timeout"
    await until(lambda: double.all_subscribers and not double.subscribers)


async def test_every_delivery_is_acknowledged_where_it_came_even_when_it_is_dropped(
    double: RelayDouble,
) -> None:
    client = await join(double)
    for seq in range(1, 6):
        double.publish(delta(seq, str(seq)))
    double.publish({"type": "update_queue", "queue": [], "removed": []})
    await until(lambda: not double.unacknowledged())
    for subscriber in double.subscribers:
        assert subscriber.acked == subscriber.delivered
        assert sorted(subscriber.acked) == [1, 2, 3, 4, 5, 6]
    taken = [await client.next_event() for _ in range(6)]
    assert [f.delta.text for f in taken if f.delta is not None] == ["1", "2", "3", "4", "5"]
    await client.close()


async def test_a_redelivery_is_acknowledged_again_and_not_passed_on(double: RelayDouble) -> None:
    client = await join(double)
    double.trouble.duplicate = 1.0
    double.publish(event(1))
    double.publish(event(2))
    await until(lambda: all(s.acked == {1: 2, 2: 2} for s in double.subscribers))
    await until(lambda: client.counts.events == 2)
    await client.close()


async def test_a_repetition_that_comes_very_late_is_acknowledged_and_nothing_else(
    double: RelayDouble,
) -> None:
    """Later than any memory of keys: its number on its socket tells."""
    client = await join(double)
    late = [event(0), delta(1, "first ")]
    for frame in (*late, *(delta(seq, "x") for seq in range(2, 1_100))):
        double.publish(frame)
    await until(lambda: client.counts.events == 1_100 and not double.unacknowledged())
    for subscriber in double.subscribers:
        for number, frame in enumerate(late, 1):
            double.deliver_again(subscriber, number, frame)
    await until(lambda: not double.unacknowledged())
    assert all(s.acked[number] >= 2 for s in double.subscribers for number in (1, 2))
    double.publish(event(1_100))
    await until(lambda: client.counts.events == 1_101)
    taken = [await client.next_event() for _ in range(1_101)]
    assert [frame.event_seq for frame in taken] == list(range(1_101))
    assert (client.counts.gaps, client.counts.duplicates) == (0, 0)
    await client.close()


async def test_answers_and_tool_calls_come_once(double: RelayDouble) -> None:
    client = await join(double)
    waiting = asyncio.create_task(client.request(commands.sync(RUNTIME, request_id="r")))
    await until(lambda: double.commands)
    double.publish({"type": "sync_response", "request_id": "r", "success": True})
    double.publish({"type": "external_tool_call_request", "request_id": "x", "tool_name": "t", "input": {}})
    assert (await waiting).request_id == "r"
    assert (await client.next_event()).request_id == "x"
    await until(lambda: not double.unacknowledged())
    assert (client.counts.stray_answers, client.counts.events) == (0, 1)
    await client.close()


async def test_pings_keep_both_sockets(double: RelayDouble) -> None:
    url = relay_url(double.base, "connection-1", RUNTIME)
    connection = await open_pair(url, TOKEN, ping_seconds=0.05)
    await until(lambda: len(double.subscribers) == 2 and all(s.pings >= 2 for s in double.subscribers))
    double.publish(event(1))
    assert (await connection.receive()).type == "update_loop_status"  # pongs are no frames of the server
    assert await connection.probe(2)
    await connection.close()


@pytest.mark.parametrize("channel", ["control", "stream"])
async def test_either_socket_closing_closes_the_pair(double: RelayDouble, channel: str) -> None:
    client = await join(double)
    waiting = asyncio.create_task(client.request(commands.sync(RUNTIME), timeout=60))
    await until(lambda: double.commands)
    await double.cut(channel)
    async with asyncio.timeout(30):
        with pytest.raises(ConnectionLost):
            await waiting
        await client.wait_lost()
    await until(lambda: not double.subscribers)
    assert not await client.probe(1)
    with pytest.raises(ConnectionLost):
        await client.send(commands.sync(RUNTIME))
    await client.close()


async def test_a_half_dead_pair_is_probed_and_left_in_time(double: RelayDouble) -> None:
    client = await join(double)
    stream = next(s for s in double.subscribers if s.channel == "stream")
    stream.socket.transport.pause_reading()
    assert not await client.probe(0.3)
    async with asyncio.timeout(30):  # its other end never says goodbye
        await client.close()


async def test_the_connection_id_is_resolved_before_every_connect(double: RelayDouble) -> None:
    client = await join(double)
    await double.rotate()
    await client.wait_lost()
    await client.close()
    again = await join(double)
    assert double.requests == ["GET /v1/environments/device-1"] * 2
    await again.close()
    double.device.connection_id = None
    with pytest.raises(Refused, match="offline"):
        await open_connection(endpoint(double), RUNTIME)


async def test_a_hosted_endpoint_needs_a_machine_and_a_key(double: RelayDouble) -> None:
    with pytest.raises(Refused, match="No machine is chosen"):
        await open_connection(hosted(double.base, token=TOKEN), RUNTIME)
    with pytest.raises(Refused, match="for one conversation"):
        await open_connection(endpoint(double))
    with pytest.raises(Refused) as caught:
        await open_connection(hosted(double.base, token="bad", device_id="device-1"), RUNTIME)
    assert caught.value.kind == "token"


async def test_what_overtakes_on_the_other_socket_waits_its_turn(double: RelayDouble) -> None:
    """The end of a turn comes over control before the last words over stream."""
    client = await join(double)
    control, stream = sorted(double.subscribers, key=lambda s: s.channel)
    double.subscribers.remove(stream)
    double.publish(event(1))
    double.publish(delta(2, "never over control"))
    double.publish(event(3, "turn_finished", turn_id="t", stop_reason="end_turn"))
    await until(lambda: not control.unacked)
    double.subscribers[:] = [stream]
    double.publish(delta(2, "last words"))
    taken = [await client.next_event() for _ in range(3)]
    assert [frame.event_seq for frame in taken] == [1, 2, 3]
    assert [frame.arrival for frame in taken] == [1, 2, 3]
    assert taken[1].delta is not None
    assert taken[1].delta.text == "last words"
    assert client.counts.gaps == 0
    await client.close()


async def test_an_answer_does_not_overtake_the_words_before_it(double: RelayDouble) -> None:
    client = await join(double)
    control, stream = sorted(double.subscribers, key=lambda s: s.channel)
    waiting = asyncio.create_task(client.request(commands.sync(RUNTIME, request_id="r")))
    await until(lambda: double.commands)
    double.publish(event(1))
    double.subscribers[:] = [control]
    double.publish(delta(2, "x"))
    double.publish({"type": "sync_response", "request_id": "r", "success": True})
    await until(lambda: not control.unacked)
    assert not waiting.done()
    double.subscribers[:] = [stream]
    double.publish(delta(2, "words"))
    answer = await waiting
    assert [frame.event_seq for frame in client.take_before(answer.arrival)] == [1, 2]
    await client.close()


async def test_ten_thousand_deliveries_doubled_lost_late_and_out_of_order() -> None:
    trouble = Trouble(seed=7, duplicate=0.2, drop=0.05, delay=0.02)
    async with RelayDouble(trouble, redeliver=0.3) as double:
        # Patient, so that a busy machine cannot make the order depend on how fast it is.
        url = relay_url(double.base, "connection-1", RUNTIME)
        client = Client(await open_pair(url, TOKEN, patience=20.0))
        await until(lambda: len(double.subscribers) == 2)
        total = 4_400
        text: list[str] = []
        seqs: list[int | None] = []

        async def take() -> None:
            async for frame in client.events():
                seqs.append(frame.event_seq)
                if frame.delta is not None:
                    text.append(frame.delta.text)
                if len(seqs) == total:
                    return

        taking = asyncio.create_task(take())
        for seq in range(total):
            double.publish(delta(seq, f"{seq} ") if seq % 5 else event(seq))
            if seq % 50 == 0:
                await asyncio.sleep(0.005)
        await asyncio.wait_for(taking, 60)
        await until(lambda: not double.unacknowledged())
        assert seqs == list(range(total))
        assert "".join(text) == "".join(f"{n} " for n in range(total) if n % 5)
        for subscriber in double.subscribers:
            # A repetition may still be on its way when its first receipt has come.
            await until(lambda subscriber=subscriber: subscriber.acked == subscriber.delivered)
        assert sum(s.delivered.total() for s in double.subscribers) >= 10_000
        assert double.violations == []
        await client.close()


# Strategy


async def test_the_server_says_whether_it_wants_two_sockets(letta_server: RealServer) -> None:
    real = direct(letta_server.url, token_file=letta_server.token_file)
    info = await look_ahead(real, letta_server.token)
    assert info is not None
    assert (info.backend, info.protocol_version, info.split_channels) == ("local", 1, False)
    assert not wants_pair(real, info)
    assert wants_pair(hosted(token="k"), None)
    with pytest.raises(Refused, match="refused the token"):
        await look_ahead(real, "wrong")
    async with FakeServer() as old:
        assert await look_ahead(direct(old.url), None) is None


async def test_a_direct_server_that_splits_its_channels_gets_a_pair() -> None:
    from letta_tui.transport.http import HttpAnswer, HttpRequest

    async def fetcher(request: HttpRequest) -> HttpAnswer:
        assert request.url.endswith("/app-server-info")
        return HttpAnswer(200, {"protocol_version": 1, "capabilities": {"split_channels": True}})

    async with FakeServer() as server:
        connection = await open_connection(direct(server.url), fetcher=fetcher)
        paths = sorted(request.path for request in server.requests)
        assert paths == ["/ws?channel=control", "/ws?channel=stream"]
        await connection.close()


# In front of the real server


@pytest.mark.real
async def test_a_conversation_over_the_relay(letta_server: RealServer) -> None:
    """A turn, an approval and history over the pair: the same as over one socket."""
    trouble = Trouble(seed=3, duplicate=0.3, drop=0.1, delay=0.03)
    conversation = await letta_server.conversation()
    runtime = Runtime(letta_server.agent_id, conversation)
    async with RelayDouble(trouble) as double:
        await double.attach(letta_server.url, letta_server.token)
        client = await join(double, runtime)
        started = await client.ask(
            commands.runtime_start(
                mode="standard",
                agent_id=runtime.agent_id,
                conversation_id=conversation,
                cwd=str(letta_server.work),
            )
        )
        assert started.runtime_started is not None
        assert started.runtime_started.runtime == runtime
        accepted = await client.request(commands.create_message(runtime, "Say hello, please.", "m-relay-1"))
        assert accepted.input_accepted is not None
        assert accepted.input_accepted.accepted
        spoken = ""
        async with asyncio.timeout(30):
            async for frame in client.events():
                if frame.delta is not None and frame.delta.message_type == "assistant_message":
                    spoken += frame.delta.text
                if frame.turn_finished is not None:
                    break
        page = (await client.ask(commands.messages_list(runtime))).history_page
        assert page is not None
        rows = {row["message_type"]: row for row in reversed(page.messages)}
        assert spoken
        assert rows["assistant_message"]["content"][0]["text"] == spoken
        assert rows["user_message"]["otid"] == "m-relay-1"
        await until(lambda: not double.unacknowledged())
        assert double.violations == []
        await client.close()


@pytest.mark.real
async def test_rotation_in_mid_turn_loses_nothing(letta_server: RealServer) -> None:
    """The relay goes, the machine and its turn do not; whoever comes back finds the whole answer."""
    conversation = await letta_server.conversation()
    runtime = Runtime(letta_server.agent_id, conversation)
    start = commands.runtime_start(
        mode="standard", agent_id=runtime.agent_id, conversation_id=conversation, cwd=str(letta_server.work)
    )
    async with RelayDouble() as double:
        await double.attach(letta_server.url, letta_server.token)
        client = await join(double, runtime)
        await client.ask(start)
        await client.request(commands.create_message(runtime, "[[words 60 rate=20]]", "m-rotate"))
        async with asyncio.timeout(30):
            async for frame in client.events():
                if frame.delta is not None and frame.delta.text:
                    break
        await double.rotate()
        await client.wait_lost()
        await client.close()
        client = await join(double, runtime)
        await client.ask(start)
        async with asyncio.timeout(60):
            async for frame in client.events():
                if frame.turn_finished is not None:
                    assert frame.turn_finished.stop_reason == "end_turn"
                    break
        page = (await client.ask(commands.messages_list(runtime))).history_page
        assert page is not None
        assert [row.get("otid") for row in page.messages if row["message_type"] == "user_message"] == [
            "m-rotate"
        ]
        await client.close()
        assert double.violations == []
