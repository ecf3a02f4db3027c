"""The real server: that every command is understood, and answered as the types say."""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from letta_tui.protocol import Frame, Runtime, commands
from letta_tui.transport import (
    Client,
    NoAnswer,
    Refused,
    identify,
    look_ahead,
    open_connection,
)
from letta_tui.transport.endpoint import direct
from letta_tui.transport.http import HttpAnswer, HttpRequest, fetch
from tests.support.server import MODEL_HANDLE, RealServer, until
from tests.transport.tls_front import certificate, tls_front

pytestmark = pytest.mark.real


@pytest.fixture
async def client(letta_server: RealServer) -> AsyncIterator[Client]:
    endpoint = direct(letta_server.url, token_file=letta_server.token_file)
    client = Client(await open_connection(endpoint))
    yield client
    await client.close()


async def start(client: Client, server: RealServer, **options: Any) -> Runtime:
    runtime = Runtime(server.agent_id, await server.conversation())
    frame = await client.ask(
        commands.runtime_start(
            mode="standard", agent_id=runtime.agent_id, conversation_id=runtime.conversation_id,
            cwd=str(server.work), client_info={"name": "letta-tui", "version": "test"}, **options,
        )
    )  # fmt: skip
    assert frame.runtime_started is not None
    assert frame.runtime_started.runtime == runtime
    return runtime


async def next_where(client: Client, wanted: str) -> Frame:
    async with asyncio.timeout(20):
        async for frame in client.events():
            if frame.type == wanted:
                return frame
    raise AssertionError(wanted)


async def test_who_it_is(client: Client) -> None:
    info = await identify(client)
    assert (info.backend, info.protocol_version, info.split_channels) == ("local", 1, False)


async def test_what_is_wrong_with_a_connection(letta_server: RealServer) -> None:
    base = letta_server.url.removesuffix("/ws")
    for url, token, kind in (
        (base, "wrong", "token"),
        (base, None, "token"),
        (f"{base}/elsewhere", letta_server.token, "not_found"),
        (base.replace("ws:", "wss:"), letta_server.token, "tls"),
    ):
        with pytest.raises(Refused) as caught:
            await open_connection(direct(url, token=token))
        assert caught.value.kind == kind, caught.value.words


@pytest.mark.parametrize("prefix", ["", "/letta"])
async def test_behind_tls_and_a_reverse_proxy(letta_server: RealServer, tmp_path: Path, prefix: str) -> None:
    context, cert = certificate(tmp_path)
    async with tls_front(letta_server.url, context, prefix) as url:
        endpoint = direct(url, token_file=letta_server.token_file, ca_file=cert)
        info = await look_ahead(endpoint, letta_server.token)
        assert info is not None
        assert info.backend == "local"
        client = Client(await open_connection(endpoint))
        assert (await identify(client)).backend == "local"
        await client.close()
        with pytest.raises(Refused, match="refused the token"):
            await open_connection(direct(url, token="wrong", ca_file=cert))
        with pytest.raises(Refused, match="certificate"):
            await open_connection(direct(url, token_file=letta_server.token_file))


async def _says_it_splits(request: HttpRequest) -> HttpAnswer:
    answer = await fetch(request)
    if not answer.ok:
        return answer
    told = answer.body
    return HttpAnswer(200, {**told, "capabilities": {**told["capabilities"], "split_channels": True}})


async def test_a_server_that_wants_the_other_number_of_sockets(letta_server: RealServer) -> None:
    """HTTP 426 is its word for it: this server lets no socket in that names a channel."""
    fetcher = _says_it_splits
    endpoint = direct(letta_server.url, token_file=letta_server.token_file)
    info = await look_ahead(endpoint, letta_server.token, fetcher=fetcher)
    assert info is not None
    assert info.split_channels
    client = Client(await open_connection(endpoint, fetcher=fetcher))
    assert not (await identify(client)).split_channels
    await client.close()


async def test_being_refused_does_not_end_the_server(own_server: RealServer) -> None:
    """0.34.12 expects no error on a socket it refused, so a TCP reset there ends it: nobody may cause one.

    A reset is what the other side sees of a socket that is closed with the refusal still unread.
    """
    fetcher = _says_it_splits
    for _ in range(20):
        asked = direct(own_server.url, token_file=own_server.token_file)
        await (await open_connection(asked, fetcher=fetcher)).close()
        with pytest.raises(Refused, match="refused the token"):
            await open_connection(direct(own_server.url, token="wrong"), fetcher=fetcher)
    process = own_server.process
    assert process is not None
    assert process.poll() is None

    # The finding itself: when a later server survives this, the care above can go.
    with socket.create_connection(("127.0.0.1", own_server.port)) as refused:
        key = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
        refused.sendall(f"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n{key}\r\n\r\n".encode())
        await asyncio.to_thread(select.select, [refused], [], [])  # the refusal is here, and stays unread
    assert await asyncio.to_thread(process.wait, 10) != 0
    await until(lambda: "ECONNRESET" in "".join(own_server.output))


async def test_conversations(client: Client, letta_server: RealServer) -> None:
    agent = await letta_server.new_agent("Conversations")
    created = await client.ask(commands.conversation_create(agent, {"summary": "First"}))
    conversation = created.raw["conversation"]["id"]
    assert created.raw["conversation"]["summary"] == "First"
    listed = await client.ask(commands.conversation_list(agent_id=agent, limit=5))
    assert [row["id"] for row in listed.raw["conversations"]] == [conversation]
    updated = await client.ask(commands.conversation_update(conversation, title="Second", archived=True))
    assert updated.raw["conversation"]["summary"] == "Second"
    got = await client.ask(commands.conversation_retrieve(conversation))
    assert got.raw["conversation"]["archived"] is True
    forked = await client.ask(commands.conversation_fork(conversation, agent_id=agent))
    assert forked.raw["conversation"]["id"] != conversation
    compacted = await client.ask(commands.conversation_compact(conversation, agent_id=agent))
    assert compacted.raw["compaction"]["num_messages_before"] == 0
    page = (await client.ask(commands.messages_list(Runtime(agent, "default")))).history_page
    assert page is not None
    assert (page.messages, page.has_more) == ((), False)
    gone = await client.request(commands.conversation_retrieve("local-conv-9999"))
    assert gone.answer is not None
    assert (gone.answer.success, "not found" in gone.answer.error) == (False, True)


async def test_agents(client: Client) -> None:
    created = await client.ask(commands.agent_create({"name": "Made", "model": MODEL_HANDLE}))
    agent = created.raw["agent"]["id"]
    await client.ask(commands.agent_update(agent, {"name": "Renamed"}))
    assert (await client.ask(commands.agent_retrieve(agent))).raw["agent"]["name"] == "Renamed"
    listed = await client.ask(commands.agent_list(query_text="Renamed"))
    assert agent in [row["id"] for row in listed.raw["agents"]]
    await client.ask(commands.agent_delete(agent))
    again = await client.request(commands.agent_delete(agent))
    assert again.answer is not None
    assert not again.answer.success
    preset = await client.ask(commands.create_agent("blank", model=MODEL_HANDLE, pin_global=False))
    assert preset.raw["agent_id"].startswith("agent-local-")


async def test_models_and_providers(client: Client, letta_server: RealServer) -> None:
    models = await client.ask(commands.list_models())
    assert MODEL_HANDLE in [entry["handle"] for entry in models.raw["entries"]]
    providers = await client.ask(commands.list_connect_providers())
    forms = {row["id"]: row for row in providers.raw["providers"]}
    assert forms["openai-compatible"]["connected"]["is_connected"]
    assert {field["key"] for field in forms["openai-compatible"]["fields"]} == {"apiKey", "baseUrl"}
    refused = await client.request(commands.connect_provider("openai-compatible", {"apiKey": "k"}))
    assert refused.answer is not None
    assert (refused.answer.success, refused.answer.error) == (False, "Missing Base URL.")
    connected = await client.ask(commands.connect_provider("anthropic", {"apiKey": "not-a-key"}))
    assert connected.raw["models_may_have_changed"]
    await client.ask(commands.disconnect_provider("anthropic"))
    runtime = Runtime(letta_server.agent_id, await letta_server.conversation())
    changed = await client.ask(commands.update_model(runtime, model_handle=MODEL_HANDLE))
    assert (changed.raw["applied_to"], changed.raw["model_handle"]) == ("conversation", MODEL_HANDLE)


async def test_what_the_server_passes_over_in_silence(client: Client) -> None:
    """Silence may be a command it does not understand: nothing of a slow or dead server."""
    for command in (
        {"type": "runtime_start", "agent_id": "a", "conversation_id": "c", "mode": "bogus"},
        {"type": "list_connect_providers"},
        {"type": "no_such_command"},
        # There is none: a conversation can be archived and hidden, which is what "delete" does here.
        {"type": "conversation_delete", "conversation_id": "local-conv-1"},
        {"type": "create_agent", "personality": "nosuch"},
    ):
        with pytest.raises(NoAnswer):
            await client.request(command, timeout=0.3)
    await client.fence()


async def test_control_of_an_idle_conversation(client: Client, letta_server: RealServer) -> None:
    runtime = await start(client, letta_server)
    await client.ask(commands.sync(runtime))
    assert (await client.ask(commands.abort_message(runtime))).raw["aborted"] is False
    assert (await client.ask(commands.resume_queue(runtime))).raw["resumed"] == 0
    removed = await client.request(commands.remove_queue_item(runtime, "none"))
    assert removed.answer is not None
    assert not removed.answer.success
    unknown = await client.request(commands.execute_command(runtime, "nosuch"))
    assert unknown.answer is not None
    assert unknown.answer.error == "Unknown command: nosuch"
    late = await client.request(commands.deny(runtime, "perm-gone", "no"))
    assert late.input_accepted is not None
    assert "no longer pending" in late.input_accepted.error
    client.take_before(late.arrival + 1)
    await client.send(commands.change_device_state(runtime, mode="acceptEdits"))
    async with asyncio.timeout(10):
        while True:
            status = (await next_where(client, "update_device_status")).device_status
            if status is not None and status.mode == "acceptEdits":
                break


async def test_the_replay_comes_before_the_answer(client: Client, letta_server: RealServer) -> None:
    runtime = Runtime(letta_server.agent_id, await letta_server.conversation())
    answer = await client.ask(
        commands.runtime_start(
            mode="standard", agent_id=runtime.agent_id, conversation_id=runtime.conversation_id
        )
    )
    kinds = [frame.type for frame in client.take_before(answer.arrival) if frame.runtime == runtime]
    assert {"update_device_status", "update_loop_status", "update_queue"} <= set(kinds)


async def test_a_tool_of_our_own_is_called_and_answered(client: Client, letta_server: RealServer) -> None:
    tool = {
        "name": "look_up",
        "label": "Look up",
        "description": "Looks a word up.",
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
        "timeout_ms": 10_000,
    }
    runtime = await start(client, letta_server, external_tools=[{"tools": [tool]}])
    await client.ask(commands.external_tools_update([runtime], [{"tools": [tool]}]))
    script = '[[call look_up {"word": "otter"} ==> say it is an animal]]'
    await client.request(commands.create_message(runtime, script, "m-tool"))
    async with asyncio.timeout(20):
        async for frame in client.events():
            if frame.control_request is not None:
                await client.send(commands.allow(runtime, frame.control_request.request_id))
            if frame.external_tool_call is not None:
                break
    call = frame.external_tool_call
    assert call is not None
    assert (call.tool_name, call.input) == ("look_up", {"word": "otter"})
    await client.send(commands.external_tool_result(call.request_id, "otter: swims"))
    end = (await next_where(client, "turn_finished")).turn_finished
    assert end is not None
    assert end.stop_reason == "end_turn"
    page = (await client.ask(commands.messages_list(runtime))).history_page
    assert page is not None
    assert "otter: swims" in str(page.messages)


async def test_no_event_of_a_turn_is_missing(client: Client, letta_server: RealServer) -> None:
    runtime = await start(client, letta_server)
    await client.request(commands.create_message(runtime, "[[words 100]]", "m-gapless"))
    await next_where(client, "turn_finished")
    assert client.counts.gaps == 0
    assert client.counts.duplicates == 0
    assert client.counts.unknown == {}
    assert client.counts.malformed == 0
