"""How a turn ends, apart from how the connection does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from letta_tui.conversation.turn import GRACE, Turn, TurnEnd
from letta_tui.protocol.frames import frame_of
from tests.conversation import view
from tests.conversation.view import assistant, delta, device, finished, loop

IDLE, BUSY = "WAITING_ON_INPUT", "PROCESSING_API_RESPONSE"


class Play:
    def __init__(self) -> None:
        self.turn = Turn(view.AGENT, view.CONVERSATION)
        self.turn.connected("c1")
        self.now = 100.0
        self.ends: list[TurnEnd] = []
        self(device(False), loop(IDLE))

    def __call__(self, *frames: Any) -> Play:
        for frame in frames:
            self.now += 0.1
            self.ends += self.turn.apply(frame, self.now)
        return self

    def begin(self) -> Play:
        return self(
            loop("SENDING_API_REQUEST"),
            device(True),
            loop(BUSY, "r1", by_run={"r1": ["s1"]}),
            assistant("hel", seq=1),
            assistant("lo", seq=2),
        )

    def end(self, stop: str = "end_turn") -> Play:
        return self(delta("stop_reason", stop_reason=stop, run_id="r1", seq_id=3), loop(IDLE), device(False))

    @property
    def outcomes(self) -> list[str]:
        return [e.outcome for e in self.ends]


@pytest.fixture
def play() -> Play:
    return Play()


def test_an_ordinary_turn(play: Play) -> None:
    assert play.turn.idle_known
    play.begin()
    assert play.turn.active
    assert play.turn.activity == "streaming"
    assert not play.turn.idle_known
    play.end()(finished(), finished(), device(False))
    (end,) = play.ends
    assert (end.outcome, end.stop_reason, end.final_text, end.run_ids, end.client_message_ids) == (
        "done",
        "end_turn",
        "hello",
        ("r1",),
        ("s1",),
    )
    assert end.duration is not None
    assert end.duration > 0
    assert play.turn.activity == "idle"


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ((assistant("lo again", seq=9),), None),  # of the message that was being said: what is missing?
        ((), None),
        ((assistant("lo", seq=9), assistant("all", mid="m2", seq=10)), "all"),
    ],
)
def test_words_that_were_not_heard_whole_are_not_called_the_last_words(
    play: Play, then: tuple[Any, ...], said: str | None
) -> None:
    play.begin()
    play.turn.connected("c2")
    play(device(True), loop(BUSY, "r1", by_run={"r1": ["s1"]}), *then).end()(finished())
    (end,) = play.ends
    assert (end.outcome, end.final_text) == ("done", said)


def test_requires_approval_is_no_end(play: Play) -> None:
    play.begin()(delta("stop_reason", stop_reason="requires_approval", run_id="r1", seq_id=3))
    play(loop("WAITING_ON_APPROVAL", "r1"), device(True), finished("requires_approval"))
    assert play.ends == []
    assert play.turn.activity == "approval"
    play(loop("EXECUTING_CLIENT_SIDE_TOOL", "r1", tools=("a", "b")))
    assert play.turn.activity_words == "Running 2 tools"
    play(loop(BUSY, "r2", by_run={"r2": ["s1"]}), assistant("done", run="r2", mid="m2", seq=1))
    play(delta("stop_reason", stop_reason="end_turn", run_id="r2", seq_id=2), loop(IDLE), device(False))
    play(finished(run="r2"))
    (end,) = play.ends
    assert (end.run_ids, end.final_text) == (("r1", "r2"), "done")


def test_the_end_frame_is_lost(play: Play) -> None:
    play.begin().end()
    assert play.ends == []
    assert play.turn.resting
    play.now += GRACE
    play(device(False))
    assert play.outcomes == ["done"]
    play(finished())
    assert play.outcomes == ["done"]


def test_the_end_frame_is_lost_and_the_next_turn_begins(play: Play) -> None:
    play.begin().end()(loop("SENDING_API_REQUEST"))
    assert play.outcomes == ["done"]
    assert play.turn.active
    assert play.turn.run_ids == ()


def test_the_end_overtakes_the_deltas(play: Play) -> None:
    play.begin()(finished(), assistant("!", seq=3), loop(BUSY, "r1"))
    assert not play.turn.active
    play.end()
    play.now += GRACE
    play(device(False), loop(IDLE))
    assert play.outcomes == ["done"]


@pytest.mark.parametrize(
    ("stop", "error", "outcome"),
    [
        ("end_turn", "", "done"),
        ("cancelled", "", "cancelled"),
        ("error", "boom", "failed"),
        ("max_steps", "", "failed"),
        ("llm_api_error", "", "failed"),
    ],
)
def test_outcomes(play: Play, stop: str, error: str, outcome: str) -> None:
    play.begin()(finished(stop, error=error))
    assert play.outcomes == [outcome]
    assert play.ends[0].error == error


def test_a_failure_before_any_run(play: Play) -> None:
    play(
        loop("SENDING_API_REQUEST"),
        delta("loop_error", message="no", is_terminal=True, client_message_ids=["s1"]),
    )
    play(finished("error", run=None))
    assert play.outcomes == ["failed"]
    assert play.ends[0].error == "no"


def test_a_remark_is_not_a_failure(play: Play) -> None:
    play.begin()(delta("loop_error", message="slow", is_terminal=False, run_id="r1")).end()(finished())
    assert play.outcomes == ["done"]


def test_a_passing_error_is_not_the_reason_of_a_later_end(play: Play) -> None:
    play.begin()(delta("loop_error", message="slow", is_terminal=False, run_id="r1"), finished("max_steps"))
    assert play.ends[0].error == ""


def test_a_turn_that_ended_unseen(play: Play) -> None:
    play.begin()
    play.turn.connected("c2")
    assert play.turn.active
    assert not play.turn.idle_known
    play(device(False))
    assert play.ends == []
    play(loop(IDLE))
    assert play.outcomes == ["ended_unseen"]
    assert play.ends[0].client_message_ids == ("s1",)


def test_a_turn_that_went_on_meanwhile(play: Play) -> None:
    play.begin()
    play.turn.connected("c2")
    play(device(True), loop(BUSY, "r1", by_run={"r1": ["s1"]}), assistant("!", seq=9)).end()(finished())
    assert play.outcomes == ["done"]


def test_run_ids_start_again_after_a_restart(play: Play) -> None:
    play.begin().end()(finished())
    play.turn.connected("c2")
    play(device(False), loop(IDLE), loop(BUSY, "r1", by_run={"r1": ["s9"]}), assistant("x", seq=1))
    play(delta("stop_reason", stop_reason="end_turn", run_id="r1", seq_id=2), loop(IDLE), device(False))
    play(finished(turn="t2"))
    assert play.outcomes == ["done", "done"]
    assert play.ends[1].client_message_ids == ("s9",)


@pytest.mark.parametrize("run", ["r1", "r7"])
def test_a_restarted_server_that_runs_something_else_did_not_finish_the_broken_turn(run: str) -> None:
    play = Play().begin()
    play.turn.connected("c2")
    play(device(True), loop("SENDING_API_REQUEST"), loop(BUSY, run, by_run={run: ["s9"]}))
    assert play.outcomes == ["ended_unseen"]
    assert play.ends[0].client_message_ids == ("s1",)
    play(assistant("other", run=run, seq=1), loop(IDLE), device(False), finished(run=run, turn="t2"))
    assert play.outcomes == ["ended_unseen", "done"]
    assert play.ends[1].client_message_ids == ("s9",)
    assert play.ends[1].run_ids == (run,)


def test_a_restarted_server_that_runs_the_same_again_goes_on_with_the_turn(play: Play) -> None:
    play.begin()
    play.turn.connected("c2")
    play(device(True), loop("SENDING_API_REQUEST"), loop(BUSY, "r7", by_run={"r7": ["s1", "s2"]}))
    play(loop(IDLE), device(False), finished(run="r7", turn="t2"))
    assert play.outcomes == ["done"]
    assert play.ends[0].client_message_ids == ("s1", "s2")
    assert play.ends[0].run_ids == ("r7",)


def test_joined_in_the_middle_has_no_start() -> None:
    play = Play()
    play.turn.connected("c2")
    play(device(True), loop(BUSY, "r1"))
    assert play.turn.active
    assert play.turn.started is None
    play(finished())
    assert play.ends[0].duration is None


def test_a_change_of_the_mode_is_no_turn_and_waits_for_no_model(play: Play) -> None:
    play(loop("EXECUTING_COMMAND"))
    assert play.turn.activity == "command"
    play(device(False), loop(IDLE))
    assert play.turn.activity == "idle"
    assert play.ends == []


def test_echo_and_late_idle_between_turns(play: Play) -> None:
    play(delta("user_message", content="x", otid="s1", id="u"), loop(IDLE), device(False))
    play(loop("SENDING_API_REQUEST"), loop(IDLE))  # a status without any work is no turn
    play.now += GRACE
    play(device(False), device(False))
    assert play.ends == []
    assert not play.turn.active


def test_stopping(play: Play) -> None:
    play.begin()
    play.turn.aborting()
    assert play.turn.activity == "cancelling"
    play(loop(IDLE), device(False), loop(IDLE), device(False), device(False))
    assert play.ends == []
    play(finished("cancelled"))
    assert play.outcomes == ["cancelled"]
    play.turn.aborting()
    assert play.turn.activity == "idle"


def test_tokens(play: Play) -> None:
    play(delta("usage_statistics", context_tokens=0, total_tokens=5, run_id="r1", seq_id=1))
    assert play.turn.tokens == 0


@pytest.mark.parametrize("doubled", [False, True])
@pytest.mark.parametrize("connection", ["a", "b"])
def test_the_recorded_trace(connection: str, doubled: bool) -> None:
    lines = (Path(__file__).parent / "traces" / "joined.jsonl").read_text().splitlines()
    received = [d for d in map(json.loads, lines) if d["c"] == connection and "f" in d]
    runtime = next(d["f"]["runtime"] for d in received if "runtime" in d["f"])
    turn = Turn(runtime["agent_id"], runtime["conversation_id"])
    turn.connected(connection)
    ends: list[TurnEnd] = []
    for line in received:
        for _ in range(2 if doubled else 1):
            ends += turn.apply(frame_of(line["f"]), line["t"])
    assert [e.outcome for e in ends] == ["done", "done", "done", "done", "cancelled", "cancelled"]
    assert all(e.turn_id for e in ends)
    assert ends[2].run_ids == ("local-run-3", "local-run-4")
    assert [len(e.client_message_ids) for e in ends] == [1, 1, 1, 1, 1, 2]
    assert (ends[0].final_text is None) == (connection == "b")  # which came in the middle of it
    assert ends[1].final_text == "ZQBEG2 ok ZQEND2"
    assert turn.idle_known
