"""The relay's stand-in and this program's pair, held against the SDK's transport frame by frame."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from letta_tui.protocol import Runtime
from letta_tui.transport import Client
from letta_tui.transport.relay import open_pair, relay_url
from tests.support.server import RealServer, until
from tests.transport.relay_double import TOKEN, RelayDouble, Subscriber, Trouble
from tests.transport.sdk_pair import SdkPair


def identity(frame: dict[str, Any]) -> str:
    return str(frame.get("idempotency_key") or f"{frame['type']} {frame.get('request_id')}")


@pytest.mark.real
async def test_both_are_told_the_same_and_acknowledge_the_same(letta_server: RealServer) -> None:
    """One turn of the real server behind the relay, watched by the SDK's pair and by ours."""
    conversation = await letta_server.conversation()
    runtime = Runtime(letta_server.agent_id, conversation)
    async with RelayDouble(Trouble(seed=3, duplicate=0.3, drop=0.1, delay=0.02)) as double:
        await double.attach(letta_server.url, letta_server.token)
        url = relay_url(double.base, "connection-1", runtime)
        ours: list[dict[str, Any]] = []
        client = Client(await open_pair(url, TOKEN), on_frame=lambda frame: ours.append(dict(frame.raw)))
        await until(lambda: len(double.subscribers) == 2)
        async with SdkPair(url, TOKEN, runtime.wire()) as sdk:
            await until(lambda: len(double.subscribers) == 4)
            start = {"agent_id": runtime.agent_id, "conversation_id": conversation, "mode": "standard"}
            await sdk.send({"type": "runtime_start", "request_id": "start", **start})
            await until(lambda: any(f.get("request_id") == "start" for f in sdk.forwarded))
            message = {"role": "user", "content": "[[words 40 rate=200]]", "client_message_id": "m-sdk-1"}
            payload = {"kind": "create_message", "messages": [message]}
            command = {"type": "input", "request_id": "say", "runtime": runtime.wire(), "payload": payload}
            await sdk.send(command)
            await until(lambda: any(f["type"] == "turn_finished" for f in sdk.forwarded))
            await until(lambda: any(f["type"] == "turn_finished" for f in ours))
            await until(lambda: not double.unacknowledged())

            def the_same() -> bool:
                return {identity(f) for f in ours} == {identity(f) for f in sdk.forwarded}

            await until(the_same, what="the same frames")
            for mine, its in zip(_pair(double, 0), _pair(double, 2), strict=True):
                assert mine.channel == its.channel
                assert set(mine.acked) == set(mine.delivered) == set(its.acked) == set(its.delivered)
        await client.close()
        assert double.violations == []


def _pair(double: RelayDouble, first: int) -> list[Subscriber]:
    return sorted(double.all_subscribers[first : first + 2], key=lambda s: s.channel)


async def test_what_the_sdk_does_by_itself_is_taken_by_the_stand_in() -> None:
    """Receipts on both sockets, pings on both, a sync on control after a gap; one socket ends the pair."""
    runtime = Runtime("agent-1", "conv-1")
    async with RelayDouble() as double:
        url = relay_url(double.base, "connection-1", runtime)
        async with SdkPair(url, TOKEN, runtime.wire(), ping_seconds=0.05) as sdk:
            await until(lambda: len(double.subscribers) == 2 and all(s.pings for s in double.subscribers))
            for number in (1, 2, 9):
                key = f"update_queue:{number}"
                event = {"type": "update_queue", "event_seq": number, "idempotency_key": key}
                double.publish({**event, "runtime": runtime.wire()})
            await until(lambda: double.commands and not double.unacknowledged())
            assert [(c["type"], c["recover_approvals"]) for c in double.commands] == [("sync", True)]
            assert [f["event_seq"] for f in sdk.forwarded if "event_seq" in f] == [1, 2, 9]
            await double.cut("stream")
            await asyncio.wait_for(sdk.closed.wait(), 5)
            await until(lambda: not double.subscribers)
        assert double.violations == []
