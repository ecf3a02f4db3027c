"""The queue strip."""

from __future__ import annotations

from typing import Any

from letta_tui.conversation.places import SendState, place_of
from letta_tui.conversation.queue import Queue, Removal
from tests.conversation import view


def item(number: int, cmid: str, text: str = "", **more: Any) -> dict[str, Any]:
    return {
        "id": f"q-{number}",
        "client_message_id": cmid,
        "kind": "message",
        "content": text or cmid,
        **more,
    }


def snapshot(*items: dict[str, Any], removed: tuple[tuple[str, str], ...] = (), runtime: Any = None) -> Any:
    gone = [{"client_message_id": c, "disposition": d} for c, d in removed]
    return view.event("update_queue", {"queue": list(items), "removed": gone}, runtime)


def make() -> Queue:
    queue = Queue(view.AGENT, view.CONVERSATION)
    queue.connected("c1")
    return queue


def test_the_servers_order_then_what_waits_here() -> None:
    queue = make()
    assert not queue.known
    queue.apply(snapshot(item(1, "a"), item(2, "x", "of another window", paused=True)))
    sends = [
        SendState("a", "mine", "queued"),
        SendState("b", "on its way", "unconfirmed", behind=True),
        SendState("c", "held", "prepared", held=True, note="Waits until an earlier message is confirmed."),
        SendState("d", "running", "started"),
    ]
    views = queue.views(sends)
    assert [(v.item_id, v.text, v.mine, v.held_here, v.paused) for v in views] == [
        ("q-1", "mine", True, False, False),
        ("q-2", "of another window", False, False, True),
        ("b", "on its way", True, False, False),
        ("c", "held", True, True, False),
    ]
    assert queue.known
    assert queue.paused
    assert queue.client_message_ids == ("a", "x")


def test_a_send_is_in_exactly_one_place() -> None:
    """Strip or transcript, through everything that can happen on the way."""
    for delivery in (
        "prepared",
        "unconfirmed",
        "accepted",
        "queued",
        "started",
        "failed",
        "unknown",
        "vanished",
    ):
        for behind in (False, True):
            send = SendState("a", "t", delivery, behind=behind)
            in_strip = bool(make().views([send]))
            assert in_strip == (place_of(send) == "strip")
            assert place_of(send) != "nowhere"


def test_removals_are_told_once() -> None:
    queue = make()
    queue.apply(snapshot(item(1, "a"), item(2, "b")))
    frame = snapshot(removed=(("a", "dequeued"), ("b", "cancelled"), ("c", "never heard of")))
    assert queue.apply(frame) == (Removal("a", "dequeued"), Removal("b", "cancelled"))
    assert queue.apply(frame) == ()
    assert queue.views() == ()


def test_cancelling_is_shown_until_the_server_answers() -> None:
    queue = make()
    queue.apply(snapshot(item(1, "a")))
    queue.cancelling("q-1")
    assert queue.views()[0].cancelling
    queue.cancelling("q-1", False)
    assert not queue.views()[0].cancelling
    queue.cancelling("q-1")
    queue.apply(snapshot())
    queue.apply(snapshot(item(1, "z")))  # the server counts its items anew
    assert not queue.views()[0].cancelling


def test_other_runtimes_and_old_connections() -> None:
    queue = make()
    queue.apply(snapshot(item(1, "a")))
    queue.apply(snapshot(runtime={"agent_id": view.AGENT, "conversation_id": "other"}))
    assert queue.client_message_ids == ("a",)
    queue.connected("c2")
    assert not queue.known
    assert queue.item("q-1") is not None
