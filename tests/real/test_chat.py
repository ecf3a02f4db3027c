"""A whole conversation through the worker, on the real server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from letta_tui.seam.intents import Abort, CancelQueued, Decide
from letta_tui.worker.config import Target
from tests.support.seat import Seat, config_for
from tests.support.server import RealServer

pytestmark = pytest.mark.real


@pytest.fixture
async def seat(letta_server: RealServer, tmp_path: Path) -> AsyncIterator[Seat]:
    config = config_for(letta_server, tmp_path, target=Target(agent_id=letta_server.agent_id, new=True))
    seat = Seat.start(config)
    try:
        yield await seat.ready()
    finally:
        await seat.quit()


async def test_a_message_streams_an_answer_and_is_delivered(seat: Seat, letta_server: RealServer) -> None:
    key = await seat.said("hello [[reason think hard; words 20 rate=60]]")
    reply = await seat.reply("w0019")
    await seat.rest()

    row = seat.row_of(key)
    assert row is not None
    assert row.delivery == "delivered"
    assert row.text.startswith("hello")
    assert [r.kind for r in seat.rows] == ["user", "reasoning", "assistant"]
    history = await letta_server.history(seat.status.conversation_id)
    assert [m["otid"] for m in history if m["message_type"] == "user_message"] == [key]
    assert reply.text.strip() == " ".join(f"w{n:04}" for n in range(20))


async def test_a_message_sent_meanwhile_is_queued_and_can_be_cancelled(
    seat: Seat, letta_server: RealServer
) -> None:
    await seat.said("[[words 900 rate=15]]")
    await seat.until(lambda: seat.texts("assistant"), what="the first words")
    second = await seat.said("the second one")
    third = await seat.said("the third one [[say third]]")
    items = await seat.until(
        lambda: (
            (on_server := [i for i in seat.queue if not i.held_here]) and len(on_server) == 2 and on_server
        ),
        what="two queued",
    )
    assert [i.client_message_id for i in items] == [second, third]

    seat.send(CancelQueued(items[0].item_id))
    await seat.until(lambda: [i.client_message_id for i in seat.queue] == [third], what="the second is out")
    assert await seat.until(lambda: [d.text for d in seat.drafts]) == ["the second one"]

    seat.send(Abort())
    await seat.until(lambda: seat.status.activity == "idle", what="aborted")
    await seat.until(lambda: seat.queue and seat.queue[0].paused, what="an interrupt pauses the queue")
    await seat.said("go on [[say fourth]]")
    await seat.rest()
    history = await letta_server.history(seat.status.conversation_id)
    otids = [m.get("otid") for m in history if m["message_type"] == "user_message"]
    assert second not in otids
    assert otids.count(third) == 1


async def test_an_allowed_command_runs_once(seat: Seat, letta_server: RealServer) -> None:
    await seat.said("[[run touch made-here && echo done-it ==> say finished]]")
    approval = (await seat.until(lambda: seat.approvals, what="an approval"))[0]
    assert not (letta_server.work / "made-here").exists()
    assert seat.status.activity == "approval"

    seat.send(Decide(approval.request_id, "allow"))
    seat.send(Decide(approval.request_id, "allow"))  # a second key press
    await seat.reply("finished")
    await seat.rest()
    assert (letta_server.work / "made-here").exists()
    tools = [row.tool for row in seat.rows if row.tool is not None]
    assert len(tools) == 1
    assert tools[0].state == "done"
    assert tools[0].decided_by == "you"
    assert "done-it" in tools[0].result


async def test_the_reason_of_a_denial_reaches_the_model(seat: Seat, letta_server: RealServer) -> None:
    await seat.said("[[run touch never-made ==> say understood]]")
    approval = (await seat.until(lambda: seat.approvals, what="an approval"))[0]
    seat.send(Decide(approval.request_id, "deny", "not on a Sunday"))
    await seat.reply("understood")
    await seat.rest()
    assert not (letta_server.work / "never-made").exists()
    tool = next(row.tool for row in seat.rows if row.tool is not None)
    assert tool.state == "denied"
    assert tool.reason == "not on a Sunday"
    assert "not on a Sunday" in letta_server.model_log.read_text()


async def test_an_abort_ends_when_the_server_says_so(seat: Seat) -> None:
    key = await seat.said("[[words 400 rate=30]]")
    await seat.until(lambda: seat.texts("assistant"), what="the first words")
    seat.send(Abort())
    await seat.rest()
    row = await seat.until(lambda: (r := seat.row_of(key)) and r.outcome == "cancelled" and r)
    assert row.delivery == "delivered"
    await seat.said("[[say again]]")
    await seat.reply("again")
