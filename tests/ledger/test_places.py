"""What is remembered beside sends: conversations, windows, drafts, decisions, settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from letta_tui.ledger.errors import IllegalMove, NoSuchSend
from letta_tui.ledger.peek import examine, last_used
from letta_tui.ledger.store import Ledger
from letta_tui.ledger.values import Place
from tests.ledger.conftest import OTHER, PLACE, FakeClock

SECOND = Place("server-a", "agent-1", "local-conv-2")


def test_empty_values_never_overwrite_what_is_stored(ledger: Ledger) -> None:
    ledger.remember_server("server-a", label="ws://host:1", kind="direct")
    ledger.remember_conversation(
        PLACE, title="Plans", agent_name="Ada", state={"cwd": "/work", "skill_sources": ["agent"]}
    )
    ledger.remember_server("server-a")
    found = ledger.remember_conversation(PLACE, state={"cwd": "", "mode": "standard", "skill_sources": None})
    assert (found.title, found.agent_name, found.endpoint_label) == ("Plans", "Ada", "ws://host:1")
    assert found.state == {"cwd": "/work", "skill_sources": ["agent"], "mode": "standard"}
    ledger.forget_state(PLACE, "mode")
    assert ledger.remember_conversation(PLACE, used=False).state == {
        "cwd": "/work",
        "skill_sources": ["agent"],
    }


def test_another_window_does_not_change_what_this_one_comes_back_to(ledger: Ledger) -> None:
    ledger.remember_conversation(PLACE, window_id="w1")
    ledger.remember_conversation(SECOND, window_id="w2")
    ledger.remember_conversation(OTHER, used=False)

    def back(window: str = "", agent: str | None = None) -> Place | None:
        found = ledger.last_used(agent_id=agent, window_id=window)
        return found.place if found else None

    assert back("w1") == PLACE
    assert back("w2") == SECOND
    assert back() == SECOND
    assert back("a new window") == SECOND
    assert back(agent="agent-2") is None, "only stored, never used"
    assert back(agent="nobody") is None


def test_the_last_used_is_counted_not_timed(ledger: Ledger, clock: FakeClock, path: Path) -> None:
    ledger.remember_conversation(PLACE)
    clock.wall -= 500_000
    ledger.remember_conversation(SECOND)
    found = ledger.last_used()
    assert found is not None
    assert found.place == SECOND
    peeked = last_used(path)
    assert peeked is not None
    assert peeked.conversation_id == SECOND.conversation_id
    assert examine(path).problem == ""


def test_drafts_are_per_window_and_adopted_whole(ledger: Ledger, clock: FakeClock) -> None:
    ledger.save_draft("w1", PLACE, "one")
    clock.advance(1)
    ledger.save_draft("w2", PLACE, "two")
    assert [d.text for d in ledger.drafts(PLACE)] == ["two", "one"]
    assert ledger.adopt_draft("w1", "w2", PLACE) is None, "never over a draft that is there"
    adopted = ledger.adopt_draft("w1", "w3", PLACE)
    assert adopted is not None
    assert adopted.text == "one"
    assert ledger.draft("w1", PLACE) is None
    assert ledger.adopt_draft("w1", "w4", PLACE) is None
    ledger.save_draft("w2", PLACE, "")
    assert [d.window_id for d in ledger.drafts(PLACE)] == ["w3"]


def decide(ledger: Ledger, decision: str = "allow") -> None:
    ledger.decide(PLACE, "perm-1", tool_call_id="call-1", tool_name="Bash", decision=decision)  # type: ignore[arg-type]


def test_a_decision_is_recorded_before_it_is_written_and_never_twice(ledger: Ledger) -> None:
    decide(ledger)
    assert [a.state for a in ledger.approvals(PLACE, open_only=True)] == ["decided"]
    with pytest.raises(IllegalMove):
        decide(ledger, "deny")
    ledger.approval_moved(PLACE, "perm-1", "written", input_request_id="r1", connection_id="c1")
    with pytest.raises(IllegalMove):
        decide(ledger)
    done = ledger.approval_moved(PLACE, "perm-1", "acknowledged")
    assert (done.input_request_id, done.connection_id) == ("r1", "c1")
    with pytest.raises(IllegalMove):
        ledger.approval_moved(PLACE, "perm-1", "written")
    assert ledger.approvals(PLACE, open_only=True) == ()


def test_a_request_still_pending_after_a_reconnect_is_decided_anew(ledger: Ledger) -> None:
    decide(ledger)
    ledger.approval_moved(PLACE, "perm-1", "written")
    ledger.approval_moved(PLACE, "perm-1", "lost")
    decide(ledger, "deny")
    found = ledger.approval(PLACE, "perm-1")
    assert found is not None
    assert (found.decision, found.number, found.state) == ("deny", 2, "decided")
    assert len(ledger.approvals(PLACE)) == 2


def test_a_refused_or_closed_decision_says_so(ledger: Ledger) -> None:
    decide(ledger)
    ledger.approval_moved(PLACE, "perm-1", "refused", words="Approval request is no longer pending")
    found = ledger.approval_moved(PLACE, "perm-1", "closed_by_server")
    assert found.words == "Approval request is no longer pending"
    assert ledger.approval(OTHER, "perm-1") is None, "a decision belongs to one conversation of one server"
    with pytest.raises(NoSuchSend):
        ledger.approval_moved(OTHER, "perm-1", "written")


def test_settings(ledger: Ledger) -> None:
    assert ledger.setting("retention_days") is None
    ledger.set_setting("retention_days", 30)
    assert ledger.setting("retention_days") == 30
    ledger.set_setting("retention_days", None)
    assert ledger.setting("retention_days") is None
