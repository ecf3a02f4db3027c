"""Commands, as the server's types want them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from letta_tui.protocol import Runtime, commands, names

RUNTIME = Runtime("agent-1", "conv-1")
WIRE = {"agent_id": "agent-1", "conversation_id": "conv-1"}


def test_a_message_bears_its_id_twice() -> None:
    command = commands.create_message(RUNTIME, "hello", "m1", request_id="r1")
    assert command == {
        "type": "input",
        "request_id": "r1",
        "runtime": WIRE,
        "payload": {
            "kind": "create_message",
            "messages": [{"role": "user", "content": "hello", "client_message_id": "m1", "otid": "m1"}],
        },
    }


def test_content_parts_and_options_of_a_message() -> None:
    part = {"type": "text", "text": "x"}
    command = commands.create_message(
        RUNTIME, [part], "m1", client_tool_allowlist=[], client_preferences={}, external_tool_scope_ids=["s"]
    )
    payload = command["payload"]
    assert payload["messages"][0]["content"] == [part]
    assert payload["client_tool_allowlist"] == []
    assert payload["client_preferences"] == {}
    assert payload["external_tool_scope_ids"] == ["s"]


def test_the_start_of_a_runtime_says_what_must_not_be_left_to_the_server() -> None:
    command = commands.runtime_start(mode="standard", agent_id="agent-1", conversation_id="conv-1")
    assert command == {
        "type": "runtime_start",
        "agent_id": "agent-1",
        "conversation_id": "conv-1",
        "mode": "standard",
        "preserve_skill_sources": True,
        "recover_approvals": False,
        "force_device_status": True,
        "wait_for_replay": True,
        "external_tools": [],
    }


def test_the_start_of_a_runtime_with_everything_new() -> None:
    command = commands.runtime_start(
        mode="acceptEdits",
        create_agent={"name": "A"},
        pin_global=False,
        memfs=False,
        create_conversation={},
        cwd="/w",
        skill_sources=["bundled"],
        external_tools=[{"tools": []}],
        client_info={"name": "letta-tui"},
        recover_approvals=True,
    )
    assert command["create_agent"] == {"body": {"name": "A"}, "pin_global": False, "memfs": False}
    assert command["create_conversation"] == {"body": {}}
    assert command["skill_sources"] == ["bundled"]
    assert "preserve_skill_sources" not in command
    assert command["recover_approvals"] is True


def test_decisions() -> None:
    allowed = commands.allow(RUNTIME, "perm-1", updated_input={"a": 1}, suggestion_ids=["s"], request_id="r")
    assert allowed["request_id"] == "r"
    assert allowed["payload"] == {
        "kind": "approval_response",
        "request_id": "perm-1",
        "decision": {
            "behavior": "allow",
            "updated_input": {"a": 1},
            "selected_permission_suggestion_ids": ["s"],
        },
    }
    denied = commands.deny(RUNTIME, "perm-1", "no")
    assert denied["payload"]["decision"] == {"behavior": "deny", "message": "no"}
    assert "request_id" not in denied


def test_a_sync_recovers_no_approvals_unless_asked() -> None:
    assert commands.sync(RUNTIME)["recover_approvals"] is False


def test_a_model_has_to_be_named() -> None:
    with pytest.raises(ValueError, match="model"):
        commands.update_model(RUNTIME, reasoning_effort="high")


def test_providers_are_asked_for_with_their_store() -> None:
    assert commands.list_connect_providers() == {"type": "list_connect_providers", "target": "local"}


def test_tool_results() -> None:
    assert commands.external_tool_result("x1", "done") == {
        "type": "external_tool_call_response",
        "request_id": "x1",
        "result": {"content": [{"type": "text", "text": "done"}]},
    }
    assert commands.external_tool_result("x1", "bad", is_error=True)["result"]["is_error"] is True
    assert commands.external_tool_error("x1", "gone")["error"] == "gone"


EVERY: list[dict[str, Any]] = [
    commands.app_server_info(),
    commands.runtime_start(mode="strict", agent_id="a"),
    commands.external_tools_update([RUNTIME], []),
    commands.sync(RUNTIME),
    commands.change_device_state(RUNTIME, mode="standard", cwd="/w"),
    commands.create_message(RUNTIME, "x", "m"),
    commands.abort_message(RUNTIME, run_id="run"),
    commands.remove_queue_item(RUNTIME, "q-1"),
    commands.resume_queue(RUNTIME),
    commands.execute_command(RUNTIME, "compact", "x"),
    commands.turn_finished_ack(RUNTIME, "key", "me"),
    commands.conversation_list(agent_id="a", limit=5),
    commands.conversation_retrieve("c"),
    commands.conversation_create("a", {"summary": "t"}),
    commands.conversation_update("c", title="t", archived=True, hidden=False, tags=["x"]),
    commands.conversation_fork("c", agent_id="a"),
    commands.conversation_compact("c", agent_id="a", compaction_settings={"mode": "all"}),
    commands.messages_list(RUNTIME, before="m"),
    commands.agent_list(query_text="x"),
    commands.agent_create({"name": "n"}),
    commands.create_agent("memo", model="m"),
    commands.agent_retrieve("a"),
    commands.agent_update("a", {"name": "n"}),
    commands.agent_delete("a"),
    commands.list_models(force=True),
    commands.update_model(RUNTIME, model_handle="h"),
    commands.connect_provider("p", {"apiKey": "k"}),
    commands.disconnect_provider("p"),
    commands.relay_ack(1),
    commands.relay_ping(),
]


@pytest.mark.parametrize("command", EVERY, ids=lambda command: command["type"])
def test_every_command_is_plain_json_without_nulls(command: dict[str, Any]) -> None:
    assert json.loads(json.dumps(command)) == command
    assert None not in command.values()


def test_answers_are_expected_by_type() -> None:
    assert names.answer_type("input") == "input_accepted"
    assert names.answer_type("sync") == "sync_response"
    assert names.answer_type("change_device_state") is None
    assert names.answer_type("turn_finished_ack") is None
