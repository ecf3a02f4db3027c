"""When a keeper's note of an end says something about a message."""

from __future__ import annotations

from dataclasses import replace

import pytest

from letta_tui.ledger.values import Evidence, Place, Send, Stamp
from letta_tui.worker.noted import noted_ends
from letta_tui.worker.ports import EndNote

NOTE = EndNote(
    100.0, "a", "c", "done", "", inputs=("m1", "m2"), stop_reason="end_turn", turn_id="t1", run_id="r1"
)


def send(key: str, reran: float | None = None) -> Send:
    at = Stamp(50.0, 50.0, "boot")
    last = (
        {} if reran is None else {"server_reran": Evidence("server_reran", stamp=Stamp(reran, reran, "boot"))}
    )
    return Send(
        client_message_id=key, otid=key, place=Place("s", "a", "c"), text="", delivery="delivered",
        outcome="running", created=at, updated=at, last=last,
    )  # fmt: skip


def test_it_says_what_it_knows_and_who_saw_it() -> None:
    (end,) = noted_ends([NOTE], [send("m1")])
    assert end.client_message_ids == ("m1", "m2")
    assert end.outcome == "done"
    assert end.terminal["seen_by"] == "keeper"
    assert end.terminal["inputs"] == ["m1", "m2"]
    assert "final_text" not in end.terminal  # not "it said nothing"


@pytest.mark.parametrize(
    ("note", "reran"),
    [
        (replace(NOTE, inputs=()), None),  # the server did not say what it answered
        (replace(NOTE, outcome="awaiting_approval"), None),  # a run ended, not the turn
        (replace(NOTE, what="approval"), None),
        (NOTE, 100.0),  # it was seen to run again since
    ],
)
def test_what_says_nothing(note: EndNote, reran: float | None) -> None:
    assert noted_ends([note], [send("m1", reran)]) == () or reran is not None
    assert all("m1" not in end.client_message_ids for end in noted_ends([note], [send("m1", reran)]))


def test_an_end_after_it_ran_again_counts() -> None:
    (end,) = noted_ends([NOTE], [send("m1", 99.0)])
    assert "m1" in end.client_message_ids
