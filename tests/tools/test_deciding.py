"""What is done about a call, and what a person is told afterwards."""

from __future__ import annotations

from dataclasses import replace

from letta_tui.ledger.values import Approval, Place, Stamp, ToolCall
from letta_tui.tools.deciding import (
    Ask,
    Ignore,
    Refuse,
    Repeat,
    Run,
    is_ours,
    lost_note,
    plan,
    session_notes,
)
from letta_tui.tools.values import Tool

PLACE = Place("s", "a", "c")
TOOL = Tool("weather", "d", {}, ("x",))
CALL = ToolCall(PLACE, "r1", "call_0", "weather", {"city": "Ulm"}, "asked", at := Stamp(100, 1, "b"), at)


def allowed(**changes: object) -> Approval:
    values: dict[str, object] = {
        "place": PLACE,
        "request_id": "perm-call_0",
        "tool_call_id": "call_0",
        "tool_name": "weather",
        "decision": "allow",
        "message": "",
        "suggestion_ids": (),
        "state": "acknowledged",
        "decided": Stamp(90, 1, "b"),
        "updated": Stamp(90, 1, "b"),
        "window_id": "w",
        **changes,
    }
    return Approval(**values)  # type: ignore[arg-type]


def test_a_tool_is_run_by_the_config_or_by_a_persons_yes_or_asks() -> None:
    assert plan(replace(TOOL, approval="auto"), CALL, new=True, working=False) == Run("the config")
    assert plan(TOOL, CALL, new=True, working=False) == Ask()
    assert plan(TOOL, CALL, new=True, working=False, approvals=[allowed()]) == Run("you")
    for other in (
        allowed(decision="deny"),
        allowed(state="refused"),
        allowed(tool_name="search"),
        allowed(tool_call_id="call_1"),
    ):
        assert plan(TOOL, CALL, new=True, working=False, approvals=[other]) == Ask()
    assert isinstance(plan(None, CALL, new=True, working=False), Refuse)


def test_a_yes_for_the_session_counts_in_its_window_only() -> None:
    rule = allowed(tool_call_id="call_9", suggestion_ids=("save-default",))
    assert plan(TOOL, CALL, new=True, working=False, approvals=[rule], window_id="w") == Run("you")
    assert plan(TOOL, CALL, new=True, working=False, approvals=[rule], window_id="other") == Ask()


def test_a_yes_is_used_up_by_its_call_when_the_model_uses_the_id_again() -> None:
    before = replace(CALL, request_id="r0", state="confirmed", asked=Stamp(95, 1, "b"))
    again = {"new": True, "working": False, "earlier": [before], "approvals": [allowed()]}
    assert plan(TOOL, CALL, **again) == Ask()  # type: ignore[arg-type]
    fresh = {**again, "approvals": [allowed(decided=Stamp(99, 1, "b"))]}
    assert plan(TOOL, CALL, **fresh) == Run("you")  # type: ignore[arg-type]


def test_nothing_that_may_have_run_is_run_again() -> None:
    assert plan(TOOL, CALL, new=False, working=True) == Ignore()
    for state in ("running", "lost"):
        known = replace(CALL, state=state)  # type: ignore[arg-type]
        assert isinstance(plan(TOOL, known, new=False, working=False), Refuse)
        anew = plan(TOOL, replace(CALL, request_id="r2"), new=True, working=False, earlier=[known])
        assert isinstance(anew, Refuse)
        assert "not known" in anew.words
    done = replace(CALL, state="finished", result="sunny")
    assert plan(TOOL, done, new=False, working=False) == Repeat(done)
    assert plan(TOOL, replace(CALL, request_id="r2"), new=True, working=False, earlier=[done]) == Repeat(done)
    # Another input under the same id is another call.
    other = replace(CALL, request_id="r2", input={"city": "Bonn"})
    assert plan(TOOL, other, new=True, working=False, earlier=[done]) == Ask()


def test_the_servers_word_for_no_answer_is_told_from_a_result() -> None:
    assert is_ours("sunny")
    assert not is_ours("External tool execution error: Listener connection closed")
    assert not is_ours("External tool call timed out after 1s: weather. The remote tool may still finish")
    assert not is_ours("User interrupted the stream")


def test_notes_say_what_is_known() -> None:
    assert "was not run" in lost_note(CALL)
    assert "not known" in lost_note(replace(CALL, state="running"))
    assert "ran, but its answer did not reach" in lost_note(replace(CALL, state="written"))
    before = {"external_tools": ["weather", "search"], "cwd": "/x", "device": "d1"}
    assert session_notes(before, tools=["weather"], cwd="/y", device="d2", missing=["MCP is missing."]) == [
        "Tools re-registered: weather.",
        "Tools no longer offered: search.",
        "MCP is missing.",
        "The folder /x is gone: using /y.",
        "This conversation was on device d1; now it is on d2.",
    ]
    assert session_notes({}, tools=["weather"], cwd="/y", device="") == []
    kept = {"cwd": "/y", "mode": "acceptEdits", "skill_sources": ["project"], "toolset": {"base": "none"}}
    assert session_notes(kept, tools=(), cwd="/y", device="", mode="acceptEdits") == [
        "As before: folder /y, mode acceptEdits, skills from project, the choice of the server's tools."
    ]
    plain = {"cwd": "/y", "mode": "unrestricted"}
    assert session_notes(plain, tools=(), cwd="/y", device="", mode="unrestricted") == []
    assert session_notes(plain, tools=(), cwd="/y", device="", mode="standard") == [
        "The permission mode was unrestricted; the server's is kept: standard."
    ]
