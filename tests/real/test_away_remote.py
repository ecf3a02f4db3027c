"""A laptop, a tunnel and a server elsewhere: whatever the tunnel does, the turn goes on beside the server."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from letta_tui.seam.intents import Decide
from letta_tui.seam.updates import TranscriptChanged
from letta_tui.transport.endpoint import direct
from letta_tui.worker.config import Target
from tests.support.chaos import ChaosProxy, bad_network
from tests.support.seat import Seat, config_for
from tests.support.server import RealServer, until

pytestmark = pytest.mark.real


@asynccontextmanager
async def keep_beside(server: RealServer, folder: Path, conversation: str) -> AsyncIterator[None]:
    """``letta-tui keep --url`` on the server's machine, holding the conversation."""
    command = [sys.executable, "-m", "letta_tui", "keep", "--url", server.url]
    command += ["--token-file", str(server.token_file), "--hold", f"{server.agent_id}/{conversation}"]
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, "LETTA_TUI_DATA_DIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            line = await process.stdout.readline()
        assert line.startswith(b"Keeping"), line
        yield
    finally:
        process.terminate()
        await process.communicate()


async def begun(seat: Seat) -> str:
    key = await seat.said("[[words 60 rate=30; say THE END]]")
    await seat.until(lambda: seat.texts("assistant"), what="the first words")
    return key


async def caught_up(seat: Seat, server: RealServer, conversation: str, key: str) -> None:
    await seat.reply("THE END", timeout=60)
    await seat.rest(60)
    history = await server.history(conversation)
    said = [m for m in history if m["message_type"] == "assistant_message"]
    whole = "".join(part["text"] for m in said for part in m["content"])
    assert "".join(seat.texts("assistant")) == whole
    row = seat.row_of(key)
    assert row is not None
    assert (row.delivery, len(seat.texts("user"))) == ("delivered", 1)


async def through(server: RealServer, folder: Path, proxy: ChaosProxy, conversation: str) -> Seat:
    endpoint = direct(f"ws://127.0.0.1:{proxy.port}/ws", token_file=server.token_file)
    target = Target(server.agent_id, conversation)
    return await Seat.start(config_for(server, folder, endpoint=endpoint, target=target)).ready()


async def cut(proxy: ChaosProxy, how: str) -> None:
    if how == "tail":
        proxy.drop_tail(700)  # in the middle of a frame
        proxy.become("gone")
    elif how == "reset":
        proxy.become("gone")
        proxy.reset()
    elif how == "half-open":
        proxy.become("deaf")
    else:
        proxy.become("stall")


@pytest.mark.parametrize(
    ("how", "long"),
    [
        ("reset", 0.0),
        pytest.param("tail", 2.0, marks=pytest.mark.long),
        pytest.param("stall", 8.0, marks=pytest.mark.long),
        pytest.param("half-open", 40.0, marks=pytest.mark.long),
        pytest.param("reset", 70.0, marks=pytest.mark.long),
    ],
)
async def test_a_cut_tunnel_costs_nothing_of_the_turn(
    letta_server: RealServer, tmp_path: Path, how: str, long: float
) -> None:
    conversation = await letta_server.conversation()
    async with (
        keep_beside(letta_server, tmp_path, conversation),
        bad_network(letta_server.port) as proxy,
    ):
        seat = await through(letta_server, tmp_path / "here", proxy, conversation)
        try:
            key = await begun(seat)
            await cut(proxy, how)
            await over(letta_server, conversation, long)
            proxy.become("well")
            await caught_up(seat, letta_server, conversation, key)
            if how != "stall":
                await seat.until(lambda: seat.recovery is not None, what="what happened")
                assert seat.recovery is not None
                (note,) = seat.recovery.notes
                assert note.startswith("Meanwhile")
                assert "the turn ended" in note
        finally:
            await seat.quit()


async def test_a_relaunch_without_a_network_shows_what_was_known_and_settles_later(
    letta_server: RealServer, tmp_path: Path
) -> None:
    async with bad_network(letta_server.port) as proxy:
        endpoint = direct(f"ws://127.0.0.1:{proxy.port}/ws", token_file=letta_server.token_file)
        target = Target(letta_server.agent_id, await letta_server.conversation())
        cache = tmp_path / "cache" / "transcripts.sqlite3"
        config = config_for(letta_server, tmp_path, endpoint=endpoint, target=target, cache_path=cache)
        first = await Seat.start(config).ready()
        await first.said("[[run echo heard ==> say remembered]]")
        await first.until(lambda: first.approvals or first.texts("assistant"), what="the tool, or its answer")
        if first.approvals:
            first.send(Decide(first.approvals[0].request_id, "allow"))
        await first.reply("remembered")
        await first.rest()
        rows = [(r.key, r.kind, r.text, r.delivery, r.tool and r.tool.result) for r in first.rows]
        await first.quit()
        proxy.become("gone")
        again = Seat.start(config)
        try:
            await again.until(lambda: again.rows, what="what was known")
            await again.until(
                lambda: again.connection and again.connection.phase == "lost", what="no network"
            )
            proxy.become("well")
            await again.ready()
            updates = [u for u in again.seen if isinstance(u, TranscriptChanged)]
            assert [
                u.as_of is None for u in (updates[-1], *(u for u in updates if u.reset and u.splices))
            ] == [
                True,
                False,
            ]
            assert [(r.key, r.kind, r.text, r.delivery, r.tool and r.tool.result) for r in again.rows] == rows
        finally:
            await again.quit()


async def over(server: RealServer, conversation: str, at_least: float) -> None:
    """Until the turn has ended at the server, with nobody but the keeper subscribed."""
    began = asyncio.get_running_loop().time()

    async def ended() -> bool:
        rows = await server.history(conversation)
        return any("THE END" in str(row) for row in rows if row["message_type"] == "assistant_message")

    await until(ended, 30, "the turn goes on at the server")
    await asyncio.sleep(max(0.0, at_least - (asyncio.get_running_loop().time() - began)))
