"""Frames, read from a trace of the real server (0.34.12), trimmed and made anonymous."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from letta_tui.protocol import Frame, Runtime, content_text, frame_of, names, parse

TRACE = [line for line in Path(__file__).with_name("trace.jsonl").read_text().splitlines() if line]
FRAMES = [parse(line) for line in TRACE]


def of_type(kind: str) -> list[Frame]:
    return [frame for frame in FRAMES if frame.type == kind]


def test_every_recorded_frame_is_known_and_kept_whole() -> None:
    for line, frame in zip(TRACE, FRAMES, strict=True):
        assert frame.is_known
        assert frame.raw == json.loads(line)


def test_events_have_runtime_sequence_and_key_and_answers_have_none() -> None:
    for frame in FRAMES:
        if frame.is_answer:
            assert frame.event_seq is None
            assert frame.request_id
        else:
            assert frame.runtime is not None
            assert frame.event_seq is not None
            assert frame.idempotency_key is not None


def test_a_control_request_has_a_request_id_and_is_no_answer() -> None:
    (frame,) = of_type(names.CONTROL_REQUEST)
    assert not frame.is_answer
    request = frame.control_request
    assert request is not None
    assert request.request_id == f"perm-{request.tool_call_id}"
    assert (request.tool_name, request.input["command"]) == ("Bash", "touch made.txt")
    assert [suggestion.id for suggestion in request.suggestions] == ["save-default"]
    assert "touch made.txt" in request.suggestions[0].text
    assert request.blocked_path is None


def test_the_device_status_lists_the_same_request() -> None:
    statuses = [frame.device_status for frame in FRAMES if frame.device_status is not None]
    pending = [status.pending for status in statuses if status.pending]
    (asked,) = [frame.control_request for frame in of_type(names.CONTROL_REQUEST)]
    assert asked is not None
    assert pending
    assert pending[0][0].request_id == asked.request_id
    assert pending[0][0].suggestions == asked.suggestions
    assert statuses[0].mode == "standard"
    assert statuses[0].cwd == "/work/folder"
    assert "compact" in statuses[0].supported_commands


def test_the_queue_tells_items_and_how_they_left() -> None:
    queues = [frame.queue for frame in FRAMES if frame.queue is not None]
    longest = max(queues, key=lambda queue: len(queue.items))
    assert [(i.item_id, i.client_message_id, i.text, i.paused) for i in longest.items] == [
        ("q-1", "m2", "later one", False),
        ("q-2", "m3", "third", False),
    ]
    removed = [(r.client_message_id, r.disposition) for queue in queues for r in queue.removed]
    assert removed == [("m3", "cancelled"), ("m2", "dequeued")]


def test_the_loop_status_maps_runs_to_inputs() -> None:
    states = [frame.loop_status for frame in FRAMES if frame.loop_status is not None]
    assert states[0].idle
    running = next(state for state in states if state.active_run_ids)
    assert not running.idle
    (run,) = running.active_run_ids
    assert len(running.client_message_ids_by_run_id[run]) == 1


def test_waiting_for_input_with_a_run_is_not_idle() -> None:
    status = {"status": "WAITING_ON_INPUT", "active_run_ids": ["local-run-1"]}
    frame = frame_of({"type": names.LOOP_STATUS, "loop_status": status})
    assert frame.loop_status is not None
    assert not frame.loop_status.idle


def test_deltas_give_their_text_and_place() -> None:
    deltas = [frame.delta for frame in FRAMES if frame.delta is not None]
    first_run = [d for d in deltas if d.run_id == "local-run-1"]
    assert [d.seq_id for d in first_run if d.seq_id is not None] == list(range(1, len(first_run) + 1))
    spoken = "".join(d.text for d in first_run if d.message_type == "assistant_message")
    thought = "".join(d.text for d in first_run if d.message_type == "reasoning_message")
    assert spoken.startswith("ZQBEG1 w0000")
    assert thought.startswith("think0000 ")
    (echo,) = [d for d in deltas if d.message_type == "user_message"]
    assert (echo.text, echo.otid) == ("later one", "m2")
    (error,) = [d for d in deltas if d.message_type == "loop_error"]
    assert not error.is_terminal
    assert "payload.messages" in error.message
    assert "requires_approval" in {d.stop_reason for d in deltas}


def test_zero_is_a_number_and_true_is_none() -> None:
    frame = frame_of({"type": names.STREAM_DELTA, "event_seq": 0, "delta": {"seq_id": 0}})
    assert frame.event_seq == 0
    assert frame.delta is not None
    assert frame.delta.seq_id == 0
    assert frame_of({"type": "x", "event_seq": True}).event_seq is None


def test_answers() -> None:
    (info,) = of_type("app_server_info_response")
    assert info.server_info is not None
    assert info.server_info.letta_code_version == "0.34.12"
    assert info.server_info.protocol_version == 1
    assert not info.server_info.split_channels
    assert "runtime_start" in info.server_info.capabilities
    (started,) = of_type("runtime_start_response")
    assert started.runtime_started is not None
    assert started.runtime_started.success
    assert started.runtime_started.runtime == started.runtime
    assert started.runtime_started.created_agent
    page = of_type("conversation_messages_list_response")[-1].history_page
    assert page is not None
    assert page.success
    assert page.messages[0]["message_type"] == "assistant_message"
    for accepted in of_type(names.INPUT_ACCEPTED):
        assert accepted.input_accepted is not None
        assert (accepted.input_accepted.accepted, accepted.input_accepted.disposition) == (True, "started")
        assert accepted.answer is not None
        assert accepted.answer.success


def test_reasons_of_refusals_are_found_wherever_they_stand() -> None:
    refused = {"type": "runtime_start_response", "success": False, "error": "Agent a not found"}
    answer = frame_of(refused).answer
    assert answer is not None
    assert (answer.success, answer.error) == (False, "Agent a not found")
    command = {"type": "execute_command_response", "success": False, "output": "Unknown command: x"}
    answer = frame_of(command).answer
    assert answer is not None
    assert answer.error == "Unknown command: x"
    nested = {"type": "x_response", "success": False, "error": {"code": "c", "message": "no key"}}
    answer = frame_of(nested).answer
    assert answer is not None
    assert answer.error == "no key"


def test_the_end_of_a_turn() -> None:
    ends = [frame.turn_finished for frame in FRAMES if frame.turn_finished is not None]
    assert {end.stop_reason for end in ends} == {"end_turn"}
    assert all(end.turn_id and end.run_id for end in ends)
    bare = frame_of({"type": names.TURN_FINISHED, "turn_id": "t", "stop_reason": "error"}).turn_finished
    assert bare is not None
    assert bare.run_id is None


def test_an_unknown_event_is_kept() -> None:
    frame = parse('{"type": "sparkles", "event_seq": 3, "glitter": [1, 2]}')
    assert (frame.type, frame.event_seq, frame.is_known) == ("sparkles", 3, False)
    assert frame.raw["glitter"] == [1, 2]


def test_a_conversation_without_an_agent() -> None:
    runtime = Runtime.of({"agent_id": None, "conversation_id": "c"})
    assert runtime == Runtime(None, "c")
    assert runtime is not None
    assert runtime.wire() == {"agent_id": None, "conversation_id": "c"}
    assert Runtime.of({"agent_id": "a"}) is None


def test_content_is_a_string_or_a_list_of_parts() -> None:
    assert content_text("plain") == "plain"
    assert content_text([{"type": "text", "text": "a"}, {"type": "image"}, 3, {"text": "b"}]) == "ab"
    assert content_text(None) == ""


def touch_everything(frame: Frame) -> None:
    for name in (
        "loop_status", "queue", "device_status", "delta", "turn_finished", "control_request",
        "external_tool_call", "answer", "input_accepted", "runtime_started", "history_page", "server_info",
        "emitted_at",
    ):  # fmt: skip
        getattr(frame, name)
    delta = frame.delta
    if delta is not None:
        assert isinstance(delta.text, str)
        assert isinstance(delta.message, str)
        assert isinstance(delta.client_message_ids, tuple)


@given(st.one_of(st.text(), st.binary()))
def test_anything_can_be_read(data: str | bytes) -> None:
    touch_everything(parse(data))


def test_deep_nesting_is_no_fault() -> None:
    assert parse("[" * 200_000).type == names.MALFORMED


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(data=st.data())
def test_a_recorded_frame_with_any_field_spoilt_can_be_read(data: st.DataObject) -> None:
    raw = json.loads(data.draw(st.sampled_from(TRACE)))
    target = raw
    while True:
        name = data.draw(st.sampled_from(sorted(target)))
        inner = target[name]
        if isinstance(inner, dict) and inner and data.draw(st.booleans()):
            target = inner
            continue
        target[name] = data.draw(JSON)
        break
    touch_everything(frame_of(raw))
