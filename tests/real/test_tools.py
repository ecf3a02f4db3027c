"""Tools of the person's own on the real server: called once each, whatever ends meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from letta_tui.ledger.store import Ledger
from letta_tui.seam.intents import Abort, Decide
from letta_tui.seam.state import ApprovalView, ToolView
from letta_tui.seam.updates import Notice
from letta_tui.tools import mcp
from letta_tui.tools.values import McpServer, Tool
from letta_tui.transport.endpoint import direct
from letta_tui.worker.config import Hands, Target
from letta_tui.worker.crashpoints import VARIABLE
from tests.support.seat import Seat, config_for
from tests.support.server import RealServer, until
from tests.support.wire import Wire

pytestmark = pytest.mark.real

# Leaves a line per run, waits for the file "go" if told to, and answers.
PROGRAM = """
import json, os, pathlib, sys, time
asked = json.load(sys.stdin)
folder = pathlib.Path(sys.argv[1])
with open(folder / "runs", "a") as runs:
    runs.write(f"{os.getpid()}\\n")
while len(sys.argv) > 2 and not (folder / "go").exists():
    time.sleep(0.02)
print("sunny in", asked["city"])
"""
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CALL = 'weather? [[call weather {"city":"Ulm"} ==> say fin]]'


def weather(folder: Path, *, wait: bool = False, **changes: Any) -> Tool:
    command = (sys.executable, "-c", PROGRAM, str(folder), *(("wait",) if wait else ()))
    values: dict[str, Any] = {"command": command, "approval": "auto", **changes}
    return Tool("weather", "Tells the weather.", SCHEMA, **values)


def runs(folder: Path) -> list[str]:
    file = folder / "runs"
    return file.read_text().split() if file.exists() else []


@asynccontextmanager
async def seated(server: RealServer, folder: Path, **changes: Any) -> AsyncIterator[Seat]:
    values = {"target": Target(agent_id=server.agent_id, new=True), **changes}
    seat = Seat.start(config_for(server, folder, **values))
    try:
        yield await seat.ready(timeout=40)
    finally:
        await seat.quit(timeout=25)


async def asked(seat: Seat) -> ApprovalView:
    return (await seat.until(lambda: seat.approvals, what="a card"))[0]


def tool_of(seat: Seat) -> ToolView:
    return next(row.tool for row in reversed(seat.rows) if row.tool is not None)


def states(folder: Path) -> list[str]:
    with Ledger.open(folder / "ledger.sqlite3", Hands().stamp) as ledger:
        return [call.state for place in ledger.conversations() for call in ledger.tool_calls(place.place)]


def said(seat: Seat, words: str) -> Callable[[], bool]:
    return lambda: any(words in update.text for update in seat.seen if isinstance(update, Notice))


def offered(server: RealServer, words: str) -> set[str]:
    """The tools the model was offered with the message that has these words in it."""
    return set(server.model_requests(words)[0]["tools"])


def told(seat: Seat, words: str) -> Callable[[], bool]:
    return lambda: seat.recovery is not None and any(words in note for note in seat.recovery.notes)


@pytest.mark.parametrize("mode", ["standard", "unrestricted"])
async def test_an_allowed_call_runs_once_and_its_result_reaches_the_model(
    letta_server: RealServer, tmp_path: Path, mode: Any
) -> None:
    """In mode "standard" the server asks, in "unrestricted" the card is ours."""
    async with seated(letta_server, tmp_path, mode=mode, tools=(weather(tmp_path, approval="ask"),)) as seat:
        await seat.said(CALL)
        card = await asked(seat)
        assert (card.tool_name, "Ulm" in card.arguments) == ("weather", True)
        assert seat.status.activity == "approval"
        assert runs(tmp_path) == []
        seat.send(Decide(card.request_id, "allow"))
        seat.send(Decide(card.request_id, "allow"))  # a second key press
        await seat.reply("fin")
        await seat.rest()
        tool = tool_of(seat)
        assert (tool.state, tool.decided_by, tool.result) == ("done", "you", "sunny in Ulm")
    assert len(runs(tmp_path)) == 1
    assert states(tmp_path) == ["confirmed"]
    assert any("sunny in Ulm" in str(r["results"]) for r in letta_server.model_requests("weather?"))


@pytest.mark.parametrize("mode", ["standard", "unrestricted"])
async def test_a_denied_call_is_not_run_and_the_model_is_told(
    letta_server: RealServer, tmp_path: Path, mode: Any
) -> None:
    async with seated(letta_server, tmp_path, mode=mode, tools=(weather(tmp_path, approval="ask"),)) as seat:
        await seat.said(CALL)
        seat.send(Decide((await asked(seat)).request_id, "deny", f"not in {mode} mode"))
        await seat.reply("fin")
        await seat.rest()
        assert tool_of(seat).state == "denied"
    assert runs(tmp_path) == []
    assert f"not in {mode} mode" in letta_server.model_log.read_text()


async def test_nobody_is_asked_for_a_tool_that_the_config_allows_except_in_strict_mode(
    letta_server: RealServer, tmp_path: Path
) -> None:
    async with seated(letta_server, tmp_path, tools=(weather(tmp_path),)) as seat:
        await seat.said(CALL)
        await seat.reply("fin")
        await seat.rest()
        assert "ApprovalsChanged" not in {
            type(u).__name__ for u in seat.seen if getattr(u, "approvals", getattr(u, "items", ()))
        }
    assert len(runs(tmp_path)) == 1
    async with seated(letta_server, tmp_path, mode="strict", tools=(weather(tmp_path),)) as seat:
        await seat.said(CALL)
        seat.send(Decide((await asked(seat)).request_id, "allow"))
        await seat.reply("fin")
    assert len(runs(tmp_path)) == 2


async def test_a_call_that_takes_too_long_is_ended_and_told(letta_server: RealServer, tmp_path: Path) -> None:
    async with seated(letta_server, tmp_path, tools=(weather(tmp_path, wait=True, timeout=1.0),)) as seat:
        await seat.said(CALL)
        await seat.reply("fin")
        await seat.rest()
        assert "weather was stopped after 1 s" in tool_of(seat).result
    assert not _runs_now(int(runs(tmp_path)[0]))


async def test_stopping_the_turn_ends_the_tool(letta_server: RealServer, tmp_path: Path) -> None:
    async with seated(letta_server, tmp_path, tools=(weather(tmp_path, wait=True),)) as seat:
        await seat.said(CALL)
        await seat.until(lambda: runs(tmp_path), what="it runs")
        seat.send(Abort())
        await seat.rest()
        assert not _runs_now(int(runs(tmp_path)[0]))
        await seat.said("[[say again]]")
        await seat.reply("again")


async def test_tools_work_again_after_a_reconnect_and_a_lost_answer_is_told_not_rerun(
    own_server: RealServer, tmp_path: Path
) -> None:
    tool = weather(tmp_path, wait=True)
    async with seated(own_server, tmp_path, tools=(tool,)) as seat:
        await seat.said(CALL)
        await seat.until(lambda: runs(tmp_path), what="it runs")
        own_server.stop()  # the socket breaks while the tool runs
        await seat.until(lambda: seat.connection.phase != "ready", what="the break was noticed")
        (tmp_path / "go").touch()
        await seat.until(lambda: "finished" in states(tmp_path), what="it ran to its end")
        own_server.start()
        await seat.ready(timeout=40)
        await seat.until(told(seat, "weather ran"), what="the lost answer")
        await seat.until(told(seat, "Tools re-registered: weather."), what="what was rebuilt")
        await seat.rest(timeout=40)
        before = len(runs(tmp_path))
        await seat.said('once more [[call weather {"city":"Bonn"} ==> say fin2]]')
        await seat.reply("fin2")
        await seat.rest()
        assert tool_of(seat).result == "sunny in Bonn"
        assert len(runs(tmp_path)) == before + 1
    assert "lost" in states(tmp_path)


@pytest.mark.long
async def test_a_cut_socket_loses_the_answer_and_not_the_tool(
    letta_server: RealServer, tmp_path: Path
) -> None:
    """Somebody else stays subscribed, so the turn goes on without the answer."""
    conversation = await letta_server.conversation()
    target = Target(agent_id=letta_server.agent_id, conversation_id=conversation)
    async with letta_server.plain() as other, Wire(letta_server.url) as wire:
        await other.join(letta_server.agent_id, conversation)
        endpoint = direct(wire.url, token_file=letta_server.token_file)
        tools = (weather(tmp_path, wait=True),)
        async with seated(letta_server, tmp_path, target=target, endpoint=endpoint, tools=tools) as seat:
            await seat.said(CALL)
            await seat.until(lambda: runs(tmp_path), what="it runs")
            wire.cut()
            await other.finished()  # the model was told that nobody answers
            await seat.until(lambda: len(wire.opened) > 1, what="a new connection")
            await seat.ready()
            (tmp_path / "go").touch()
            await seat.until(told(seat, "weather ran, but its answer did not reach"), what="the lost answer")
            await seat.said('once more [[call weather {"city":"Bonn"} ==> say fin2]]')
            await seat.reply("fin2")
            await seat.rest()
            assert tool_of(seat).result == "sunny in Bonn"
    assert len(runs(tmp_path)) == 2
    assert states(tmp_path) == ["lost", "confirmed"]


@pytest.mark.long
async def test_a_card_of_an_earlier_connection_says_that_allowing_it_cannot_run_the_tool(
    letta_server: RealServer, tmp_path: Path
) -> None:
    """The server calls a tool only over the connection that its turn began with."""
    conversation = await letta_server.conversation()
    target = Target(agent_id=letta_server.agent_id, conversation_id=conversation)
    async with letta_server.plain() as other, Wire(letta_server.url) as wire:
        await other.join(letta_server.agent_id, conversation)
        endpoint = direct(wire.url, token_file=letta_server.token_file)
        tools = (weather(tmp_path, approval="ask"),)
        async with seated(letta_server, tmp_path, target=target, endpoint=endpoint, tools=tools) as seat:
            await seat.said(CALL)
            assert (await asked(seat)).note == ""
            wire.cut()
            await seat.until(told(seat, "Tools re-registered: weather."), what="what was rebuilt")
            await seat.ready()
            card = await seat.until(
                lambda: next((c for c in seat.approvals if "cannot be run" in c.note), None), what="the note"
            )
            assert card is not None
            seat.send(Decide(card.request_id, "allow"))
            await seat.reply("fin")
            await seat.rest()
            assert "not connected" in tool_of(seat).result
            await seat.said('once more [[call weather {"city":"Bonn"} ==> say fin2]]')
            fresh = await asked(seat)
            assert fresh.note == ""
            seat.send(Decide(fresh.request_id, "allow"))
            await seat.reply("fin2")
    assert len(runs(tmp_path)) == 1


@pytest.mark.parametrize(
    ("point", "ran", "words"),
    [
        pytest.param("tool.after_record", 0, "not known", marks=pytest.mark.long),
        pytest.param("tool.after_run", 1, "not known", marks=pytest.mark.long),
        ("tool.after_result", 1, "weather ran, but its answer did not reach the server"),
    ],
)
async def test_a_kill_between_run_and_answer_is_told_and_nothing_runs_again(
    letta_server: RealServer, tmp_path: Path, point: str, ran: int, words: str
) -> None:
    conversation = await letta_server.conversation()
    script = tmp_path / "client.py"
    script.write_text(_CLIENT)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(script),
        letta_server.url,
        str(letta_server.token_file),
        str(tmp_path),
        letta_server.agent_id,
        conversation,
        env={**os.environ, VARIABLE: point, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    async with asyncio.timeout(40):
        assert await process.wait() == -signal.SIGKILL
    assert len(runs(tmp_path)) == ran

    target = Target(agent_id=letta_server.agent_id, conversation_id=conversation)
    async with seated(letta_server, tmp_path, target=target, tools=(weather(tmp_path),)) as seat:
        await seat.until(told(seat, words), what="what is known of the call")
        await seat.said("and now [[say still here]]")
        await seat.reply("still here")
        await seat.rest()
    assert len(runs(tmp_path)) == ran
    assert states(tmp_path) == ["lost"]


_CLIENT = """
import asyncio, sys
from pathlib import Path
from types import SimpleNamespace
from letta_tui.worker.config import Target
from tests.real.test_tools import CALL, weather
from tests.support.seat import Seat, config_for

async def main():
    url, token_file, folder, agent, conversation = sys.argv[1:]
    server = SimpleNamespace(url=url, token_file=Path(token_file), work=folder)
    target = Target(agent_id=agent, conversation_id=conversation)
    seat = Seat.start(config_for(server, Path(folder), target=target, tools=(weather(Path(folder)),)))
    await seat.ready()
    await seat.said(CALL)
    await seat.reply("fin")

asyncio.run(main())
"""


@pytest.mark.skipif(not mcp.installed(), reason="the mcp package is not installed")
async def test_tools_of_an_mcp_server_are_offered_called_and_ended_with_the_session(
    letta_server: RealServer, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    small = McpServer(
        "small",
        command=(sys.executable, str(Path(__file__).parents[1] / "tools" / "mcp_server.py")),
        approval="auto",
        environment={"PID_FILE": str(pids)},
    )
    gone = McpServer("gone", command=("/nowhere/server",))
    async with seated(letta_server, tmp_path, mcp=(small, gone)) as seat:
        await seat.until(told(seat, "MCP server gone did not start"), what="the one that failed")
        await seat.said('sum? [[call small__add {"a":2,"b":3} ==> say fin]]')
        await seat.reply("fin")
        assert tool_of(seat).result == "sum 5"
        # It says in mid-turn that it has other tools: the model is offered those from the next message on.
        await seat.said("other ones? [[call small__grow {} ==> say fin2]]")
        await seat.reply("fin2")
        await seat.until(said(seat, "small__grown"), what="what is registered now")
        await seat.rest()
        await seat.said("grown? [[call small__grown {} ==> say fin3]]")
        await seat.reply("fin3")
        assert tool_of(seat).result == "grown"
        assert _runs_now(int(pids.read_text()))
    assert not _runs_now(int(pids.read_text()))
    before, after = (offered(letta_server, words) for words in ("sum?", "grown?"))
    assert after - before == {"small__grown"}
    assert before - after == {"small__broken"}


async def test_what_a_conversation_had_is_sent_again(letta_server: RealServer, tmp_path: Path) -> None:
    """Folder, skills and toolset come back from the ledger; what is gone is said."""
    folder = tmp_path / "gone-soon"
    folder.mkdir()
    first = {"cwd": str(folder), "skill_sources": ("project",), "toolset": "none"}
    async with seated(letta_server, tmp_path, tools=(weather(tmp_path),), **first) as seat:
        await seat.said("first words [[say one]]")
        await seat.reply("one")
        conversation = seat.status.conversation_id
        assert seat.status.cwd == str(folder)
    assert [r["tools"] for r in letta_server.model_requests("first words")] == [["weather"]]

    folder.rmdir()
    target = Target(agent_id=letta_server.agent_id, conversation_id=conversation)
    other = replace(weather(tmp_path), name="search")
    async with seated(letta_server, tmp_path, target=target, tools=(other,)) as seat:
        await seat.until(told(seat, "Tools no longer offered: weather."), what="the tool that is gone")
        await seat.until(told(seat, f"The folder {folder}"), what="the folder that is gone")
        await seat.said("second words [[say two]]")
        await seat.reply("two")
    # The toolset of the first session, with the tool of ours that is there now.
    assert [r["tools"] for r in letta_server.model_requests("second words")] == [["search"]]


def _runs_now(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


__all__ = ["CALL", "until", "weather"]
