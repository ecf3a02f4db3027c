"""A keeper in front of a server that somebody else runs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from letta_tui.keeper.client import KeeperError, KeeperHandle, find_keeper
from letta_tui.keeper.options import KeeperOptions, KeeperPaths
from letta_tui.keeper.process import CannotRun, Keeper
from tests.support.server import RealServer, until

pytestmark = pytest.mark.real


async def watcher(
    folder: Path, options: KeeperOptions, holds: tuple[tuple[str, str], ...] = ()
) -> tuple[asyncio.Task[None], KeeperHandle, list[str]]:
    paths = KeeperPaths(folder / "state", folder / "run")
    paths.state.mkdir()
    paths.runtime.mkdir()
    said: list[str] = []
    ready = asyncio.Event()
    keeper = Keeper(paths, options, os.environ, holds=holds, say=said.append)
    running = asyncio.create_task(keeper.run(ready.set))
    await asyncio.wait((running, asyncio.create_task(ready.wait())), return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        running.result()
    handle = await find_keeper(paths)
    assert handle is not None
    return running, handle, said


@pytest.fixture
async def kept(tmp_path: Path, letta_server: RealServer) -> AsyncIterator[tuple[KeeperHandle, str]]:
    conversation = await letta_server.conversation()
    options = KeeperOptions(url=letta_server.url, token_file=letta_server.token_file, idle_seconds=0)
    running, handle, _ = await watcher(tmp_path, options, ((letta_server.agent_id, conversation),))
    yield handle, conversation
    await handle.stop()
    await running


async def test_a_turn_survives_all_windows_and_the_server_is_left_alone(
    kept: tuple[KeeperHandle, str], letta_server: RealServer
) -> None:
    handle, conversation = kept
    agent = letta_server.agent_id

    async def held() -> bool:
        return (agent, conversation) in (await handle.status()).holds

    await until(held)
    async with letta_server.plain() as socket:
        await socket.join(agent, conversation)
        await socket.say(agent, conversation, "[[words 20 rate=20; say THE END]]")
        socket.cut()

    async def ended() -> bool:
        return any(e.kind == "turn" for e in await handle.ends_since(0))

    await until(ended)
    (end,) = await handle.ends_since(0)
    assert end.stop_reason == "end_turn"
    assert "THE END" in str(await letta_server.history(conversation))
    where = await handle.endpoint()
    assert (where.url, where.owned) == (letta_server.url, False)
    with pytest.raises(KeeperError, match="did not start this server"):
        await handle.restart_server()


async def test_a_wrong_token_is_said_and_a_bad_address_refused(
    tmp_path: Path, letta_server: RealServer
) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("not the token")
    options = KeeperOptions(url=letta_server.url, token_file=wrong)
    running, handle, said = await watcher(tmp_path, options)
    await until(lambda: said)
    assert "token" in said[0]
    assert (await handle.status()).server == "unreachable"
    await handle.stop()
    await running
    paths = KeeperPaths(tmp_path / "state", tmp_path / "run")
    with pytest.raises(CannotRun):
        await Keeper(paths, KeeperOptions(url="ftp://nowhere"), os.environ).run()
