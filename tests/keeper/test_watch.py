"""What the keeper concludes from frames, without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from letta_tui.keeper.ends import End, EndLog
from letta_tui.keeper.watch import Watch
from letta_tui.protocol.frames import frame_of

PLACE = ("agent-1", "conv-1")


def frame(kind: str, **fields: Any):
    runtime = {"agent_id": PLACE[0], "conversation_id": PLACE[1]}
    return frame_of({"type": kind, "runtime": runtime, **fields})


def loop(status: str, *runs: str):
    return frame("update_loop_status", loop_status={"status": status, "active_run_ids": list(runs)})


def device(processing: bool, *pending: str):
    requests = [{"request_id": p, "request": {"tool_name": "Bash"}} for p in pending]
    return frame(
        "update_device_status",
        device_status={"is_processing": processing, "pending_control_requests": requests},
    )


def delta(message_type: str, **fields: Any):
    return frame("stream_delta", delta={"message_type": message_type, **fields})


def finished(turn: str, stop_reason: str = "end_turn", **fields: Any):
    return frame("turn_finished", turn_id=turn, stop_reason=stop_reason, **fields)


def test_busy_is_anything_that_a_last_subscriber_would_destroy() -> None:
    watch = Watch()
    for begin, end in (
        (loop("SENDING_API_REQUEST"), loop("WAITING_ON_INPUT")),
        (device(True), device(False)),
        (device(False, "perm-1"), device(False)),
        (frame("update_queue", queue=[{"id": "q"}]), frame("update_queue", queue=[])),
    ):
        watch.apply(begin, 1.0)
        assert watch.busy == (PLACE,)
        watch.apply(end, 2.0)
        assert watch.busy == ()
    # A paused item waits for a person and may wait without us.
    watch.apply(frame("update_queue", queue=[{"id": "q", "paused": True}]), 3.0)
    assert watch.busy == ()


def test_a_turn_is_noted_with_the_messages_it_answered_and_no_others() -> None:
    watch = Watch()

    def running(run: str, **inputs: list[str]):
        status = {"status": "PROCESSING_API_RESPONSE", "active_run_ids": [run]}
        return frame("update_loop_status", loop_status={**status, "client_message_ids_by_run_id": inputs})

    frames = [
        running("run-1", **{"run-1": ["old", "with it"]}),  # its server dies, another runs something else
        running("run-7", **{"run-7": ["new"]}),
        running("run-8", **{"run-7": ["new"], "run-8": ["new"]}),  # after an approval
        finished("t1", run_id="run-8"),
        running("run-9", **{"run-7": ["new"], "run-8": ["new"], "run-9": ["next"]}),
        finished("t2", run_id="run-9"),
        finished("t3", run_id="run-10"),  # nobody said what it answered
        finished("t4"),
    ]
    ends = [end for at, f in enumerate(frames) for end in watch.apply(f, float(at))]
    assert [end.inputs for end in ends] == [("new",), ("next",), (), ()]
    assert [End.from_json(end.to_json()) for end in ends] == ends


def test_a_turn_is_noted_once_with_what_ran_and_what_was_refused() -> None:
    watch = Watch()
    frames = [
        loop("PROCESSING_API_RESPONSE", "run-1"),
        delta("approval_request_message", tool_call={"tool_call_id": "c1", "name": "Bash"}),
        delta("approval_request_message", tool_call={"tool_call_id": "c2", "name": "Write"}),
        frame("control_request", request_id="perm-c1", request={"tool_name": "Bash"}),
        frame("control_request", request_id="perm-c1", request={"tool_name": "Bash"}),
        delta("client_tool_start", tool_call_id="c1", tool_name="Bash"),
        delta("tool_return_message", tool_call_id="c1", tool_return="secret"),
        delta("tool_return_message", tool_call_id="c2", tool_return="secret"),
        finished("t1", run_id="run-2"),
        finished("t1", run_id="run-2"),
    ]
    ends = [end for at, f in enumerate(frames) for end in watch.apply(f, float(at))]
    assert ends == [
        End(3.0, "approval", *PLACE, tools=("Bash",)),
        End(
            8.0, "turn", *PLACE, stop_reason="end_turn", turn_id="t1", run_id="run-2",
            tools=("Bash",), denied=("Write",), seconds=8.0,
        ),
    ]  # fmt: skip


def test_the_error_of_a_turn_is_told_with_its_end_and_not_with_the_next() -> None:
    watch = Watch()
    watch.apply(delta("loop_error", message="no such model"), 1.0)
    (end,) = watch.apply(finished("t1", "error"), 2.0)
    assert end.words == "no such model"
    (after,) = watch.apply(finished("t2"), 3.0)
    assert after.words == ""


def test_a_server_that_dies_ends_what_was_open() -> None:
    watch = Watch()
    watch.apply(loop("PROCESSING_API_RESPONSE", "run-1"), 1.0)
    (end,) = watch.server_gone(2.0, "It ended.")
    assert (end.kind, end.conversation_id) == ("server", PLACE[1])
    assert watch.busy == ()


def test_the_log_survives_torn_lines_and_forgets(tmp_path: Path) -> None:
    log = EndLog(tmp_path / "ends.jsonl")
    kept = End(5.0, "turn", "a", "c", stop_reason="end_turn", tools=("Bash",), seconds=1.5)
    log.note(End(1.0, "turn", "a", "other"))
    log.note(kept)
    with (tmp_path / "ends.jsonl").open("a") as file:
        file.write('{"at": 6, "ki')
    assert log.since(0, "a", "c") == (kept,)
    assert log.since(5.0) == ()
    log.forget("a", "other")
    assert log.since(0) == (kept,)
    log.trim(now=5.0 + 31 * 86400)
    assert log.since(0) == ()


def test_a_disk_that_takes_nothing_costs_only_the_note(tmp_path: Path) -> None:
    assert not EndLog(tmp_path / "no such folder" / "ends.jsonl").note(End(1.0, "turn"))
