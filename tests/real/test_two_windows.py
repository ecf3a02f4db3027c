"""Two windows of one person on one conversation: they come to show the same, and nobody's words are lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from letta_tui.seam.intents import Decide, SaveDraft
from letta_tui.worker.config import Target
from tests.real import thousand
from tests.support.seat import Seat, config_for
from tests.support.server import RealServer

pytestmark = pytest.mark.real


@pytest.fixture
async def pair(letta_server: RealServer, tmp_path: Path) -> AsyncIterator[tuple[Seat, Seat]]:
    target = Target(letta_server.agent_id, await letta_server.conversation())
    seats = [
        Seat.start(config_for(letta_server, tmp_path, target=target, window_id=name))
        for name in ("left", "right")
    ]
    try:
        for seat in seats:
            await seat.ready()
        yield seats[0], seats[1]
    finally:
        for seat in seats:
            if seat.closed is None:
                await seat.quit()


def shown(seat: Seat) -> list[tuple[Any, ...]]:
    """What a person reads, without what is each window's own."""
    return [
        (
            row.kind,
            row.text,
            row.client_message_id,
            row.delivery,
            row.tool and (row.tool.name, row.tool.state),
        )
        for row in seat.rows
        if row.kind in ("user", "assistant", "tool")
    ]


async def converged(one: Seat, other: Seat) -> list[tuple[Any, ...]]:
    def same() -> bool:
        one.look()
        other.look()
        return bool(one.rows) and shown(one) == shown(other)

    try:
        await one.until(same, what="both windows show the same")
    except AssertionError:
        raise AssertionError(f"{shown(one)}\n{shown(other)}") from None
    return shown(one)


async def test_messages_from_both_at_once_run_once_each_in_one_order(
    pair: tuple[Seat, Seat], letta_server: RealServer
) -> None:
    left, right = pair
    keys = [await left.said("[[words 30 rate=20; say begun]]")]
    left.settled.clear()
    for number in range(3):
        for seat, name in ((left, "left"), (right, "right")):
            seat.say(f"{name} {number} [[say {name} {number} heard]]")
    queued = await right.until(lambda: [i for i in right.queue if not i.held_here], what="some wait")
    assert all(item.mine for item in queued)  # also those that the other window sent
    for seat in pair:
        await seat.until(lambda seat=seat: len(seat.settled) >= 3, what="all are on disk")
        assert all(settled.ok for settled in seat.settled.values())
        keys += [settled.client_message_id for settled in seat.settled.values()]
    for seat in pair:
        await seat.rest(60)
    rows = await converged(left, right)
    assert len(keys) == 7
    assert all(row[3] == "delivered" for row in rows if row[0] == "user")
    history = await letta_server.history(left.status.conversation_id)
    in_history = [m["otid"] for m in history if m["message_type"] == "user_message"]
    assert sorted(in_history) == sorted(keys)
    assert [row[2] for row in rows if row[0] == "user"] == in_history


async def test_an_approval_answered_in_one_closes_in_the_other_and_says_where(
    pair: tuple[Seat, Seat],
) -> None:
    left, right = pair
    await left.said("[[run touch by-the-other ==> say finished]]")
    for seat in pair:
        await seat.until(lambda seat=seat: seat.approvals, what="an approval in both")
    assert left.approvals[0].request_id == right.approvals[0].request_id
    for seat in pair:
        seat.look()
        assert [row.kind for row in seat.rows] == ["user", "tool"]  # also where the message was not sent
    right.send(Decide(right.approvals[0].request_id, "allow"))
    for seat in pair:
        await seat.until(lambda seat=seat: not seat.approvals, what="closed in both")
        await seat.reply("finished")
        await seat.rest()

    def tool(seat: Seat) -> Any:
        seat.look()
        return next(row.tool for row in seat.rows if row.tool is not None)

    assert tool(right).decided_by == "you"
    await left.until(lambda: tool(left).decided_by == "another window", what="left says who decided")
    await converged(left, right)


async def test_what_a_stranger_sent_stands_above_its_reply_while_that_grows(
    letta_server: RealServer, tmp_path: Path
) -> None:
    conversation = await letta_server.conversation()
    target = Target(letta_server.agent_id, conversation)
    seat = await Seat.start(config_for(letta_server, tmp_path, target=target)).ready()
    try:
        async with letta_server.plain() as stranger:
            await stranger.join(letta_server.agent_id, conversation)
            await stranger.say(letta_server.agent_id, conversation, "[[words 40 rate=20]]")
            await seat.until(lambda: len(seat.rows) == 2, what="its message beside the growing reply")
            assert [(row.kind, row.live) for row in seat.rows] == [("user", False), ("assistant", True)]
            await stranger.finished()
        await seat.rest()
        assert [row.kind for row in seat.rows] == ["user", "assistant"]
    finally:
        await seat.quit()


async def test_each_window_keeps_its_own_draft(pair: tuple[Seat, Seat], letta_server: RealServer) -> None:
    left, right = pair
    left.send(SaveDraft("what left is writing"))
    right.send(SaveDraft("what right is writing"))
    await left.said("[[say hello]]")
    await right.rest()
    for seat in pair:
        seat.look()
        assert seat.drafts == []
    config = left.worker._config
    await left.quit()
    again = Seat.start(config)
    try:
        await again.ready()
        assert [draft.text for draft in again.drafts] == ["what left is writing"]
    finally:
        await again.quit()


@pytest.mark.long  # python -m tests.real.thousand is the whole; tests/ledger has the two processes
async def test_two_processes_on_one_ledger_write_each_message_once(
    letta_server: RealServer, tmp_path: Path
) -> None:
    counted = await thousand.run(letta_server, tmp_path, 12)  # the long run has a command of its own
    assert counted.violations == ()
    assert counted.messages == counted.attempts == counted.writes == counted.rows == 12
