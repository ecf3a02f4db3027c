"""A keeper in front of a server that somebody else runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from letta_tui.keeper.client import KeeperError, KeeperHandle, find_keeper
from letta_tui.keeper.errors import CannotRun
from letta_tui.keeper.files import SavedState, write_state
from letta_tui.keeper.options import KeeperOptions, KeeperPaths
from letta_tui.keeper.process import Keeper
from tests.support.server import RealServer, until

pytestmark = pytest.mark.real


async def watcher(
    folder: Path, options: KeeperOptions, holds: tuple[tuple[str, str], ...] = ()
) -> tuple[asyncio.Task[None], KeeperHandle, list[str]]:
    paths = KeeperPaths(folder / "state", folder / "run")
    paths.state.mkdir(exist_ok=True)
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


async def test_what_a_killed_keeper_held_is_held_again(tmp_path: Path, letta_server: RealServer) -> None:
    agent, busy, quiet = letta_server.agent_id, *[await letta_server.conversation() for _ in range(2)]
    paths = KeeperPaths(tmp_path / "state", tmp_path / "run")
    paths.state.mkdir()
    write_state(paths.state_file, SavedState(holds=((agent, busy), (agent, quiet))))
    options = KeeperOptions(url=letta_server.url, token_file=letta_server.token_file, idle_seconds=0)
    async with letta_server.plain() as socket:
        await socket.join(agent, busy)
        await socket.say(agent, busy, "[[words 40 rate=20; say THE END]]")
        await socket.wait(lambda f: (f.get("delta") or {}).get("message_type") == "assistant_message")
        running, handle, _ = await watcher(tmp_path, options)

        async def held() -> bool:
            return set((await handle.status()).holds) == {(agent, busy), (agent, quiet)}

        await until(held)
        socket.cut()

    async def ended() -> bool:
        return any(e.kind == "turn" for e in await handle.ends_since(0))

    await until(ended)
    (end,) = await handle.ends_since(0)
    assert (end.stop_reason, end.conversation_id) == ("end_turn", busy)
    await handle.stop()
    await running


class Wire:
    """A TCP relay to the server that can be cut."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: list[asyncio.StreamWriter] = []
        self._serving: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        me = asyncio.current_task()
        assert me is not None
        self._serving.add(me)
        theirs, onward = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers += [writer, onward]
        await asyncio.gather(self._pump(reader, onward), self._pump(theirs, writer))

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
        sink.close()

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def close(self) -> None:
        self._server.close()
        self.cut()
        await asyncio.gather(*self._serving, return_exceptions=True)


async def test_a_cut_wire_is_replaced_at_once_and_the_hold_with_it(
    tmp_path: Path, letta_server: RealServer
) -> None:
    conversation, agent = await letta_server.conversation(), letta_server.agent_id
    wire = Wire(letta_server.port)
    url = f"ws://127.0.0.1:{await wire.start()}/ws"
    options = KeeperOptions(url=url, token_file=letta_server.token_file, idle_seconds=0)
    running, handle, said = await watcher(tmp_path, options)
    assert await handle.hold(agent, conversation)
    async with letta_server.plain() as socket:
        await socket.join(agent, conversation)
        await socket.say(agent, conversation, "[[words 80 rate=20; say THE END]]")
        await socket.wait(lambda f: (f.get("delta") or {}).get("message_type") == "assistant_message")
        # No connection so young that it looks like a server that drops every newcomer.
        await asyncio.sleep(1.2)
        wire.cut()
        await until(lambda: "Connected again." in said)

        async def held() -> bool:
            return (agent, conversation) in (await handle.status()).holds

        await until(held)
        assert len(said) == 2  # lost once, and back
        socket.cut()

    async def ended() -> bool:
        return any(e.kind == "turn" for e in await handle.ends_since(0))

    await until(ended)
    (end,) = await handle.ends_since(0)
    assert end.stop_reason == "end_turn"
    await handle.stop()
    await running
    await wire.close()


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
