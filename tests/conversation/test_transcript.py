"""The transcript as a person sees it: text, order, and how stream and history join."""

from __future__ import annotations

import json

from letta_tui.conversation.entries import GONE, UNKEPT
from letta_tui.protocol.frames import frame_of
from letta_tui.seam.updates import TextAppended
from tests.conversation import view
from tests.conversation.screen import BUSY, IDLE, Screen
from tests.conversation.view import assistant, call_row, delta, finished, loop, result_row, text_row, user_row


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


def test_an_error_of_a_model_without_a_provider_says_what_helps(screen: Screen) -> None:
    screen(delta("error_message", id="e1", message="Provider is not configured: openai"))
    assert screen.texts == [
        "Provider is not configured: openai. /model chooses another model, /setup connects a provider."
    ]
