"""Machines and sandboxes of the hosted service, over the double."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from letta_tui.transport import Endpoint, Environments, Refused, hosted
from letta_tui.transport.environments import Environment
from letta_tui.transport.http import HttpAnswer, HttpRequest
from tests.support.server import until
from tests.transport.relay_double import TOKEN, Device, RelayDouble


@pytest.fixture
async def double() -> AsyncIterator[RelayDouble]:
    async with RelayDouble() as double:
        yield double


def endpoint(double: RelayDouble) -> Endpoint:
    return hosted(double.base, token=TOKEN, device_id="device-1")


async def refused(call: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        await call
    return caught.value


async def test_machines_are_listed_page_by_page(double: RelayDouble) -> None:
    for number in range(2, 6):
        connection = f"c{number}" if number % 2 else None
        double.devices[f"device-{number}"] = Device(f"device-{number}", f"box {number}", connection)
    environments = Environments(endpoint(double))
    rows = await environments.list()
    assert [row.device_id for row in rows] == [f"device-{n}" for n in range(1, 6)]
    assert (rows[0].name, rows[0].working_directory, rows[0].git_branch) == (
        "laptop", "/home/somebody/work", "main",
    )  # fmt: skip
    assert [row.device_id for row in await environments.list(online_only=True)] == [
        "device-1", "device-3", "device-5",
    ]  # fmt: skip


async def test_a_machine_is_picked_by_id_or_by_a_name_that_is_its_own(double: RelayDouble) -> None:
    double.devices["device-2"] = Device("device-2", "twin", "c2")
    double.devices["device-3"] = Device("device-3", "twin", "c3")
    environments = Environments(endpoint(double))
    assert (await environments.pick("laptop")).device_id == "device-1"
    assert (await environments.pick("device-3")).device_id == "device-3"
    assert "2 machines" in (await refused(environments.pick("twin"))).words
    assert 'No machine "none"' in (await refused(environments.pick("none"))).words


async def test_the_connection_id_is_looked_up_each_time(double: RelayDouble) -> None:
    environments = Environments(endpoint(double))
    assert await environments.connection_id("device-1") == "connection-1"
    fresh = await double.rotate()
    assert await environments.connection_id("device-1") == fresh
    double.device.connection_id = None
    double.device.last_heartbeat = "2026-01-01T00:00:00Z"
    offline = await refused(environments.connection_id("device-1"))
    assert (offline.kind, offline.worth_retrying) == ("offline", True)
    assert "laptop is offline (last seen" in offline.words
    assert (await refused(environments.connection_id("device-9"))).kind == "not_found"


async def test_a_wrong_key_and_a_service_that_is_away() -> None:
    async with RelayDouble() as double:
        wrong = Environments(hosted(double.base, token="wrong"))
        assert (await refused(wrong.list())).kind == "token"
    assert (await refused(Environments(hosted(double.base, token=TOKEN)).list())).kind == "refused_port"


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (HttpAnswer(503, None), "busy", "cannot serve now"),
        (HttpAnswer(302, None, "https://elsewhere.example/"), "not_letta", "redirects to elsewhere.example"),
        (HttpAnswer(402, {"message": "out of credits"}), "hosted", "out of credits"),
        (HttpAnswer(402, {"error": {"message": "nested"}}), "hosted", "nested"),
        (HttpAnswer(400, None), "hosted", "HTTP 400"),
        (HttpAnswer(200, ["odd"]), "hosted", "not understood"),
    ],
)
async def test_odd_answers_of_the_service(answer: HttpAnswer, kind: str, said: str) -> None:
    async def fetcher(request: HttpRequest) -> HttpAnswer:
        return answer

    words = await refused(Environments(hosted(token="k"), fetcher=fetcher).list())
    assert (words.kind, said in words.words) == (kind, True), words.words


async def test_paging_that_never_ends_is_left() -> None:
    calls = 0

    async def fetcher(request: HttpRequest) -> HttpAnswer:
        nonlocal calls
        calls += 1
        return HttpAnswer(200, {"connections": [{"id": "same", "deviceId": "d"}], "hasNextPage": True})

    await Environments(hosted(token="k"), fetcher=fetcher).list()
    assert calls == 2


@pytest.mark.parametrize("heartbeat", ["2026-11-29T18:00:00Z", 1795975200, 1795975200000])
def test_a_machine_is_online_while_its_heart_beats(heartbeat: object) -> None:
    row = Environment.of({"deviceId": "d", "connectionId": "c", "lastHeartbeat": heartbeat})
    assert row is not None
    assert row.online(1795975200 + 119)
    assert not row.online(1795975200 + 121)
    gone = Environment.of({"deviceId": "d", "connectionId": None, "lastHeartbeat": heartbeat})
    assert gone is not None
    assert not gone.online(1795975200)


async def test_a_sandbox_is_made_refreshed_and_ended(double: RelayDouble) -> None:
    environments = Environments(endpoint(double))
    repository = {"owner": "somebody", "repo": "project"}
    sandbox = await environments.prepare_sandbox("agent-1", "conv-1", repositories=[repository], minutes=7)
    kept = double.sandboxes[sandbox.sandbox_id]
    assert kept["body"] == {"conversationId": "conv-1", "githubRepositories": [repository]}
    assert kept["refreshed"] == [7]
    assert (sandbox.device_id, sandbox.conversation_id, sandbox.resumed) == ("device-1", "conv-1", False)
    assert (await environments.open_sandbox("agent-1", "conv-1")).resumed
    await environments.end_sandbox(sandbox)
    await environments.end_sandbox(sandbox)
    assert double.sandboxes == {}


async def test_the_default_conversation_has_the_agents_sandbox(double: RelayDouble) -> None:
    sandbox = await Environments(endpoint(double)).open_sandbox("agent-1", "default")
    assert sandbox.conversation_id is None
    assert double.sandboxes[sandbox.sandbox_id]["body"] == {}


async def test_the_sandbox_of_another_conversation_is_not_taken() -> None:
    async def fetcher(request: HttpRequest) -> HttpAnswer:
        return HttpAnswer(200, {"sandboxId": "s", "deviceId": "d", "conversationId": "conv-2"})

    environments = Environments(hosted(token="k"), fetcher=fetcher)
    assert "another conversation" in (await refused(environments.open_sandbox("a", "conv-1"))).words


async def test_an_expired_sandbox_says_that_nothing_was_sent(double: RelayDouble) -> None:
    environments = Environments(endpoint(double))
    sandbox = await environments.open_sandbox("agent-1", "conv-1")
    double.expired.add(sandbox.sandbox_id)
    expired = await refused(environments.refresh_sandbox(sandbox))
    assert expired.kind == "sandbox_expired"
    assert "nothing was sent" in expired.words


async def test_an_expired_sandbox_is_made_anew_once_before_a_send(double: RelayDouble) -> None:
    environments = Environments(endpoint(double))
    sandbox = await environments.open_sandbox("agent-1", "conv-1")
    assert await environments.freshen_sandbox(sandbox) == sandbox
    double.expired.add(sandbox.sandbox_id)
    double.device.device_id = "device-2"
    double.devices = {"device-2": double.device}
    fresh = await environments.freshen_sandbox(sandbox)
    assert (fresh.device_id, fresh.conversation_id, fresh.resumed) == ("device-2", "conv-1", False)
    assert double.sandboxes[fresh.sandbox_id]["refreshed"] == [5]


async def test_waiting_for_a_sandbox_ends() -> None:
    async with RelayDouble() as double:
        double.device.connection_id = None
        now = 0.0

        async def sleep(seconds: float) -> None:
            nonlocal now
            now += seconds
            if now == 3.0:
                double.device.connection_id = "c-late"

        environments = Environments(endpoint(double), now=lambda: now, sleep=sleep)
        sandbox = await environments.open_sandbox("agent-1", "conv-1")
        assert await environments.wait_ready(sandbox) == "c-late"
        double.device.connection_id = None
        now = 10.0
        assert (await refused(environments.wait_ready(sandbox, timeout=5))).kind == "timeout"


async def test_a_sandbox_is_refreshed_while_it_is_used(double: RelayDouble) -> None:
    slept: list[float] = []
    turns = asyncio.Event()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) > 3:
            turns.set()
            await asyncio.Event().wait()

    environments = Environments(endpoint(double), sleep=sleep)
    sandbox = await environments.open_sandbox("agent-1", "conv-1")
    keeping = asyncio.create_task(environments.keep_sandbox(sandbox, minutes=5))
    await asyncio.wait_for(turns.wait(), 5)
    keeping.cancel()
    assert slept == [240.0] * 4
    assert double.sandboxes[sandbox.sandbox_id]["refreshed"] == [5, 5, 5]


async def test_conversations_and_agents_can_be_made_before_there_is_a_connection(double: RelayDouble) -> None:
    environments = Environments(endpoint(double))
    assert await environments.create_conversation("agent-1") == "conv-new"
    assert await environments.create_agent({"name": "x"}) == "agent-new"
    last = await environments.last_used("agent-1", "conv-1")
    assert last is not None
    assert last.device_id == "device-1"
    await until(lambda: len(double.requests) == 3)
