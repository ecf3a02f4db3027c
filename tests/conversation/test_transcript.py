"""The transcript, case by case, as a person sees it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from letta_tui.conversation.entries import GONE, RAN_TWICE, UNKEPT
from letta_tui.conversation.places import SendState
from letta_tui.conversation.transcript import Transcript
from letta_tui.protocol.frames import frame_of
from letta_tui.seam.updates import TextAppended
from tests.conversation import view
from tests.conversation.view import assistant, call_row, delta, finished, loop, result_row, text_row, user_row

IDLE = "WAITING_ON_INPUT"
BUSY = "PROCESSING_API_RESPONSE"


class Screen:
    """A transcript and the view of it, which must agree after every step."""

    def __init__(self) -> None:
        self.transcript = Transcript(view.AGENT, view.CONVERSATION)
        self.transcript.connected("c1")
        self.view = view.View()
        self(loop(IDLE))

    def __call__(self, *frames: Any) -> Screen:
        for frame in frames:
            self.take(self.transcript.apply(frame))
        return self

    def take(self, updates: list[Any]) -> list[Any]:
        self.view.apply(updates)
        assert self.view.rows == list(self.transcript.rows)
        return updates

    def history(
        self, *rows: dict[str, Any], newest: bool = True, has_more: bool = False, asked: int | None = None
    ) -> Screen:
        """``rows`` oldest first."""
        mark = self.transcript.mark() if asked is None else asked
        self.take(
            self.transcript.merge_history(rows, asked=mark, order="asc", newest=newest, has_more=has_more)
        )
        return self

    def send(self, text: str, delivery: Any = "started", cmid: str = "s1", **more: Any) -> Screen:
        self.take(self.transcript.put_send(SendState(cmid, text, delivery, **more)))
        return self

    @property
    def texts(self) -> list[str]:
        return [r.text for r in self.view.rows]

    @property
    def keys(self) -> list[str]:
        return [r.key for r in self.view.rows]

    @property
    def tool(self) -> Any:
        return next(r.tool for r in self.view.rows if r.tool)


@pytest.fixture
def screen() -> Screen:
    return Screen()


# Text and sequence.


def test_a_fragment_is_an_append(screen: Screen) -> None:
    screen(assistant("Hel", seq=1))
    assert screen.transcript.apply(assistant("lo", seq=2)) == [TextAppended("assistant:m1", "lo")]
    assert screen.transcript.rows[0].text == "Hello"
    assert screen.transcript.rows[0].live


def test_zero_is_a_sequence_number_and_each_run_counts_anew(screen: Screen) -> None:
    screen(assistant("a", seq=0), assistant("b", seq=1), assistant("a", seq=0))
    screen(assistant("c", seq=0, run="r2", mid="m2"), assistant("d", seq=1, run="r2", mid="m2"))
    assert screen.texts == ["ab", "cd"]


def test_a_new_connection_forgets_the_sequence(screen: Screen) -> None:
    screen(assistant("one", seq=1), loop(IDLE), finished())
    screen.take(screen.transcript.connected("c2"))
    screen.history(text_row("one", mid="m1"))
    # The server restarted: its run ids start again at 1.
    screen(assistant("two", seq=1, mid="m9"))
    assert screen.texts == ["one", "two"]


def test_equal_fragments_are_not_taken_for_repeats(screen: Screen) -> None:
    screen(assistant("ha", seq=1), assistant("ha", seq=2))
    assert screen.texts == ["haha"]


def test_a_repeated_event_without_sequence_number_is_dropped_by_its_key(screen: Screen) -> None:
    frame = delta("assistant_message", id="m1", run_id="r1", seq_id=1, content="x")
    later = delta("assistant_message", id="m1", run_id="r1", content="y")
    screen(frame, later, later, frame)
    assert screen.texts == ["xy"]


def test_other_runtimes_and_subagents_stay_out(screen: Screen) -> None:
    other = view.event(
        "stream_delta",
        {"delta": {"message_type": "assistant_message", "content": "x", "id": "m"}},
        {"agent_id": view.AGENT, "conversation_id": "local-conv-2"},
    )
    screen(other, assistant("sub", seq=1, subagent_id="sub-1"))
    assert screen.texts == []


def test_another_otid_on_a_known_id_is_another_row(screen: Screen) -> None:
    screen(assistant("a", seq=1, otid="o1"), assistant("b", seq=2, otid="o2"), assistant("c", seq=3))
    assert screen.texts == ["a", "bc"]
    screen.history(text_row("a", mid="m1", otid="o1"), text_row("bc!", mid="m1", otid="o2"))
    assert screen.texts == ["a", "bc!"]


def test_odd_shapes_are_data(screen: Screen) -> None:
    for body in (
        {"message_type": "assistant_message", "content": None},
        {"message_type": "assistant_message", "content": [None, 3, {"type": "text"}]},
        {"message_type": "tool_return_message"},
        {"message_type": "tool_call_message", "tool_call": [1, {"tool_call_id": 5}]},
        {"message_type": "client_tool_start"},
        {"message_type": "approval_classification_end", "auto_denied_tool_call_ids": {"a": 1}},
        {"message_type": "never heard of"},
        {},
    ):
        screen(view.event("stream_delta", {"delta": body}))
    screen(view.event("stream_delta", {"delta": "no"}), frame_of({"type": "turn_finished"}))
    assert screen.texts == []


# Joining and history.


def test_history_ahead_of_the_stream_is_not_drawn_twice(screen: Screen) -> None:
    screen(loop(BUSY, "r1"), assistant("one ", seq=1))
    screen.history(text_row("one two three ", mid="m1"))
    assert screen.texts == ["one two three "]
    screen(assistant("two ", seq=2), assistant("three ", seq=3), assistant("four", seq=4))
    assert screen.texts == ["one two three four"]


def test_history_behind_the_stream_takes_nothing_away(screen: Screen) -> None:
    screen(loop(BUSY, "r1"), assistant("one ", seq=1))
    asked = screen.transcript.mark()
    screen(assistant("two ", seq=2))
    screen.history(text_row("one ", mid="m1"), asked=asked)
    screen(assistant("three", seq=3))
    assert screen.texts == ["one two three"]


def test_text_waits_for_history_after_a_reconnect(screen: Screen) -> None:
    screen(loop(BUSY, "r1"), assistant("one ", seq=1))
    screen.take(screen.transcript.connected("c2"))
    asked = screen.transcript.mark()
    screen(assistant("three ", seq=3))
    assert screen.texts == ["one "]
    screen.history(text_row("one two three ", mid="m1"), asked=asked)
    screen(assistant("four", seq=4))
    assert screen.texts == ["one two three four"]


def test_the_end_settles_from_history(screen: Screen) -> None:
    screen(loop(BUSY, "r1"), assistant("wron", seq=1), loop(IDLE), finished())
    assert screen.transcript.unsettled
    screen.history(text_row("right", mid="m1"))
    assert screen.texts == ["right"]
    assert not screen.transcript.unsettled
    assert not screen.view.rows[0].live


def test_an_overtaken_answer_changes_nothing(screen: Screen) -> None:
    early = screen.transcript.mark()
    screen(loop(BUSY, "r1"), assistant("x", seq=1), loop(IDLE), finished())
    screen.history(user_row("q", mid="u1"), text_row("x", mid="m1"))
    screen.history(user_row("q", mid="u1"), asked=early)
    assert screen.texts == ["q", "x"]
    assert screen.view.rows[1].marks == ()


def test_older_pages_go_above(screen: Screen) -> None:
    screen.history(user_row("3", mid="u3"), text_row("4", mid="m4"), has_more=True)
    assert screen.transcript.more_above
    assert screen.transcript.oldest_id == "u3"
    assert screen.transcript.newest_id == "m4"
    screen(assistant("5", mid="m5", seq=1))
    screen.history(user_row("1", mid="u1"), text_row("2", mid="m2"), newest=False)
    assert screen.texts == ["1", "2", "3", "4", "5"]
    assert screen.transcript.oldest_id == "u1"
    assert not screen.transcript.more_above


def test_a_deep_reading_moves_the_top(screen: Screen) -> None:
    screen.history(user_row("3", mid="u3"), has_more=True)
    screen.history(text_row("2", mid="m2"), user_row("3", mid="u3"), user_row("4", mid="u4"), has_more=True)
    assert (screen.transcript.oldest_id, screen.transcript.newest_id) == ("m2", "u4")
    screen.history(user_row("4", mid="u4"), text_row("5", mid="m5"), has_more=True)
    assert (screen.transcript.oldest_id, screen.transcript.newest_id) == ("m2", "m5")
    assert screen.transcript.more_above
    screen.history(user_row("1", mid="u1"), newest=False)
    assert not screen.transcript.more_above
    screen.history(user_row("4", mid="u4"), text_row("5", mid="m5"), has_more=True)
    assert not screen.transcript.more_above
    assert screen.texts == ["1", "2", "3", "4", "5"]


def test_a_page_that_does_not_join_says_so(screen: Screen) -> None:
    screen.history(user_row("1", mid="u1"))
    assert not screen.transcript.covers([user_row("9", mid="u9")])
    assert screen.transcript.covers([user_row("9", mid="u9"), user_row("1", mid="u1")])
    screen.send("mine", "started")
    screen.history(user_row("8", mid="u8"), user_row("9", mid="u9"), has_more=True)
    assert screen.texts == ["8", "9", "mine"]
    assert screen.transcript.more_above
    assert screen.transcript.oldest_id == "u8"


def test_compaction_leaves_rows_marked_and_in_place(screen: Screen) -> None:
    screen.history(user_row("1", mid="u1"), text_row("2", mid="m2"), user_row("3", mid="u3"))
    screen.history(
        {"id": "s1", "message_type": "summary_message", "summary": "so far"}, user_row("3", mid="u3")
    )
    assert screen.texts == ["1", "2", "so far", "3"]
    assert [r.marks for r in screen.view.rows] == [(GONE,), (GONE,), (), ()]
    assert screen.view.rows[2].kind == "summary"


def test_a_row_missing_from_a_page_is_not_marked(screen: Screen) -> None:
    screen.history(user_row("1", mid="u1"), text_row("2", mid="m2"), has_more=True)
    screen.history(text_row("2", mid="m2"), user_row("3", mid="u3"), has_more=True)
    assert screen.texts == ["1", "2", "3"]
    assert all(r.marks == () for r in screen.view.rows)
    screen.history(user_row("1", mid="u1"), user_row("3", mid="u3"), has_more=True)
    assert [r.marks for r in screen.view.rows] == [(), (GONE,), ()]
    screen.history(user_row("1", mid="u1"), text_row("2", mid="m2"), user_row("3", mid="u3"))
    assert all(r.marks == () for r in screen.view.rows)


def test_the_text_of_a_stopped_turn_stays(screen: Screen) -> None:
    screen(loop(BUSY, "r1"), assistant("half a rep", seq=1), loop(IDLE), finished("cancelled"))
    screen.history(user_row("q", mid="u1"))
    assert "half a rep" in screen.texts
    assert next(r for r in screen.view.rows if r.text == "half a rep").marks == (UNKEPT,)
    assert not screen.transcript.unsettled


def test_a_stopped_reply_stays_below_a_prompt_that_only_history_has(screen: Screen) -> None:
    screen.history(text_row("old", mid="m0", date="2026-01-01T00:00:00Z"))
    screen(loop(BUSY, "r1"), assistant("half", seq=1, date="2026-01-01T00:00:09Z"))
    screen(loop(IDLE), finished("cancelled"))
    screen.history(
        text_row("old", mid="m0", date="2026-01-01T00:00:00Z"),
        user_row("theirs", mid="u1", otid="x", date="2026-01-01T00:00:05Z"),
        user_row("next", mid="u2", otid="y", date="2026-01-01T00:00:20Z"),
    )
    assert screen.texts == ["old", "theirs", "half", "next"]


def test_an_overtaken_answer_does_not_bring_back_what_was_compacted(screen: Screen) -> None:
    rows = user_row("1", mid="u1"), user_row("2", mid="u2")
    screen.history(*rows)
    early = screen.transcript.mark()
    screen(loop(BUSY), loop(IDLE))
    screen.history(rows[1])
    screen.history(*rows, asked=early)
    assert screen.view.rows[0].marks == (GONE,)


def test_a_call_without_result_is_closed_only_when_nothing_runs(screen: Screen) -> None:
    screen(loop(BUSY, "r1"))
    screen.history(call_row("c1", mid="m1"))
    assert screen.tool.state == "requested"
    screen(loop(IDLE))
    screen.history(call_row("c1", mid="m1"))
    assert screen.tool.state == "closed"
    fresh = Screen().history(call_row("c1", mid="m1"))
    assert fresh.tool.state == "closed"


def test_reminders_are_hidden(screen: Screen) -> None:
    reminder = "<system-reminder>\nthe user's shell\n</system-reminder>\n"
    screen.history(
        user_row([{"type": "text", "text": reminder}, {"type": "text", "text": "hi"}], mid="u1"),
        user_row([{"type": "text", "text": reminder}], mid="u2"),
        user_row(reminder + reminder + "as a string", mid="u3"),
        user_row([{"type": "text", "text": "see"}, {"type": "image", "source": {}}], mid="u4"),
        user_row("<system-reminder> is what I ask about", mid="u5"),
    )
    assert screen.texts == ["hi", "as a string", "see\n[image]", "<system-reminder> is what I ask about"]


def test_programs_messages_are_readable(screen: Screen) -> None:
    answer = json.dumps(
        {
            "type": "ask_user_question_response",
            "version": 2,
            "status": "answered",
            "answers": {"Tea?": "yes & no"},
        }
    ).replace("&", "&amp;")
    screen.history(
        user_row(
            "<task-notification><task-id>t</task-id><summary>answered</summary>"
            f"<ask-user-question-response>{answer}</ask-user-question-response></task-notification>",
            mid="u1",
        ),
        user_row(
            "<task-notification><task-id>t</task-id><summary>Build done</summary></task-notification>",
            mid="u2",
        ),
        call_row("c1", mid="m1", name="AskUserQuestion"),
        result_row(
            "c1",
            json.dumps(
                {
                    "type": "ask_user_question",
                    "version": 2,
                    "questions": [{"question": "Tea?", "options": [{"label": "yes", "description": "hot"}]}],
                }
            ),
            mid="m2",
        ),
    )
    assert screen.texts[:2] == ["Tea?: yes & no", "Build done"]
    assert [r.kind for r in screen.view.rows] == ["notice", "notice", "tool"]
    assert screen.tool.result == "Asked: Tea?\n  - yes: hot"


# User rows and sends.


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


# Tools.


def request(call: str = "c1", seq: int | None = 1, arguments: str = '{"command":"ls"}', **body: Any) -> Any:
    return delta(
        "approval_request_message",
        id="letta-1",
        run_id="r1",
        seq_id=seq,
        tool_call={"tool_call_id": call, "name": "Bash", "arguments": arguments},
        **body,
    )


def returned(text: str, call: str = "c1", status: str = "success", partial: bool = False) -> Any:
    name = f"synthetic-tool-return-stream-{call}" if partial else "synthetic-tool-return-x"
    return delta(
        "tool_return_message", id=name, run_id="r1", status=status, tool_call_id=call, tool_return=text
    )


def test_a_tool_call_from_request_to_result(screen: Screen) -> None:
    screen(loop(BUSY, "r1"), request())
    assert (screen.tool.state, screen.tool.name, screen.tool.arguments) == (
        "requested",
        "Bash",
        '{"command":"ls"}',
    )
    screen.take(screen.transcript.awaiting(["c1"]))
    assert screen.tool.state == "awaiting"
    screen.take(screen.transcript.decided("c1", "allow", "you"))
    screen.take(screen.transcript.awaiting([]))
    screen(delta("client_tool_start", run_id="r1", tool_call_id="c1", date="2026-01-01T00:00:00Z"))
    assert screen.tool.state == "running"
    screen(returned("one", partial=True))
    assert screen.take(screen.transcript.apply(returned("one two", partial=True))) == [
        TextAppended("tool:c1", " two")
    ]
    screen(returned("one", partial=True))  # an older one
    assert screen.tool.result == "one two"
    screen(
        delta(
            "client_tool_end", run_id="r1", tool_call_id="c1", status="success", date="2026-01-01T00:00:03Z"
        ),
        returned("one two\n"),
        returned("one", partial=True),
    )
    assert (screen.tool.state, screen.tool.result, screen.tool.seconds) == ("done", "one two\n", 3.0)
    assert screen.tool.decided_by == "you"


def test_a_lost_end_is_found_in_history(screen: Screen) -> None:
    screen(request(), delta("client_tool_start", run_id="r1", tool_call_id="c1"), loop(IDLE), finished())
    assert screen.tool.state == "running"
    assert screen.transcript.unsettled
    screen.history(call_row("c1", mid="m1"), result_row("c1", "ok", mid="m2"))
    assert (screen.tool.state, screen.tool.result) == ("done", "ok")


def test_a_call_whose_turn_is_over_without_result_is_closed(screen: Screen) -> None:
    screen(
        request(),
        delta("client_tool_start", run_id="r1", tool_call_id="c1"),
        loop(IDLE),
        finished("cancelled"),
    )
    screen.history(call_row("c1", mid="m1"))
    assert screen.tool.state == "closed"


def test_several_results_in_one_message(screen: Screen) -> None:
    screen(request("a"), request("b", seq=2))
    screen(
        delta(
            "tool_return_message",
            id="m9",
            run_id="r1",
            tool_returns=[
                {"tool_call_id": "a", "status": "success", "tool_return": "A"},
                {"tool_call_id": "b", "status": "error", "tool_return": [{"type": "text", "text": "B"}]},
            ],
        )
    )
    assert [(r.tool.state, r.tool.result) for r in screen.view.rows if r.tool] == [
        ("done", "A"),
        ("failed", "B"),
    ]


@pytest.mark.parametrize("by", ["you", "elsewhere", "the server"])
def test_a_denial_says_by_whom(screen: Screen, by: Any) -> None:
    screen(request())
    screen.take(screen.transcript.decided("c1", "deny", by, "please not"))
    assert screen.tool.state == "denied"
    screen(returned("please not", status="error"))
    assert (screen.tool.state, screen.tool.decided_by, screen.tool.reason) == ("denied", by, "please not")


def test_an_allowed_call_that_fails_was_not_denied(screen: Screen) -> None:
    screen(request())
    screen.take(screen.transcript.decided("c1", "allow", "you"))
    screen(returned("exit code 1", status="error"))
    assert (screen.tool.state, screen.tool.decided_by, screen.tool.reason) == ("failed", "you", "")


@pytest.mark.parametrize("words", ["Interrupted by user", "User interrupted the stream"])
def test_closed_by_the_server_is_never_your_denial(screen: Screen, words: str) -> None:
    screen(request())
    screen.take(screen.transcript.awaiting(["c1"]))
    screen.take(screen.transcript.awaiting([]))
    screen(loop(IDLE), finished("cancelled"))
    screen.history(call_row("c1", mid="m1"), result_row("c1", words, mid="m2", status="error"))
    assert (screen.tool.state, screen.tool.decided_by) == ("closed", "")


def test_a_classifier_denies_as_the_server(screen: Screen) -> None:
    screen(request(), delta("approval_classification_end", run_id="r1", auto_denied_tool_call_ids=["c1"]))
    screen(returned("not allowed here", status="error"))
    assert (screen.tool.state, screen.tool.decided_by) == ("denied", "the server")


def test_argument_fragments_grow_into_the_call(screen: Screen) -> None:
    pieces = ['{"comm', 'and": "echo', ' {}"', "}"]
    for n, piece in enumerate(pieces):
        call = {"tool_call_id": "c1", "name": "Bash" if n == 0 else None, "arguments": piece}
        screen(delta("tool_call_message", id="m1", run_id="r1", seq_id=n, tool_call=call))
    assert (screen.tool.name, screen.tool.arguments) == ("Bash", '{"command": "echo {}"}')


def test_what_ran_after_an_edit_is_shown(screen: Screen) -> None:
    screen(request(arguments='{"command":"rm x"}'))
    screen(
        delta(
            "client_tool_start",
            run_id="r1",
            tool_call_id="c1",
            tool_name="Bash",
            tool_args='{"command":"ls"}',
        )
    )
    screen.history(call_row("c1", mid="m1", arguments='{"command":"rm x"}'))
    assert screen.tool.arguments == '{"command":"ls"}'


def test_executing_ids_heal_a_lost_start(screen: Screen) -> None:
    screen(request(), loop("EXECUTING_CLIENT_SIDE_TOOL", "r1", tools=("c1",)))
    assert screen.tool.state == "running"


# Remarks.


def test_retries_replace_each_other(screen: Screen) -> None:
    for attempt in (1, 2, 3):
        screen(delta("retry", message="rate limited", attempt=attempt, max_attempts=3, id=f"l{attempt}"))
    assert screen.texts == ["rate limited. Trying again (attempt 3 of 3)."]


def test_errors_are_said_once(screen: Screen) -> None:
    error = delta("loop_error", message="it broke", is_terminal=True, run_id="r1", id="e1")
    again = delta("loop_error", message="it broke", is_terminal=True, run_id="r1", id="e1")
    screen(
        assistant("x", seq=1),
        error,
        again,
        finished("error", error="it broke"),
        finished("error", error="it broke"),
    )
    assert screen.texts == ["x", "it broke"]
    assert screen.view.rows[1].kind == "error"


def test_an_error_told_only_by_the_end_is_shown(screen: Screen) -> None:
    screen(assistant("x", seq=1), finished("error", error="provider said no"))
    assert screen.texts == ["x", "provider said no"]
    screen(assistant("y", mid="m2", run="r2", seq=1), finished("max_steps", run="r2", turn="t2"))
    assert screen.texts[-1] == "The turn stopped: it reached the limit of steps."


def test_compaction_and_commands_are_rows(screen: Screen) -> None:
    screen(delta("event_message", event_type="compaction", id="ev1"))
    screen(delta("summary_message", id="s1", summary="before: tea"))
    screen(
        delta("slash_command_start", command_id="k", input="/compact", id="1"),
        delta("slash_command_end", command_id="k", input="/compact", output="done", success=True, id="2"),
    )
    assert screen.texts == ["Older messages are being summarised.", "before: tea", "/compact\ndone"]


# The recorded trace and sizes.


def recorded(connection: str) -> list[dict[str, Any]]:
    lines = (Path(__file__).parent / "traces" / "joined.jsonl").read_text().splitlines()
    return [d for d in map(json.loads, lines) if d["c"] == connection]


@pytest.mark.parametrize("doubled", [False, True])
@pytest.mark.parametrize("connection", ["a", "b"])
def test_the_recorded_trace(connection: str, doubled: bool) -> None:
    """``a`` started the conversation; ``b`` joined in the middle of its first reply."""
    runtime = next(d["f"]["runtime"] for d in recorded("a") if "f" in d)
    transcript = Transcript(runtime["agent_id"], runtime["conversation_id"])
    transcript.connected(connection)
    screen, asked, last = view.View(), {}, None
    for line in recorded(connection):
        if "SEND" in line:
            sent = line["SEND"]
            if sent["type"] == "conversation_messages_list":
                asked[sent["request_id"]] = transcript.mark(), "before" not in sent["query"]
            continue
        frame = frame_of(line["f"])
        page = frame.history_page
        for _ in range(2 if doubled else 1):
            if page is None:
                screen.apply(transcript.apply(frame))
            else:
                mark, newest = asked[frame.request_id or ""]
                screen.apply(
                    transcript.merge_history(page.messages, asked=mark, newest=newest, has_more=page.has_more)
                )
                last = page if newest else last
            assert screen.rows == list(transcript.rows)
    texts = {r.key: r.text for r in screen.rows}
    first = texts["assistant:ui-msg-2:assistant:1"]
    assert first == "ZQBEG1 " + "".join(f"w{n:04} " for n in range(40)) + " ZQEND1"
    assert not any("system-reminder" in text for text in texts.values())
    states = {r.tool.call_id[:7]: r.tool.state for r in screen.rows if r.tool}
    if connection == "a":
        assert states == {"call_3_": "done", "call_5_": "failed", "call_8_": "closed"}
        assert not transcript.unsettled
        order = [r.kind for r in screen.rows if r.kind != "notice"]
        assert order[:7] == ["user", "reasoning", "assistant", "user", "assistant", "user", "tool"]


def test_a_long_reply_costs_no_more_than_its_length(screen: Screen) -> None:
    frames = [assistant("x" * 64, seq=n + 1) for n in range(200 * 1024 // 64)]
    began = time.process_time()
    updates = [u for frame in frames for u in screen.transcript.apply(frame)]
    took = time.process_time() - began
    assert sum(len(u.text) for u in updates if isinstance(u, TextAppended)) == 200 * 1024 - 64
    assert len(screen.transcript.rows[0].text) == 200 * 1024
    assert took < 0.3


def test_long_arguments_cost_no_more_than_their_length(screen: Screen) -> None:
    told = 0
    for n in range(20_000):
        call = {"tool_call_id": "c1", "name": "Write", "arguments": '{"a":"' if n == 0 else "xxxx}"}
        for update in screen.transcript.apply(
            delta("tool_call_message", id="m", run_id="r", seq_id=n, tool_call=call)
        ):
            told += sum(len(r.tool.arguments) for s in update.splices for r in s.rows if r.tool)  # type: ignore[union-attr]
    assert told < 2_000_000


def test_ten_thousand_rows_merge_fast() -> None:
    rows: list[dict[str, Any]] = []
    for n in range(2500):
        rows += [
            user_row(f"question {n}", mid=f"u{n}", otid=f"o{n}"),
            text_row("answer " * 20, mid=f"m{n}"),
            call_row(f"c{n}", mid=f"t{n}"),
            result_row(f"c{n}", "out", mid=f"x{n}"),
            text_row("done", mid=f"d{n}"),
        ]

    def merge(transcript: Transcript) -> tuple[float, list[Any]]:
        began = time.process_time()
        updates = transcript.merge_history(rows, asked=1, order="asc", newest=True, has_more=False)
        return time.process_time() - began, updates

    first, again = [], []
    for _ in range(3):
        fresh = Screen().transcript
        first.append(merge(fresh)[0])
        took, updates = merge(fresh)
        again.append(took)
        assert updates == []
        assert len(fresh.rows) == 10_000
    began = time.process_time()
    (update,) = fresh.merge_history(
        [*rows[-50:], text_row("new", mid="new")], asked=1, order="asc", newest=True, has_more=True
    )
    page = time.process_time() - began
    assert [(s.start, s.delete, len(s.rows)) for s in update.splices] == [(10_000, 0, 1)]  # type: ignore[union-attr]
    assert min(first) < 0.5
    assert min(again) < 0.5
    assert page < 0.1
