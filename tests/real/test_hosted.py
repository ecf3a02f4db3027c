"""The hosted relay through the whole worker: rotation, sandboxes, machines, and a feed that repeats itself.

The service is a stand-in, written from its documents; the server behind it is the real one.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from letta_tui.seam.intents import ListDevices, ResolveSend, UseDevice
from letta_tui.seam.updates import DevicesListed, NeedsDevice
from letta_tui.transport.endpoint import hosted
from letta_tui.worker.config import HostedOptions, Target
from tests.real.places import Way, way_to
from tests.support.seat import Seat
from tests.support.server import RealServer
from tests.transport.relay_double import TOKEN, Device, RelayDouble, Trouble

pytestmark = pytest.mark.real


def double_of(way: Way) -> RelayDouble:
    assert way.double is not None
    return way.double


async def test_the_connection_id_rotates_in_mid_reply(letta_server: RealServer, tmp_path: Path) -> None:
    async with way_to("relay", letta_server, tmp_path / "ours") as way:
        double = double_of(way)
        seat = Seat.start(way.config())
        try:
            await seat.ready()
            was = seat.status.conversation_id
            key = await seat.said("[[words 60 rate=30]]")
            await seat.until(lambda: seat.texts("assistant"), what="the first words")
            new = await double.rotate()
            await seat.reply("w0059")
            await seat.rest()
            row = seat.row_of(key)
            assert row is not None
            assert row.delivery == "delivered"
            assert seat.status.conversation_id == was
            assert [text.strip() for text in seat.texts("assistant")] == [words(60)]
            assert [s.socket.request.path.split("/")[3] for s in double.subscribers if s.socket.request] == [
                new,
                new,
            ]
            assert letta_server.runs("[[words 60 rate=30]]") == 1
        finally:
            await seat.quit()
        assert double.violations == []


@pytest.mark.parametrize("channel", ["control", "stream"])
async def test_half_a_pair_is_no_connection(letta_server: RealServer, tmp_path: Path, channel: str) -> None:
    async with way_to("relay", letta_server, tmp_path / "ours") as way:
        seat = Seat.start(way.config())
        try:
            await seat.ready()
            await double_of(way).cut(channel)
            await seat.until(lambda: len(double_of(way).all_subscribers) == 4, what="another pair")
            await seat.ready()
            await seat.said("[[say whole again]]")
            await seat.reply("whole again")
            await seat.rest()
        finally:
            await seat.quit()


@pytest.mark.long
async def test_ten_thousand_frames_with_repeats_and_out_of_order(
    letta_server: RealServer, tmp_path: Path
) -> None:
    """Screen equals history; each delivery was acknowledged on the socket that brought it."""
    trouble = Trouble(seed=5, duplicate=0.2, drop=0.01, delay=0.01)
    async with way_to("relay", letta_server, tmp_path / "ours", trouble) as way:
        double = double_of(way)
        seat = Seat.start(way.config())
        try:
            await seat.ready()
            asked = 0
            while sum(sum(s.delivered.values()) for s in double.all_subscribers) < 10_000:
                asked += 1
                assert asked < 20
                await seat.said(f"round {asked} [[words 700 rate=2000]]")
                await whole_replies(seat, asked)
                await seat.rest()
            history = await letta_server.history(seat.status.conversation_id)
            assert seat.texts("assistant") == [
                said(m) for m in history if m["message_type"] == "assistant_message"
            ]
            users = [m for m in history if m["message_type"] == "user_message"]
            assert [r.client_message_id for r in seat.rows if r.kind == "user"] == [m["otid"] for m in users]
            until = time.monotonic() + 10
            while double.unacknowledged():
                assert time.monotonic() < until, "not everything was acknowledged"
                await asyncio.sleep(0.05)
            for socket in double.subscribers:
                assert set(socket.acked) == set(socket.delivered)
        finally:
            await seat.quit()
        assert double.violations == []


async def test_an_expired_sandbox_is_made_anew_once_before_the_send(
    letta_server: RealServer, tmp_path: Path
) -> None:
    async with way_to("relay", letta_server, tmp_path / "ours") as way:
        double = double_of(way)
        repository = {"owner": "somebody", "repo": "project"}
        options = HostedOptions(sandbox=True, repositories=(repository,), sandbox_minutes=7)
        endpoint = hosted(double.base, token=TOKEN)
        seat = Seat.start(way.config(endpoint=endpoint, hosted=options))
        try:
            await seat.ready()
            conversation = seat.status.conversation_id
            await seat.until(
                lambda: seat.connection is not None and "7 min" in seat.connection.goes_on,
                what="what becomes of a turn without a window",
            )
            [(name, sandbox)] = double.sandboxes.items()
            assert sandbox["body"] == {"conversationId": conversation, "githubRepositories": [repository]}
            double.expired.add(name)
            sockets = len(double.all_subscribers)
            mark = f"sandbox {tmp_path.name}"
            key = await seat.said(f"{mark} [[say in a new one]]")
            await seat.reply("in a new one")
            await seat.rest()
            assert len(double.all_subscribers) == sockets + 2  # a session of its own
            assert seat.status.conversation_id == conversation
            assert letta_server.runs(mark) == 1
            inputs = [c for c in double.commands if c["type"] == "input"]
            assert [c["payload"]["messages"][0]["client_message_id"] for c in inputs] == [key]
            assert any("sandbox had expired" in notice for notice in seat.notices)
        finally:
            await seat.quit()


async def test_a_sandbox_that_expires_again_and_again_sends_nothing(
    letta_server: RealServer, tmp_path: Path
) -> None:
    async with way_to("relay", letta_server, tmp_path / "ours") as way:
        double = double_of(way)
        endpoint = hosted(double.base, token=TOKEN)
        seat = Seat.start(way.config(endpoint=endpoint, hosted=HostedOptions(sandbox=True)))
        try:
            await seat.ready()
            double.lifetime = 1  # one refresh when it is made, and gone
            [name] = double.sandboxes
            double.expired.add(name)
            key = await seat.said("never sent")
            send = await seat.until(
                lambda: (view := seat.view_of(key)) and view.choices and view, what="it is offered again"
            )
            assert send
            assert send.delivery == "prepared"
            assert "input" not in [c["type"] for c in double.commands]
            assert any("expired" in notice for notice in seat.notices)
            double.lifetime = None
            double.expired.clear()
            seat.send(ResolveSend(key, "send"))
            await seat.until(lambda: (row := seat.row_of(key)) and row.delivery == "delivered")
        finally:
            await seat.quit()


async def test_a_machine_is_chosen_when_none_is_known(letta_server: RealServer, tmp_path: Path) -> None:
    async with way_to("relay", letta_server, tmp_path / "ours") as way:
        double = double_of(way)
        double.remembers_last = False
        double.devices["device-2"] = Device("device-2", "desk", None, last_heartbeat="2020-01-01T00:00:00Z")
        endpoint = hosted(double.base, token=TOKEN)
        seat = Seat.start(way.config(endpoint=endpoint))
        try:
            await seat.until(
                lambda: any(isinstance(u, NeedsDevice) for u in seat.seen), what="it is asked for"
            )
            seat.send(ListDevices())
            listed = await seat.until(
                lambda: next((u for u in seat.seen if isinstance(u, DevicesListed)), None), what="the list"
            )
            assert listed
            assert [(d.name, d.online, d.folder) for d in listed.items] == [
                ("laptop", True, "/home/somebody/work"),
                ("desk", False, "/home/somebody/work"),
            ]
            seat.send(UseDevice("device-2"))
            await seat.until(lambda: "desk is offline" in (seat.connection.words if seat.connection else ""))
            seat.send(UseDevice("device-1"))
            await seat.ready()
            await seat.said("[[say on the laptop]]")
            await seat.reply("on the laptop")
            await seat.rest()
            assert len(double.conversations) == 1  # however often it was tried
        finally:
            await seat.quit()
        again = Seat.start(way.config(endpoint=endpoint, target=Target()))
        try:
            await again.ready()  # the machine is remembered with the conversation
        finally:
            await again.quit()


async def test_the_machine_itself_says_what_cannot_be_opened(
    letta_server: RealServer, tmp_path: Path
) -> None:
    async with way_to("relay", letta_server, tmp_path / "ours") as way:
        seat = Seat.start(way.config(target=Target(conversation_id="conv-nobody")))
        try:
            await seat.until(lambda: seat.question is not None, what="a question")
            assert seat.question is not None
            assert "conv-nobody" in seat.question.body
        finally:
            await seat.quit()


async def whole_replies(seat: Seat, count: int) -> None:
    await seat.until(lambda: [t.split() for t in seat.texts("assistant")] == [words(700).split()] * count, 60)


def words(count: int) -> str:
    return " ".join(f"w{n:04}" for n in range(count))


def said(row: dict[str, Any]) -> str:
    content = row["content"]
    return content if isinstance(content, str) else "".join(p.get("text", "") for p in content)
