"""Calls of the person's own tools in the ledger."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from letta_tui.ledger import schema
from letta_tui.ledger.calls import CALL_MOVES
from letta_tui.ledger.errors import IllegalMove
from letta_tui.ledger.store import Ledger
from letta_tui.ledger.values import Place
from tests.ledger.conftest import FakeClock

PLACE = Place("direct:a", "agent-1", "conv-1")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "ledger.sqlite3", FakeClock())


def ask(ledger: Ledger, request_id: str = "r1") -> bool:
    _, new = ledger.tool_asked(
        PLACE, request_id, tool_call_id="call_1", tool_name="weather", arguments={"city": "Ulm"}
    )
    return new


def test_a_call_begins_once_whoever_tries(ledger: Ledger) -> None:
    assert ask(ledger)
    assert not ask(ledger)  # the same request, delivered twice
    ledger.tool_moved(PLACE, "r1", "running", allowed_by="you")
    with pytest.raises(IllegalMove):
        ledger.tool_moved(PLACE, "r1", "running", allowed_by="you")
    ledger.tool_moved(PLACE, "r1", "finished", result="sunny")
    ledger.tool_moved(PLACE, "r1", "lost", words="its answer did not arrive")
    with pytest.raises(IllegalMove):
        ledger.tool_moved(PLACE, "r1", "running")
    (call,) = ledger.tool_calls(PLACE, tool_call_id="call_1")
    assert (call.state, call.result, call.allowed_by, call.input) == ("lost", "sunny", "you", {"city": "Ulm"})
    assert ledger.tool_calls(PLACE, open_only=True) == ()


def test_no_state_leads_back_to_running() -> None:
    assert [old for old, news in CALL_MOVES.items() if "running" in news] == ["asked"]


def test_the_file_itself_refuses_a_second_beginning(ledger: Ledger) -> None:
    ask(ledger)
    ledger.tool_moved(PLACE, "r1", "running")
    ledger.tool_moved(PLACE, "r1", "lost")
    raw = sqlite3.connect(ledger.path)
    for statement in (
        "UPDATE tool_calls SET state = 'running'",
        "DELETE FROM tool_calls",
        "UPDATE tool_calls SET request_id = 'r2'",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="illegal move"):
            raw.execute(statement)
    raw.close()


def test_what_went_in_and_came_out_is_forgotten_at_the_persons_wish(ledger: Ledger) -> None:
    ask(ledger)
    ledger.tool_moved(PLACE, "r1", "running")
    ledger.tool_moved(PLACE, "r1", "finished", result="a secret")
    assert "Ulm" not in str(ledger.export())
    assert "a secret" not in str(ledger.export())
    ledger.forget(PLACE)
    (call,) = ledger.tool_calls(PLACE)
    assert (dict(call.input), call.result, call.erased, call.state) == ({}, "", True, "finished")


def test_a_ledger_of_version_1_gets_the_table(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite3"
    Ledger.open(path, FakeClock()).close()
    raw = sqlite3.connect(path)
    raw.execute("DROP TABLE tool_calls")
    raw.execute("PRAGMA user_version = 1")
    raw.close()
    with Ledger.open(path, FakeClock()) as ledger:
        assert ledger.opening.migrated_from == 1
        assert ask(ledger)
    raw = sqlite3.connect(path)
    assert raw.execute("PRAGMA user_version").fetchone()[0] == schema.VERSION
    raw.close()
