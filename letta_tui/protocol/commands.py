"""Builders for every command this client sends. Pure: they return a new dict and know no ids of their own.

A builder leaves ``request_id`` out unless one is given; ``Client.request`` adds one. Give one where it has
to be recorded before the command is written. Optional fields that are None are left out, because the
server reads an omitted field as "leave it" and a null one as "reset it".

Shapes: ``protocol_v2.d.ts`` and its neighbours in Letta Code 0.34.12. There is no command that deletes a
conversation; ``conversation_update`` can archive or hide it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from letta_tui.protocol.building import Command, command, given
from letta_tui.protocol.events import Runtime
from letta_tui.protocol.management import (
    agent_create,
    agent_delete,
    agent_list,
    agent_retrieve,
    agent_update,
    connect_provider,
    conversation_compact,
    conversation_create,
    conversation_fork,
    conversation_list,
    conversation_retrieve,
    conversation_update,
    create_agent,
    disconnect_provider,
    list_connect_providers,
    list_models,
    messages_list,
    update_model,
)

__all__ = [
    "Command",
    "abort_message",
    "agent_create",
    "agent_delete",
    "agent_list",
    "agent_retrieve",
    "agent_update",
    "allow",
    "app_server_info",
    "approval_response",
    "change_device_state",
    "connect_provider",
    "conversation_compact",
    "conversation_create",
    "conversation_fork",
    "conversation_list",
    "conversation_retrieve",
    "conversation_update",
    "create_agent",
    "create_message",
    "deny",
    "disconnect_provider",
    "execute_command",
    "external_tool_error",
    "external_tool_result",
    "external_tools_update",
    "list_connect_providers",
    "list_models",
    "messages_list",
    "relay_ack",
    "relay_ping",
    "remove_queue_item",
    "resume_queue",
    "runtime_start",
    "sync",
    "turn_finished_ack",
    "update_model",
]


def app_server_info(*, request_id: str | None = None) -> Command:
    """The cheapest question there is; also used as a fence."""
    return command("app_server_info", request_id)


# The runtime


def runtime_start(
    *,
    mode: str,
    agent_id: str | None = None,
    create_agent: Mapping[str, Any] | None = None,
    conversation_id: str | None = None,
    create_conversation: Mapping[str, Any] | None = None,
    conversation_source_tags: Sequence[str] | None = None,
    cwd: str | None = None,
    skill_sources: Sequence[str] | None = None,
    external_tools: Sequence[Mapping[str, Any]] = (),
    client_info: Mapping[str, str] | None = None,
    recover_approvals: bool = False,
    force_device_status: bool = True,
    wait_for_replay: bool = True,
    pin_global: bool | None = None,
    memfs: bool | None = None,
    workspace_sandbox: Mapping[str, str] | None = None,
    request_id: str | None = None,
) -> Command:
    """Start or resume a runtime and subscribe this connection to it.

    ``create_agent`` and ``create_conversation`` are bodies. ``mode`` has no default on purpose: a fresh
    server would otherwise be unrestricted. A mode the server does not know gets no answer.
    ``external_tools`` replaces what this connection registered. Without ``skill_sources`` the stored
    ones are kept (``preserve_skill_sources``). ``recover_approvals`` stages denials for approvals only
    the backend knows, so it is off unless asked for. ``pin_global`` and ``memfs`` speak of a created
    agent.
    """
    agent: Command | None = None
    if create_agent is not None:
        agent = {"body": dict(create_agent)}
        if pin_global is not None:
            agent["pin_global"] = pin_global
        if memfs is not None:
            agent["memfs"] = memfs
    return command(
        "runtime_start",
        request_id,
        agent_id=agent_id,
        create_agent=agent,
        conversation_id=conversation_id,
        create_conversation=None if create_conversation is None else {"body": dict(create_conversation)},
        conversation_source_tags=None if conversation_source_tags is None else list(conversation_source_tags),
        cwd=cwd,
        mode=mode,
        workspace_sandbox=None if workspace_sandbox is None else dict(workspace_sandbox),
        skill_sources=None if skill_sources is None else list(skill_sources),
        preserve_skill_sources=True if skill_sources is None else None,
        client_info=None if client_info is None else dict(client_info),
        recover_approvals=recover_approvals,
        force_device_status=force_device_status,
        wait_for_replay=wait_for_replay,
        external_tools=[dict(group) for group in external_tools],
    )


def external_tools_update(
    runtimes: Sequence[Runtime],
    external_tools: Sequence[Mapping[str, Any]],
    *,
    request_id: str | None = None,
) -> Command:
    """Replace this connection's tools for these runtimes without starting them; empty removes them."""
    update = {
        "runtimes": [runtime.wire() for runtime in runtimes],
        "external_tools": [dict(group) for group in external_tools],
    }
    return command("runtime_external_tools_update", request_id, updates=[update])


def sync(
    runtime: Runtime,
    *,
    recover_approvals: bool = False,
    force_device_status: bool = True,
    request_id: str | None = None,
) -> Command:
    """Subscribe and have the state replayed (never text). Changes nothing unless it recovers approvals."""
    return command(
        "sync",
        request_id,
        runtime=runtime.wire(),
        recover_approvals=recover_approvals,
        force_device_status=force_device_status,
    )


def change_device_state(runtime: Runtime, *, mode: str | None = None, cwd: str | None = None) -> Command:
    """Has no answer: the next device status shows what became of it."""
    payload = {name: value for name, value in (("mode", mode), ("cwd", cwd)) if value is not None}
    return command("change_device_state", None, runtime=runtime.wire(), payload=payload)


# Sending


def create_message(
    runtime: Runtime,
    content: str | Sequence[Mapping[str, Any]],
    client_message_id: str,
    *,
    client_tool_allowlist: Sequence[str] | None = None,
    client_toolset: Mapping[str, Any] | None = None,
    client_preferences: Mapping[str, Any] | None = None,
    external_tool_scope_ids: Sequence[str] | None = None,
    exclude_interactive_tools: bool | None = None,
    image_failure_mode: str | None = None,
    response_format: Mapping[str, Any] | None = None,
    terminal_consumer_id: str | None = None,
    request_id: str | None = None,
) -> Command:
    """One person's message, one per input, since the server journals only the first id of a batch.

    ``otid`` is the client message id too: that is how the message is found again in history.
    """
    payload = given(
        kind="create_message",
        messages=[
            {
                "role": "user",
                "content": content if isinstance(content, str) else [dict(part) for part in content],
                "client_message_id": client_message_id,
                "otid": client_message_id,
            }
        ],
        client_tool_allowlist=None if client_tool_allowlist is None else list(client_tool_allowlist),
        client_toolset=None if client_toolset is None else dict(client_toolset),
        client_preferences=None if client_preferences is None else dict(client_preferences),
        external_tool_scope_ids=None if external_tool_scope_ids is None else list(external_tool_scope_ids),
        exclude_interactive_tools=exclude_interactive_tools,
        image_failure_mode=image_failure_mode,
        response_format=None if response_format is None else dict(response_format),
    )
    return command(
        "input",
        request_id,
        runtime=runtime.wire(),
        terminal_consumer_id=terminal_consumer_id,
        payload=payload,
    )


def allow(
    runtime: Runtime,
    approval_id: str,
    *,
    updated_input: Mapping[str, Any] | None = None,
    suggestion_ids: Sequence[str] = (),
    message: str | None = None,
    request_id: str | None = None,
) -> Command:
    """Let a tool call run. ``approval_id`` is the ``request_id`` of its ``control_request``."""
    decision: Command = {"behavior": "allow"}
    if message is not None:
        decision["message"] = message
    if updated_input is not None:
        decision["updated_input"] = dict(updated_input)
    if suggestion_ids:
        decision["selected_permission_suggestion_ids"] = list(suggestion_ids)
    return approval_response(runtime, approval_id, decision, request_id=request_id)


def deny(runtime: Runtime, approval_id: str, message: str, *, request_id: str | None = None) -> Command:
    """Refuse a tool call; the model reads ``message``, which the server requires."""
    decision = {"behavior": "deny", "message": message}
    return approval_response(runtime, approval_id, decision, request_id=request_id)


def approval_response(
    runtime: Runtime, approval_id: str, decision: Mapping[str, Any], *, request_id: str | None = None
) -> Command:
    payload = {"kind": "approval_response", "request_id": approval_id, "decision": dict(decision)}
    return command("input", request_id, runtime=runtime.wire(), payload=payload)


def abort_message(runtime: Runtime, *, run_id: str | None = None, request_id: str | None = None) -> Command:
    """Cancel the active turn. The queue is paused by it. ``aborted`` false: there was none."""
    return command("abort_message", request_id, runtime=runtime.wire(), run_id=run_id)


def remove_queue_item(runtime: Runtime, item_id: str, *, request_id: str | None = None) -> Command:
    return command("remove_queue_item", request_id, runtime=runtime.wire(), item_id=item_id)


def resume_queue(runtime: Runtime, *, request_id: str | None = None) -> Command:
    return command("resume_queue", request_id, runtime=runtime.wire())


def execute_command(
    runtime: Runtime, command_id: str, args: str | None = None, *, request_id: str | None = None
) -> Command:
    """A slash command of the server, by the id it advertises in ``supported_commands``."""
    return command("execute_command", request_id, command_id=command_id, runtime=runtime.wire(), args=args)


def turn_finished_ack(runtime: Runtime, idempotency_key: str, consumer_id: str) -> Command:
    """Receipt for a durable end of turn. Has no answer."""
    return command(
        "turn_finished_ack",
        None,
        runtime=runtime.wire(),
        idempotency_key=idempotency_key,
        consumer_id=consumer_id,
    )


def external_tool_result(
    call_id: str, content: str | Sequence[Mapping[str, Any]], *, is_error: bool = False
) -> Command:
    """Answer a tool call of the server. ``call_id`` is the ``request_id`` of its request."""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else [dict(p) for p in content]
    result: Command = {"content": parts}
    if is_error:
        result["is_error"] = True
    return command("external_tool_call_response", call_id, result=result)


def external_tool_error(call_id: str, error: str) -> Command:
    return command("external_tool_call_response", call_id, error=error)


# The hosted relay


def relay_ack(seq: int) -> Command:
    """Receipt for one delivery on one socket. Says nothing about the frame in it."""
    return {"type": "ack", "seq": seq}


def relay_ping() -> Command:
    return {"type": "ping"}
