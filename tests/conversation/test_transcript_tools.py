"""The transcript as a person sees it: tool calls, and remarks about the turn."""

from __future__ import annotations

import json
from typing import Any

import pytest

from letta_tui.seam.updates import TextAppended
from tests.conversation.screen import BUSY, IDLE, Screen
from tests.conversation.view import assistant, call_row, delta, finished, loop, result_row


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


def test_one_error_in_several_wrappings_is_one_row_of_plain_words(screen: Screen) -> None:
    said = '500: {"message":"broken","type":"practice_error"}'
    wrapped = json.dumps({"error": {"error": {"type": "backend", "message": said}, "run_id": "r1"}})
    screen(
        assistant("x", seq=1),
        delta("loop_error", message=said, is_terminal=False, run_id="r1", id="e1"),
        delta("loop_error", message=wrapped, is_terminal=True, run_id="r1", id="e2"),
        finished("error", error=wrapped),
    )
    assert screen.texts == ["x", "500: broken"]
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
