"""Which conversation is opened, and in which mode."""

from __future__ import annotations

import pytest

from letta_tui.worker.config import Mode, Target
from letta_tui.worker.picking import CreateIt, OpenIt, PickAgent, Stored, looseness, pick, resume_mode

LAST = Stored("agent-a", "conv-1")
LAST_OF_B = Stored("agent-b", "conv-7")


def test_an_explicit_conversation_wins_over_everything_stored() -> None:
    for new in (False, True):
        found = pick(Target(agent_id="agent-b", conversation_id="conv-9", new=new), LAST, LAST_OF_B)
        assert isinstance(found, OpenIt)
        assert (found.agent_id, found.conversation_id) == ("agent-b", "conv-9")


def test_an_explicit_conversation_whose_agent_is_not_known_is_asked_for() -> None:
    found = pick(Target(conversation_id="conv-9"), LAST, None)
    assert isinstance(found, OpenIt)
    assert found.agent_id == ""
    known = pick(Target(conversation_id="conv-1"), LAST, None)
    assert isinstance(known, OpenIt)
    assert known.agent_id == "agent-a"


def test_an_agent_means_the_last_conversation_with_it_else_a_new_real_one() -> None:
    found = pick(Target(agent_id="agent-b"), LAST, LAST_OF_B)
    assert isinstance(found, OpenIt)
    assert found.conversation_id == "conv-7"
    assert pick(Target(agent_id="agent-c"), LAST, None) == CreateIt(
        "agent-c", "the first one with this agent here"
    )


def test_without_a_wish_the_last_conversation_is_opened() -> None:
    found = pick(Target(), LAST, None)
    assert isinstance(found, OpenIt)
    assert found.conversation_id == "conv-1"
    assert pick(Target(), None, None) == PickAgent()


def test_new_and_default_are_asked_for_by_name_only() -> None:
    assert isinstance(pick(Target(new=True), LAST, None), CreateIt)
    assert pick(Target(new=True), None, None) == PickAgent(new=True)
    found = pick(Target(default=True), LAST, None)
    assert isinstance(found, OpenIt)
    assert (found.agent_id, found.conversation_id) == ("agent-a", "default")
    assert pick(Target(default=True), None, None) == PickAgent(default=True)


@pytest.mark.parametrize("stored", [None, "", "strict", "standard", "acceptEdits", "unrestricted", "odd"])
@pytest.mark.parametrize("server", [None, "strict", "standard", "acceptEdits", "unrestricted", "odd"])
def test_a_stored_mode_is_never_sent_if_it_is_looser_than_the_servers(
    stored: str | None, server: str | None
) -> None:
    sent = resume_mode(None, stored, server)
    if server in ("strict", "standard", "acceptEdits", "unrestricted"):
        assert looseness(sent) <= looseness(server)
    # Nor does the server's word alone loosen what was stored: a fresh one says "unrestricted" unasked.
    known = stored if stored in ("strict", "standard", "acceptEdits", "unrestricted") else "standard"
    assert looseness(sent) <= looseness(known)


@pytest.mark.parametrize("mode", ["strict", "standard", "acceptEdits", "unrestricted"])
def test_what_the_person_names_now_is_sent(mode: Mode) -> None:
    assert resume_mode(mode, "strict", "strict") == mode
