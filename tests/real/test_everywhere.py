"""The same things, whichever way the server is reached: embedded, by token, through TLS and a proxy, hosted.

The hosted service itself is not reached from here: its stand-in has the real server behind it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from letta_tui.conversation.reconcile import Policy
from letta_tui.ledger.store import Ledger
from letta_tui.seam.intents import Decide, NewConversation, OpenConversation, ResolveSend
from letta_tui.seam.state import ApprovalView
from letta_tui.worker.config import Hands, Target
from tests.real.places import WAYS, Way, way_to
from tests.real.seat_anywhere import place_of
from tests.support.seat import Seat
from tests.support.server import RealServer

pytestmark = pytest.mark.real


@pytest.fixture(params=WAYS)
async def way(request: pytest.FixtureRequest, letta_server: RealServer, tmp_path: Path) -> AsyncIterator[Way]:
    async with way_to(request.param, letta_server, tmp_path / "ours") as way:
        yield way
        if way.double is not None:
            assert way.double.violations == []


async def test_chat_queue_and_approvals(way: Way) -> None:
    server = way.server
    seat = Seat.start(way.config())
    try:
        await seat.ready()
        first = await seat.said("hello [[words 30 rate=60]]")
        second = await seat.said("and this one waits [[say second]]")
        await seat.reply("w0029")
        await seat.reply("second")
        await seat.rest()
        for key in (first, second):
            row = seat.row_of(key)
            assert row is not None
            assert row.delivery == "delivered"

        mark = f"{way.name}-{os.getpid()}"
        allowed = await seat.said(f"[[run touch {mark}.yes ==> say made]]")
        card = await asked(seat)
        assert not (server.work / f"{mark}.yes").exists()
        seat.send(Decide(card.request_id, "allow"))
        await seat.reply("made")
        await seat.said(f"[[run touch {mark}.no ==> say not made]]")
        card = await asked(seat, card.request_id)
        seat.send(Decide(card.request_id, "deny", "no"))
        await seat.rest()
        assert (server.work / f"{mark}.yes").exists()
        assert not (server.work / f"{mark}.no").exists()

        history = await server.history(seat.status.conversation_id)
        mine = [m["otid"] for m in history if m["message_type"] == "user_message"]
        assert mine[:3] == [first, second, allowed]
        assert "".join(seat.texts("assistant")) == "".join(
            said(m) for m in history if m["message_type"] == "assistant_message"
        )
    finally:
        await seat.quit()


async def asked(seat: Seat, before: str = "") -> ApprovalView:
    """The next approval that is asked for."""
    await seat.until(lambda: any(a.request_id != before for a in seat.approvals), what="an approval")
    return next(a for a in seat.approvals if a.request_id != before)


async def test_a_relaunch_goes_on_in_the_same_conversation(way: Way) -> None:
    seat = Seat.start(way.config())
    try:
        await seat.ready()
        await seat.said("[[say one]]")
        await seat.reply("one")
        await seat.rest()
        was = seat.status.conversation_id
    finally:
        await seat.quit()
    again = Seat.start(way.config(target=Target()))
    try:
        await again.ready()
        assert again.status.conversation_id == was
        await again.reply("one")
        again.send(NewConversation())
        await again.until(lambda: again.status.conversation_id not in ("", was), what="a new conversation")
        await again.ready()
        await again.said("[[say two]]")
        await again.reply("two")
        await again.rest()
        assert "one" not in again.texts("assistant")
        again.send(OpenConversation(way.server.agent_id, was))
        await again.until(lambda: "one" in again.texts("assistant"), what="the first conversation")
        await again.ready()
        assert again.status.conversation_id == was
    finally:
        await again.quit()


# A sample: the whole matrix is walked over the direct way, in test_kill_matrix.py.
KILLS = (
    ("embedded", "send.after_write"),
    ("token", "send.after_accept"),
    ("tls", "send.after_attempt"),
    ("relay", "send.after_attempt"),
    ("relay", "send.after_write"),
    ("relay", "send.after_accept"),
)


@pytest.mark.parametrize(("way", "point"), KILLS, indirect=["way"])
async def test_a_kill_loses_and_doubles_nothing(way: Way, tmp_path: Path, point: str) -> None:
    mark = f"{way.name}-{point}-{os.getpid()}"
    conversation = await way.server.conversation()
    async with way.server.plain() as holder:  # in the keeper's place
        await holder.ask(
            "sync",
            runtime={"agent_id": way.server.agent_id, "conversation_id": conversation},
            recover_approvals=False,
            force_device_status=True,
        )
        await killed_at(way, point, conversation, [["say", f"{mark} [[say done {mark}]]"], ["words"]])
        await come_back(way, conversation, mark)
    with Ledger.open(tmp_path / "ours" / "ledger.sqlite3", Hands().stamp) as ledger:
        sends = ledger.sends()
    history = await way.server.history(conversation)
    rows = [m["otid"] for m in history if m["message_type"] == "user_message"]
    assert len(rows) == 1
    assert [s.client_message_id for s in sends if s.delivery == "delivered"] == rows
    assert way.server.runs(mark) == 1


async def come_back(way: Way, conversation: str, mark: str) -> None:
    """A relaunch: it opens the same conversation, and the person takes what is offered."""
    seat = Seat.start(way.config(target=Target(), window_id="relaunch", policy=Policy(settle=0.4)))
    try:
        await seat.ready()
        assert seat.status.conversation_id == conversation
        await seat.until(lambda: settled(seat), what="everything is settled")
        for send in seat.sends:
            # Whoever reads the words resends only what cannot run twice; a hosted one is sent with consent.
            actions = [choice.action for choice in send.choices]
            action = next(a for a in ("send", "resend", "send_new") if a in actions)
            if way.double is not None and send.delivery != "prepared":
                assert send.delivery == "unknown"
                assert all(c.risk for c in send.choices if c.action in ("resend", "send", "send_new"))
            seat.send(ResolveSend(send.client_message_id, action))
        await seat.reply(f"done {mark}")
        await seat.rest()
    finally:
        await seat.quit()


def settled(seat: Seat) -> bool:
    checking = seat.recovery is not None and seat.recovery.checking
    flying = ("unconfirmed", "accepted", "queued", "started")
    return (
        seat.status.activity == "idle"
        and not checking
        and not any(send.delivery in flying and not send.choices for send in seat.sends)
    )


async def killed_at(way: Way, point: str, conversation: str, steps: list[list[str]]) -> None:
    """Play ``steps`` in a process of its own that is killed at the named point."""
    place = place_of(way.endpoint)
    folder = way.config().ledger_path.parent
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.real.seat_anywhere", str(folder), json.dumps(place),
        str(way.server.work), way.server.agent_id, conversation, json.dumps(steps),
        env={**os.environ, "LETTA_TUI_CRASH_AT": point},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    _, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == -9, err.decode()


def said(row: dict[str, Any]) -> str:
    content = row["content"]
    return content if isinstance(content, str) else "".join(p.get("text", "") for p in content)
