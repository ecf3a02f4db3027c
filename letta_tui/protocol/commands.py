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

from letta_tui.protocol.events import Runtime

Command = dict[str, Any]


def _command(command_type: str, request_id: str | None, **fields: Any) -> Command:
    command: Command = {"type": command_type}
    if request_id is not None:
        command["request_id"] = request_id
    command.update((name, value) for name, value in fields.items() if value is not None)
    return command


def app_server_info(*, request_id: str | None = None) -> Command:
    """The cheapest question there is; also used as a fence."""
    return _command("app_server_info", request_id)


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
    return _command(
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
    return _command("runtime_external_tools_update", request_id, updates=[update])


def sync(
    runtime: Runtime,
    *,
    recover_approvals: bool = False,
    force_device_status: bool = True,
    request_id: str | None = None,
) -> Command:
    """Subscribe and have the state replayed (never text). Changes nothing unless it recovers approvals."""
    return _command(
        "sync",
        request_id,
        runtime=runtime.wire(),
        recover_approvals=recover_approvals,
        force_device_status=force_device_status,
    )


def change_device_state(runtime: Runtime, *, mode: str | None = None, cwd: str | None = None) -> Command:
    """Has no answer: the next device status shows what became of it."""
    payload = {name: value for name, value in (("mode", mode), ("cwd", cwd)) if value is not None}
    return _command("change_device_state", None, runtime=runtime.wire(), payload=payload)


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
    payload = _query(
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
    return _command(
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
    return _command("input", request_id, runtime=runtime.wire(), payload=payload)


def abort_message(runtime: Runtime, *, run_id: str | None = None, request_id: str | None = None) -> Command:
    """Cancel the active turn. The queue is paused by it. ``aborted`` false: there was none."""
    return _command("abort_message", request_id, runtime=runtime.wire(), run_id=run_id)


def remove_queue_item(runtime: Runtime, item_id: str, *, request_id: str | None = None) -> Command:
    return _command("remove_queue_item", request_id, runtime=runtime.wire(), item_id=item_id)


def resume_queue(runtime: Runtime, *, request_id: str | None = None) -> Command:
    return _command("resume_queue", request_id, runtime=runtime.wire())


def execute_command(
    runtime: Runtime, command_id: str, args: str | None = None, *, request_id: str | None = None
) -> Command:
    """A slash command of the server, by the id it advertises in ``supported_commands``."""
    return _command("execute_command", request_id, command_id=command_id, runtime=runtime.wire(), args=args)


def turn_finished_ack(runtime: Runtime, idempotency_key: str, consumer_id: str) -> Command:
    """Receipt for a durable end of turn. Has no answer."""
    return _command(
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
    return _command("external_tool_call_response", call_id, result=result)


def external_tool_error(call_id: str, error: str) -> Command:
    return _command("external_tool_call_response", call_id, error=error)


# Conversations


def conversation_list(
    *,
    agent_id: str | None = None,
    limit: int | None = None,
    after: str | None = None,
    summary_search: str | None = None,
    include_hidden: bool | None = None,
    archive_status: str | None = None,
    order: str | None = None,
    order_by: str | None = None,
    request_id: str | None = None,
) -> Command:
    query = _query(
        agent_id=agent_id,
        limit=limit,
        after=after,
        summary_search=summary_search,
        include_hidden=include_hidden,
        archive_status=archive_status,
        order=order,
        order_by=order_by,
    )
    return _command("conversation_list", request_id, query=query)


def conversation_retrieve(conversation_id: str, *, request_id: str | None = None) -> Command:
    return _command("conversation_retrieve", request_id, conversation_id=conversation_id)


def conversation_create(
    agent_id: str, body: Mapping[str, Any] | None = None, *, request_id: str | None = None
) -> Command:
    return _command("conversation_create", request_id, body={**(body or {}), "agent_id": agent_id})


def conversation_update(
    conversation_id: str,
    *,
    title: str | None = None,
    archived: bool | None = None,
    hidden: bool | None = None,
    tags: Sequence[str] | None = None,
    request_id: str | None = None,
) -> Command:
    """The title is called ``summary`` on the wire."""
    body = _query(summary=title, archived=archived, hidden=hidden, tags=None if tags is None else list(tags))
    return _command("conversation_update", request_id, conversation_id=conversation_id, body=body)


def conversation_fork(
    conversation_id: str,
    *,
    agent_id: str | None = None,
    hidden: bool | None = None,
    message_id: str | None = None,
    request_id: str | None = None,
) -> Command:
    """Copy a conversation, through ``message_id`` where given. The answer has ``conversation.id``."""
    body = _query(agent_id=agent_id, hidden=hidden, message_id=message_id)
    return _command("conversation_fork", request_id, conversation_id=conversation_id, body=body)


def conversation_compact(
    conversation_id: str,
    *,
    agent_id: str | None = None,
    compaction_settings: Mapping[str, Any] | None = None,
    request_id: str | None = None,
) -> Command:
    body = _query(
        agent_id=agent_id,
        compaction_settings=None if compaction_settings is None else dict(compaction_settings),
    )
    return _command("conversation_compact", request_id, conversation_id=conversation_id, body=body)


def messages_list(
    runtime: Runtime,
    *,
    limit: int = 50,
    before: str | None = None,
    after: str | None = None,
    order: str | None = None,
    request_id: str | None = None,
) -> Command:
    """A page of history, newest first unless ``order`` says "asc". ``default`` needs the agent's id."""
    query = _query(agent_id=runtime.agent_id, limit=limit, before=before, after=after, order=order)
    return _command(
        "conversation_messages_list", request_id, conversation_id=runtime.conversation_id, query=query
    )


# Agents


def agent_list(
    *,
    query_text: str | None = None,
    tags: Sequence[str] | None = None,
    limit: int | None = None,
    after: str | None = None,
    request_id: str | None = None,
) -> Command:
    query = _query(query_text=query_text, tags=None if tags is None else list(tags), limit=limit, after=after)
    return _command("agent_list", request_id, query=query)


def agent_create(body: Mapping[str, Any], *, request_id: str | None = None) -> Command:
    """With a body of the agents API. The answer has ``agent``."""
    return _command("agent_create", request_id, body=dict(body))


def create_agent(
    personality: str,
    *,
    model: str | None = None,
    tags: Sequence[str] | None = None,
    pin_global: bool | None = None,
    request_id: str | None = None,
) -> Command:
    """From a preset: memo, tutorial, blank, linus or kawaii. The answer has ``agent_id`` and ``name``."""
    return _command(
        "create_agent",
        request_id,
        personality=personality,
        model=model,
        tags=None if tags is None else list(tags),
        pin_global=pin_global,
    )


def agent_retrieve(agent_id: str, *, request_id: str | None = None) -> Command:
    return _command("agent_retrieve", request_id, agent_id=agent_id)


def agent_update(agent_id: str, body: Mapping[str, Any], *, request_id: str | None = None) -> Command:
    return _command("agent_update", request_id, agent_id=agent_id, body=dict(body))


def agent_delete(agent_id: str, *, request_id: str | None = None) -> Command:
    return _command("agent_delete", request_id, agent_id=agent_id)


# Models and providers


def list_models(*, force: bool | None = None, request_id: str | None = None) -> Command:
    return _command("list_models", request_id, force=force)


def update_model(
    runtime: Runtime,
    *,
    model_handle: str | None = None,
    model_id: str | None = None,
    reasoning_effort: str | None = None,
    request_id: str | None = None,
) -> Command:
    """Needs a handle or an id, or the server drops the command without an answer."""
    if model_handle is None and model_id is None:
        raise ValueError("a model handle or a model id is needed")
    payload = _query(model_handle=model_handle, model_id=model_id, reasoning_effort=reasoning_effort)
    return _command("update_model", request_id, runtime=runtime.wire(), payload=payload)


def list_connect_providers(*, target: str = "local", request_id: str | None = None) -> Command:
    """Without ``target`` the server drops the command without an answer."""
    return _command("list_connect_providers", request_id, target=target)


def connect_provider(
    provider_id: str,
    fields: Mapping[str, str],
    *,
    auth_method_id: str | None = None,
    provider_name: str | None = None,
    oauth_config: Mapping[str, Any] | None = None,
    target: str = "local",
    request_id: str | None = None,
) -> Command:
    """``fields`` by the keys of the form in ``list_connect_providers``. Keys go nowhere else."""
    return _command(
        "connect_provider",
        request_id,
        target=target,
        provider_id=provider_id,
        auth_method_id=auth_method_id,
        fields=dict(fields),
        provider_name=provider_name,
        oauth_config=None if oauth_config is None else dict(oauth_config),
    )


def disconnect_provider(
    provider_id: str,
    *,
    provider_name: str | None = None,
    target: str = "local",
    request_id: str | None = None,
) -> Command:
    return _command(
        "disconnect_provider",
        request_id,
        target=target,
        provider_id=provider_id,
        provider_name=provider_name,
    )


# The hosted relay


def relay_ack(seq: int) -> Command:
    """Receipt for one delivery on one socket. Says nothing about the frame in it."""
    return {"type": "ack", "seq": seq}


def relay_ping() -> Command:
    return {"type": "ping"}


def _query(**fields: Any) -> Command:
    return {name: value for name, value in fields.items() if value is not None}
