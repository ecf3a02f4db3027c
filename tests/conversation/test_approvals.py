"""What waits for a person: seen, bound to its request, settled only by the server's snapshot."""

from __future__ import annotations

from typing import Any

import pytest

from letta_tui.conversation.approvals import Approvals, Settled
from letta_tui.conversation.headlines import headline
from tests.conversation import view


def ask(call: str, tool: str = "Bash", **body: Any) -> dict[str, Any]:
    values = body.pop("input", {"command": f"echo {call}"})
    return {
        "request_id": f"perm-{call}",
        "request": {
            "subtype": "can_use_tool",
            "tool_name": tool,
            "input": values,
            "tool_call_id": call,
            **body,
        },
    }


def asked(call: str, runtime: Any = None, **body: Any) -> Any:
    return view.event("control_request", ask(call, **body), runtime)


def make() -> Approvals:
    approvals = Approvals(view.AGENT, view.CONVERSATION)
    approvals.connected("c1")
    return approvals


def test_from_event_and_snapshot_once() -> None:
    approvals = make()
    frame = asked("a")
    for _ in range(2):
        approvals.apply(frame)
        approvals.apply(asked("a"))  # a replay comes with another key
        approvals.apply(view.device(True, ask("a")))
    assert [v.request_id for v in approvals.pending] == ["perm-a"]
    assert approvals.tool_call_ids == ("a",)
    assert approvals.known


def test_a_restart_finds_it_in_the_snapshot_alone() -> None:
    approvals = make()
    approvals.apply(view.device(True, ask("a", permission_suggestions=[{"id": "s", "text": "Always"}])))
    (one,) = approvals.pending
    assert (one.headline, one.suggestions[0].text, one.position, one.total) == ("Run: echo a", "Always", 1, 1)


def test_gone_from_the_snapshot_is_settled() -> None:
    approvals = make()
    approvals.apply(asked("a"))
    approvals.apply(view.device(True, ask("a")))
    assert approvals.apply(view.device(True)) == (Settled("perm-a", "a", ours=False),)
    assert approvals.pending == ()
    frame = asked("b")
    approvals.apply(frame)
    assert approvals.deciding("perm-b")
    assert approvals.pending[0].state == "deciding"
    assert approvals.apply(view.device(True)) == (Settled("perm-b", "b", ours=True),)
    approvals.apply(frame)  # the same event again does not bring it back
    assert approvals.pending == ()


def test_one_answer_at_a_time() -> None:
    approvals = make()
    approvals.apply(asked("a"))
    assert approvals.deciding("perm-a")
    assert not approvals.deciding("perm-a")
    assert not approvals.deciding("perm-nothing")
    approvals.refused("perm-a", "The server refused it.")
    assert (approvals.pending[0].state, approvals.pending[0].note) == ("refused", "The server refused it.")
    assert approvals.deciding("perm-a")
    approvals.undecided("perm-a", "The connection was lost before the server answered.")
    assert approvals.pending[0].state == "pending"
    approvals.refused("perm-gone", "x")


def test_an_answer_stays_under_way_while_the_snapshot_still_lists_it() -> None:
    approvals = make()
    approvals.apply(asked("a"))
    approvals.deciding("perm-a")
    assert approvals.apply(view.device(True, ask("a"))) == ()
    assert approvals.pending[0].state == "deciding"


def test_only_of_this_runtime() -> None:
    approvals = make()
    other = {"agent_id": "agent-2", "conversation_id": view.CONVERSATION}
    approvals.apply(asked("a", other))
    approvals.apply(view.device(True, ask("b"), runtime=other))
    assert approvals.pending == ()
    approvals.apply(asked("c"))
    approvals.apply(view.device(True, runtime=other))
    assert len(approvals.pending) == 1


def test_two_of_four() -> None:
    approvals = make()
    for call in "wxyz":
        approvals.apply(
            view.delta(
                "approval_request_message",
                run_id="r1",
                id="m",
                tool_call={"tool_call_id": call, "name": "Bash", "arguments": "{}"},
            )
        )
    approvals.apply(asked("x"))
    assert (approvals.pending[0].position, approvals.pending[0].total) == (2, 4)
    # The classifier let one of them pass: three are asked about.
    approvals.apply(
        view.delta("approval_classification_end", run_id="r1", user_input_tool_call_ids=["w", "x", "z"])
    )
    assert (approvals.pending[0].position, approvals.pending[0].total) == (2, 3)
    approvals.apply(view.device(True, ask("z")))
    assert (approvals.pending[0].position, approvals.pending[0].total) == (3, 3)
    # A later step with another call is its own.
    approvals.apply(asked("other"))
    approvals.apply(view.device(True, ask("other")))
    assert (approvals.pending[0].position, approvals.pending[0].total) == (1, 1)


def test_diffs() -> None:
    approvals = make()
    hunk = {
        "oldStart": 3,
        "newStart": 4,
        "lines": [{"type": "add", "content": "x"}, {"type": "odd", "content": "y"}],
    }
    diffs = [
        {"mode": "advanced", "fileName": "a.py", "hunks": [hunk, 7]},
        {"mode": "fallback", "fileName": "b.py", "reason": "too large"},
        {"mode": "unpreviewable", "fileName": "c.py"},
    ]
    approvals.apply(asked("a", tool="Edit", input={"file_path": "a.py"}, diffs=diffs, blocked_path="/etc"))
    (one,) = approvals.pending
    assert one.headline == "Edit a.py"
    assert one.blocked_path == "/etc"
    first = one.diffs[0].hunks[0]
    assert (first.old_start, first.new_start) == (3, 4)
    assert [(line.kind, line.text) for line in first.lines] == [("add", "x"), ("context", "y")]
    assert [d.reason for d in one.diffs] == [
        "",
        "too large",
        "This change cannot be shown before it is made.",
    ]


@pytest.mark.parametrize(
    ("tool", "values", "line"),
    [
        ("Bash", {"command": "ls -l\nrm x\n\nrm y"}, "Run: ls -l (+2 more lines)"),
        ("Bash", {"command": "make", "run_in_background": True}, "Run in the background: make"),
        ("run_shell_command", {"command": ["git", "log"]}, "Run: git log"),
        ("Write", {"file_path": "/a/b"}, "Write /a/b"),
        ("Read", {"file_path": "/a/b"}, "Read /a/b"),
        ("MultiEdit", {"file_path": "f", "edits": [1, 2]}, "Edit f (2 changes)"),
        (
            "Task",
            {"subagent_type": "explore", "description": "Look around"},
            "Start a helper agent (explore): Look around",
        ),
        ("Grep", {"pattern": "x", "path": "src"}, "Search for x in src"),
        ("ApplyPatch", {"input": "*** Add File: a\n+x\n*** Delete File: b"}, "Change a, b"),
        ("launch", {"where": "moon", "count": 2}, "Use launch: where=moon, count=2"),
        ("Bash", {"command": 5}, "Use Bash: command=5"),
        ("", {}, "Use a tool"),
    ],
)
def test_headlines(tool: str, values: dict[str, Any], line: str) -> None:
    assert headline(tool, values) == line


def test_a_headline_is_one_line_of_bounded_length() -> None:
    for tool in ("Bash", "nothing known"):
        line = headline(tool, {"command": "x" * 5000 + "\n" + "y" * 5000})
        assert "\n" not in line
        assert len(line) < 260
