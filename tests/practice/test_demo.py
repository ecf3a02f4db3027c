"""The demo, set up from nothing and found again."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from letta_tui.keeper.client import ensure_keeper, stop_keeper
from letta_tui.paths import DATA_DIR_VARIABLE, Paths, resolve
from letta_tui.practice import demo
from tests.support.server import LETTA, PlainSocket, until

pytestmark = pytest.mark.real


@pytest.fixture
async def paths(tmp_path: Path) -> AsyncIterator[Paths]:
    if not LETTA.exists():
        pytest.skip("the real server is not installed (pip install 'letta-tui[server]')")
    found = resolve("demo", {DATA_DIR_VARIABLE: str(tmp_path)})
    yield found
    await stop_keeper(demo.prepare(found).paths)


@pytest.mark.long  # the program tests in tests/terminal begin with nothing as well
async def test_from_nothing_to_an_answer_and_again_after_a_stop(paths: Paths, tmp_path: Path) -> None:
    setup = demo.prepare(paths)
    agent = await demo.furnish(setup)
    window = await ensure_keeper(setup.paths, setup.options)
    where = await window.endpoint()
    async with PlainSocket(where.url, where.token() or "") as wire:
        answer = await wire.ask("conversation_create", body={"agent_id": agent})
        conversation = answer["conversation"]["id"]
        await wire.join(agent, conversation, cwd=str(setup.scratch))
        await wire.say(agent, conversation, "run a command")
        asked = await wire.asked()
        await wire.decide(agent, conversation, asked["request_id"], allow=True)
        assert (await wire.finished())["stop_reason"] == "end_turn"
    assert (setup.scratch / "practice.txt").exists()
    await window.close()
    assert await stop_keeper(setup.paths)

    again = demo.prepare(paths)
    assert again.model_url == setup.model_url
    assert await demo.furnish(again) == agent


async def test_a_port_taken_meanwhile_is_exchanged(paths: Paths) -> None:
    setup = demo.prepare(paths)
    with socket.socket() as other:
        other.bind(("127.0.0.1", int(setup.model_url.split(":")[2].split("/")[0])))
        other.listen()
        moved = demo.prepare(paths)
        assert moved.model_url != setup.model_url
        agent = await demo.furnish(moved)
        assert agent == await demo.furnish(demo.prepare(paths))


async def test_a_model_that_died_is_started_again(paths: Paths) -> None:
    setup = demo.prepare(paths)
    agent = await demo.furnish(setup)
    from letta_tui.keeper.files import read_state

    saved = read_state(setup.paths.state_file).server
    assert saved is not None
    os.kill(saved.companions[0].pid, signal.SIGKILL)
    await until(lambda: not saved.companions[0].alive())
    again = demo.prepare(paths)
    assert await demo.furnish(again) == agent
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", int(again.model_url.split(":")[2].split("/")[0])
    )
    writer.write(b"GET /v1/models HTTP/1.1\r\n\r\n")
    assert b"letta-tui-practice" in await reader.read()
    writer.close()
