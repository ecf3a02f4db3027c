"""What grows old between two steps, and decisions whose answer cannot be relied on."""

from __future__ import annotations

import time
from typing import Any

import pytest

from letta_tui.conversation.explain import Case, explain
from letta_tui.ledger.store import Ledger
from letta_tui.ledger.transitions import ENDED
from letta_tui.seam.intents import Decide, FocusChanged, ResolveSend
from letta_tui.seam.updates import ApprovalsChanged, SendsChanged
from letta_tui.worker.ports import EndNote
from tests.worker.fake import AGENT, FakeConnection, FakeServer
from tests.worker.world import Keeper, World


async def test_nothing_is_written_when_the_machine_slept_after_the_commit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    seat = await world.window()
    begin = Ledger.begin_attempt

    def slow(self: Ledger, *args: Any, **kwargs: Any) -> Any:
        attempt = begin(self, *args, **kwargs)
        if not world.clock.ahead:
            world.clock.ahead = 90.0
        return attempt

    monkeypatch.setattr(Ledger, "begin_attempt", slow)
    key = await seat.said("hello")
    card = await seat.until(
        lambda: seat.recovery and not seat.recovery.checking and seat.recovery.sends,
        timeout=60,
        what="an offer",
    )
    assert world.server.commands("input") == []
    assert "resend" in [choice.action for choice in card[0].choices]

    def insisted() -> bool:
        # The sleep is noticed within a second, and everything is then checked once more: no offer meanwhile.
        view, row = seat.view_of(key), seat.row_of(key)
        if view is not None and any(choice.action == "resend" for choice in view.choices):
            seat.send(ResolveSend(key, "resend"))
        return row is not None and row.delivery == "delivered"

    await seat.until(insisted, what="delivered")
    assert world.server.ran == {key: 1}


async def test_an_offer_to_send_again_that_grew_old_is_not_taken(world: World) -> None:
    seat = await world.window()
    world.server.lose_acks, world.server.take_input = 1, False
    key = await seat.said("hello")
    await seat.until(lambda: seat.recovery and not seat.recovery.checking and seat.recovery.sends)
    assert "resend" in [choice.action for choice in seat.recovery.sends[0].choices]
    world.clock.ahead = 3_000.0  # the server forgets ids after an hour
    seat.send(ResolveSend(key, "resend"))
    await seat.until(lambda: (v := seat.view_of(key)) and v.delivery == "unknown", what="a new verdict")
    assert len(world.server.commands("input")) == 1
    view = seat.view_of(key)
    assert view is not None
    assert "resend" not in [choice.action for choice in view.choices]


async def test_a_turn_whose_end_was_lost_ends_when_everything_is_idle(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    seat = await world.window()
    event = FakeConnection.event

    def forgetful(self: FakeConnection, kind: str, **fields: Any) -> None:
        if kind != "turn_finished" and fields.get("delta", {}).get("message_type") != "stop_reason":
            event(self, kind, **fields)

    monkeypatch.setattr(FakeConnection, "event", forgetful)
    key = await seat.said("hello")
    await seat.until(lambda: (row := seat.row_of(key)) and row.delivery == "delivered", what="delivered")
    await seat.until(lambda: seat.status.activity == "idle", timeout=30, what="the end of the turn")


def _asked(call: str = "call-1") -> dict[str, Any]:
    return {
        "request_id": f"perm-{call}",
        "request": {
            "subtype": "can_use_tool", "tool_name": "Bash", "tool_call_id": call,
            "input": {"command": "date"}, "permission_suggestions": [], "blocked_path": None, "diffs": [],
        },
    }  # fmt: skip


def _pending(server: FakeServer, monkeypatch: pytest.MonkeyPatch, *requests: dict[str, Any]) -> None:
    device = FakeServer._device
    monkeypatch.setattr(
        FakeServer, "_device", lambda self: {**device(self), "pending_control_requests": list(requests)}
    )


async def _decided(world: World, monkeypatch: pytest.MonkeyPatch, accepted: bool) -> None:
    """An approval is answered on the first connection; the server goes on holding it as pending."""

    def answer(self: FakeServer, connection: FakeConnection, command: dict[str, Any]) -> None:
        connection.answer(
            command, kind="input_accepted", accepted=accepted, error="" if accepted else "Busy."
        )

    monkeypatch.setattr(FakeServer, "_input", answer)


@pytest.mark.parametrize("accepted", [True, False])
async def test_a_request_that_still_waits_after_a_reconnect_can_be_answered_again(
    world: World, monkeypatch: pytest.MonkeyPatch, accepted: bool
) -> None:
    _pending(world.server, monkeypatch, _asked())
    await _decided(world, monkeypatch, accepted)
    seat = await world.window()
    await seat.until(lambda: seat.approvals, what="the approval")
    seat.send(Decide("perm-call-1", "allow"))
    await seat.until(lambda: len(world.server.commands("input")) == 1, what="the answer")
    if accepted:
        world.server.cut()
        await seat.until(lambda: len(world.server.connections) == 2, what="a new connection")
        await seat.ready()
        await seat.until(
            lambda: seat.approvals and seat.approvals[0].state == "pending", what="pending again"
        )
        assert seat.recovery is not None
        assert "asked again" in seat.recovery.notes[0]
    else:
        await seat.until(lambda: seat.approvals and seat.approvals[0].state == "refused", what="refused")
    seat.send(Decide("perm-call-1", "deny", "not now"))
    await seat.until(lambda: len(world.server.commands("input")) == 2, what="the second answer")


async def test_a_decision_without_a_connection_is_given_back_each_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _pending(world.server, monkeypatch, _asked())
    await _decided(world, monkeypatch, accepted=True)
    seat = await world.window()
    await seat.until(lambda: seat.approvals, what="the approval")
    world.server.refuse_connections = 1_000
    world.server.cut()
    await seat.until(lambda: seat.connection and seat.connection.phase != "ready", what="disconnected")
    for count in (1, 2):
        seat.send(Decide("perm-call-1", "allow"))
        await seat.until(
            lambda count=count: (
                sum(isinstance(u, ApprovalsChanged) and "not sent" in str(u.items) for u in seat.seen)
                == count
            ),
            what="given back",
        )
    world.server.refuse_connections = 0
    await seat.ready()
    seat.send(Decide("perm-call-1", "allow"))
    await seat.until(lambda: len(world.server.commands("input")) == 1, what="the answer")


async def test_who_denied_and_why_is_told_by_the_next_window(world: World) -> None:
    seat = await world.window()
    await seat.quit()
    with world.ledger() as ledger:
        ledger.decide(
            world.place,
            "perm-1",
            tool_call_id="call-1",
            tool_name="Bash",
            decision="deny",
            message="not on a Sunday",
        )
        ledger.approval_moved(world.place, "perm-1", "acknowledged")
    world.server.rows = [
        world.server.row("user_message", content="hello", otid="o1"),
        world.server.row(
            "approval_request_message",
            tool_call={"name": "Bash", "tool_call_id": "call-1", "arguments": '{"command": "date"}'},
        ),
        world.server.row(
            "tool_return_message", tool_call_id="call-1", status="error",
            tool_return="Error: request to call tool denied. User reason: not on a Sunday",
        ),
    ]  # fmt: skip
    again = await world.window(window_id="second")
    tool = await again.until(
        lambda: next((r.tool for r in again.rows if r.tool), None), what="the tool's row"
    )
    assert (tool.state, tool.decided_by, tool.reason) == ("denied", "you", "not on a Sunday")


async def test_what_the_keeper_saw_while_the_connection_was_lost_is_told(world: World) -> None:
    keeper = Keeper(world.server)
    seat = await world.window(endpoint=None, keeper=keeper)
    at = time.time()
    keeper.noted = [
        EndNote(at - 900, AGENT, "conv-1", "failed", "long before"),
        EndNote(at + 9, AGENT, "conv-1", "none", "", what="left"),
        EndNote(at + 9, AGENT, "conv-1", "done", "", tools=("Bash",), seconds=41.0),
    ]
    world.server.cut()
    seen = await seat.until(lambda: seat.recovery and seat.recovery.notes, what="a note")
    assert seen == ("Meanwhile: the turn ended after 41 s; Bash ran.",)


async def test_a_window_that_starts_without_the_focus_tells_what_happened_too(world: World) -> None:
    keeper = Keeper(world.server)
    await (await world.window(keeper=keeper)).quit()
    left = time.time()
    keeper.noted = [
        EndNote(left, AGENT, "conv-1", "none", "", what="left"),
        EndNote(left + 0.01, AGENT, "conv-1", "done", "", seconds=41.0),
    ]
    world.clock.ahead = 30.0
    again = world.start(keeper=keeper)
    again.send(FocusChanged(False))
    seen = await again.until(lambda: again.recovery and again.recovery.notes, what="what happened")
    assert seen == ("While you were away: the turn ended after 41 s.",)


@pytest.mark.parametrize("saw", ["its end", "another's end", "nothing"])
async def test_an_end_that_only_the_keeper_saw_is_on_record_as_such(world: World, saw: str) -> None:
    keeper = Keeper(world.server)
    seat = await world.window(endpoint=None, keeper=keeper)
    world.server.hold_turns = True
    key = await seat.said("hello")
    await seat.until(lambda: (row := seat.row_of(key)) and row.delivery == "started", what="started")
    about = (key,) if saw == "its end" else ("somebody-elses",)
    at = time.time() + 1
    end = EndNote(at, AGENT, "conv-1", "done", "", inputs=about, stop_reason="end_turn", turn_id="t1")
    keeper.noted = [] if saw == "nothing" else [end]
    world.server.active = ""  # its turn ends, and no window hears of it
    world.server.cut()
    await seat.until(
        lambda: (row := seat.row_of(key)) and row.delivery == "delivered" and row.outcome in ENDED
    )
    with world.ledger() as ledger:
        send = ledger.send(key)
        assert send is not None
        told = explain(Case(send, ledger.evidence(key)))
    assert send.outcome == ("done" if saw == "its end" else "ended_unseen")
    assert any("Its turn ended. The keeper saw it." in line for line in told) == (saw == "its end")


async def test_closing_is_called_safe_only_while_a_keeper_holds_the_conversation(world: World) -> None:
    keeper = Keeper(world.server)
    seat = await world.window(endpoint=None, keeper=keeper, hold_again=0.05, hold_wait=0.1)
    await seat.until(lambda: seat.connection and seat.connection.held, what="held")
    keeper.alive = False
    await seat.until(lambda: seat.connection and not seat.connection.held, what="not held any more")
    await seat.until(lambda: any("No keeper holds" in notice for notice in seat.notices), what="a warning")
    keeper.alive = True
    await seat.until(lambda: seat.connection and seat.connection.held, what="held by the next one")


async def test_a_message_that_nothing_answered_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    seat = await world.window()
    world.server.hold_turns = True
    key = await seat.said("hello")
    await seat.until(lambda: (row := seat.row_of(key)) and row.delivery == "started", what="started")
    world.server.rows.pop()  # the reply never gets into the history
    world.server.active = ""
    world.server.cut()
    row = await seat.until(lambda: (r := seat.row_of(key)) and r.delivery == "delivered" and r.marks and r)
    assert row.marks == ("its turn ended without an answer",)


async def test_nothing_is_offered_for_a_message_that_is_on_its_way(world: World) -> None:
    seat = await world.window()
    world.server.refuse_connections = 1
    world.server.hold_turns = True
    world.server.cut()
    await seat.until(lambda: seat.connection is not None and seat.connection.phase == "lost")
    key = await seat.said("held for a moment")
    await seat.until(lambda: (row := seat.row_of(key)) and row.delivery == "started", what="started")
    views = [
        view
        for update in seat.seen
        if isinstance(update, SendsChanged)
        for view in update.items
        if view.client_message_id == key
    ]
    assert {view.delivery for view in views} >= {"unconfirmed", "started"}
    assert [view for view in views if view.choices] == []


async def test_an_offer_is_gone_as_soon_as_it_is_taken(world: World) -> None:
    seat = await world.window()
    world.server.lose_acks, world.server.take_input = 1, False
    key = await seat.said("hello")
    await seat.until(lambda: (v := seat.view_of(key)) and v.choices, what="an offer")
    world.server.mute_acks = world.server.hold_turns = True
    world.server._input = lambda connection, command: None  # type: ignore[method-assign]
    seat.send(ResolveSend(key, "resend"))
    await seat.until(lambda: (v := seat.view_of(key)) and not v.choices, timeout=30, what="no offer")
    before = len(world.server.commands("input"))
    seat.send(ResolveSend(key, "resend"))
    seat.send(ResolveSend(key, "discard"))
    await seat.until(lambda: len(seat.notices) >= 2, timeout=30, what="both refused")
    assert len(world.server.commands("input")) == before
    with world.ledger() as ledger:
        send = ledger.send(key)
        assert send is not None
        assert send.delivery == "unconfirmed"
