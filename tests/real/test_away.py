"""Nobody is there, and somebody else goes on: what the keeper saw is told in one sentence on return."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from letta_tui.commands.keeper_port import KeeperAdapter
from letta_tui.keeper.client import stop_keeper
from letta_tui.keeper.ends import EndLog
from letta_tui.keeper.options import KeeperOptions, KeeperPaths
from letta_tui.transport.endpoint import direct
from letta_tui.worker.config import Target, WorkerConfig
from tests.support.seat import Seat, config_for
from tests.support.server import PlainSocket, RealServer, until

pytestmark = pytest.mark.real


@pytest.fixture
async def config(letta_server: RealServer, tmp_path: Path) -> AsyncIterator[WorkerConfig]:
    """A window in front of a server that is held by a keeper."""
    paths = KeeperPaths(tmp_path / "state", tmp_path / "run")
    endpoint = direct(letta_server.url, token_file=letta_server.token_file)
    options = KeeperOptions(url=letta_server.url, token_file=letta_server.token_file)
    yield config_for(
        letta_server,
        tmp_path,
        target=Target(letta_server.agent_id, await letta_server.conversation()),
        endpoint=None,
        keeper=KeeperAdapter(paths, options, "test", server=endpoint),
    )
    await stop_keeper(paths)


async def test_tools_that_ran_and_that_were_denied_and_a_turn_that_failed(
    letta_server: RealServer, config: WorkerConfig, tmp_path: Path
) -> None:
    window = await Seat.start(config).ready()
    await window.until(lambda: window.connection and window.connection.held, what="held")
    await window.said("[[run touch allowed; run touch denied ==> say finished]]")
    asked = await window.until(lambda: window.approvals, what="a question")
    await window.quit()
    agent, conversation = letta_server.agent_id, window.status.conversation_id
    async with PlainSocket(letta_server.url, letta_server.token_file.read_text()) as other:
        await other.join(agent, conversation)
        await other.decide(agent, conversation, asked[0].request_id, allow=True)
        second = await other.wait(
            lambda f: f.get("type") == "control_request" and f["request_id"] != asked[0].request_id
        )
        await other.decide(agent, conversation, second["request_id"], allow=False, reason="no")
        await other.finished()
        mark = len(other.frames)
        await other.say(agent, conversation, "[[http 400 the model is unwell]]")
        await other.finished(mark)
    await until(lambda: _noted(tmp_path, 2))
    again = await Seat.start(config).ready()
    try:
        await again.until(lambda: again.recovery and again.recovery.notes, what="what happened")
        assert again.recovery is not None
        (note,) = again.recovery.notes
        assert re.fullmatch(
            r"While you were away: one turn ended after \d+ s; "
            r"one turn failed after \d+ s \(400: the model is unwell\); Bash ran; Bash was denied\.",
            note,
        ), note
    finally:
        await again.quit()


async def _noted(folder: Path, turns: int) -> bool:
    ends = EndLog(KeeperPaths(folder / "state", folder / "run").ends).since(0)
    return sum(end.kind == "turn" for end in ends) >= turns
