"""The transcript as a person sees it: rows of messages that were sent, here and elsewhere."""

from __future__ import annotations

from letta_tui.conversation.entries import RAN_TWICE
from tests.conversation.screen import BUSY, IDLE, Screen
from tests.conversation.view import assistant, call_row, delta, finished, loop, result_row, text_row, user_row


def test_a_sent_row_stays_in_place_until_its_copy_replaces_it(screen: Screen) -> None:
    screen.send("hello", "unconfirmed").send("hello", "started")
    key = screen.keys[0]
    screen(loop(BUSY, "r1"), assistant("hi", seq=1), loop(IDLE), finished())
    screen.history(user_row("hello", mid="u1", otid="s1"), text_row("hi", mid="m1"))
    assert screen.texts == ["hello", "hi"]
    assert screen.keys[0] == key
    screen.send("hello", "delivered", outcome="done")
    row = screen.view.rows[0]
    assert (row.delivery, row.outcome, row.client_message_id) == ("delivered", "done", "s1")


def test_a_queued_send_is_not_in_the_transcript_until_it_starts(screen: Screen) -> None:
    screen.send("later", "unconfirmed", behind=True)
    screen.send("later", "queued")
    assert screen.texts == []
    echo = delta("user_message", id="user-msg-1", content="later", otid="s1")
    screen(echo, echo)
    screen.send("later", "queued")  # the ledger may say so a moment longer
    assert screen.texts == ["later"]
    screen.send("later", "started")
    screen.history(user_row("later", mid="u1", otid="s1"))
    assert screen.texts == ["later"]


def test_a_send_that_was_taken_back_leaves(screen: Screen) -> None:
    screen.send("oops", "unconfirmed").send("oops", "cancelled")
    assert screen.texts == []


def test_a_failed_send_keeps_its_place(screen: Screen) -> None:
    screen.send("one", "started").send("one", "failed")
    screen(delta("loop_error", message="no model", is_terminal=True, client_message_ids=["s1"], id="e1"))
    screen.history(text_row("old", mid="m0"))
    assert screen.texts == ["old", "one", "no model"]
    assert screen.view.rows[1].delivery == "failed"
    assert screen.view.rows[1].marks == ()


def test_a_prompt_of_another_window_comes_above_its_reply(screen: Screen) -> None:
    screen.history(text_row("old", mid="m0"))
    screen(loop(BUSY, "r1"), assistant("reply", seq=1), loop(IDLE), finished())
    screen.send("mine", "started", cmid="s2")
    screen.history(
        text_row("old", mid="m0"), user_row("theirs", mid="u1", otid="x"), text_row("reply", mid="m1")
    )
    assert screen.texts == ["old", "theirs", "reply", "mine"]


def test_a_new_message_stays_below_what_another_window_just_did(screen: Screen) -> None:
    screen.history(text_row("old", mid="m0"))
    screen.send("mine", "unconfirmed")
    screen.history(text_row("old", mid="m0"), user_row("theirs", mid="u1", otid="x"), text_row("r", mid="m1"))
    assert screen.texts == ["old", "theirs", "r", "mine"]


def test_a_second_run_by_the_server_is_said(screen: Screen) -> None:
    screen.send("once", "started")
    screen.history(user_row("once", mid="u1", otid="s1"))
    screen.history(
        user_row("once", mid="u1", otid="s1"), text_row("a", mid="m1"), user_row("once", mid="u7", otid="s1")
    )
    assert screen.texts == ["once", "a", "once"]
    assert [r.marks for r in screen.view.rows] == [(), (), (RAN_TWICE,)]
    assert screen.view.rows[2].client_message_id == "s1"
    screen.history(
        user_row("once", mid="u1", otid="s1"), text_row("a", mid="m1"), user_row("once", mid="u7", otid="s1")
    )
    assert screen.texts == ["once", "a", "once"]


def test_cached_rows_are_replaced_in_place(screen: Screen) -> None:
    screen.history(user_row("q", mid="u1", otid="s1"), text_row("a", mid="m1"), call_row("c", mid="m2"))
    again = Screen()
    (update,) = again.take(again.transcript.restore(screen.transcript.rows, as_of=5.0))
    assert update.as_of == 5.0
    before = again.keys
    again.history(
        user_row("q", mid="u1", otid="s1"),
        text_row("a, and more", mid="m1"),
        call_row("c", mid="m2"),
        result_row("c", "out", mid="m3"),
    )
    assert again.keys == before
    assert again.texts[1] == "a, and more"
    assert again.tool.state == "done"
    assert again.transcript.snapshot().as_of is None


def test_the_cache_turning_out_right_is_told(screen: Screen) -> None:
    rows = [user_row("q", mid="u1", otid="s1"), text_row("a", mid="m1")]
    screen.history(*rows)
    again = Screen()
    again.take(again.transcript.restore(screen.transcript.rows, as_of=5.0))
    (update,) = again.take(
        again.transcript.merge_history(
            rows, asked=again.transcript.mark(), order="asc", newest=True, has_more=True
        )
    )
    assert (update.splices, update.as_of, update.more_above) == ((), None, True)
