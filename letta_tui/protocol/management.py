"""Builders for commands about conversations, agents, models and providers; see ``commands``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from letta_tui.protocol.building import Command, command, given
from letta_tui.protocol.events import Runtime

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
    query = given(
        agent_id=agent_id,
        limit=limit,
        after=after,
        summary_search=summary_search,
        include_hidden=include_hidden,
        archive_status=archive_status,
        order=order,
        order_by=order_by,
    )
    return command("conversation_list", request_id, query=query)


def conversation_retrieve(conversation_id: str, *, request_id: str | None = None) -> Command:
    return command("conversation_retrieve", request_id, conversation_id=conversation_id)


def conversation_create(
    agent_id: str, body: Mapping[str, Any] | None = None, *, request_id: str | None = None
) -> Command:
    return command("conversation_create", request_id, body={**(body or {}), "agent_id": agent_id})


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
    body = given(summary=title, archived=archived, hidden=hidden, tags=None if tags is None else list(tags))
    return command("conversation_update", request_id, conversation_id=conversation_id, body=body)


def conversation_fork(
    conversation_id: str,
    *,
    agent_id: str | None = None,
    hidden: bool | None = None,
    message_id: str | None = None,
    request_id: str | None = None,
) -> Command:
    """Copy a conversation, through ``message_id`` where given. The answer has ``conversation.id``."""
    body = given(agent_id=agent_id, hidden=hidden, message_id=message_id)
    return command("conversation_fork", request_id, conversation_id=conversation_id, body=body)


def conversation_compact(
    conversation_id: str,
    *,
    agent_id: str | None = None,
    compaction_settings: Mapping[str, Any] | None = None,
    request_id: str | None = None,
) -> Command:
    body = given(
        agent_id=agent_id,
        compaction_settings=None if compaction_settings is None else dict(compaction_settings),
    )
    return command("conversation_compact", request_id, conversation_id=conversation_id, body=body)


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
    query = given(agent_id=runtime.agent_id, limit=limit, before=before, after=after, order=order)
    return command(
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
    query = given(query_text=query_text, tags=None if tags is None else list(tags), limit=limit, after=after)
    return command("agent_list", request_id, query=query)


def agent_create(body: Mapping[str, Any], *, request_id: str | None = None) -> Command:
    """With a body of the agents API. The answer has ``agent``."""
    return command("agent_create", request_id, body=dict(body))


def create_agent(
    personality: str,
    *,
    model: str | None = None,
    tags: Sequence[str] | None = None,
    pin_global: bool | None = None,
    request_id: str | None = None,
) -> Command:
    """From a preset: memo, tutorial, blank, linus or kawaii. The answer has ``agent_id`` and ``name``."""
    return command(
        "create_agent",
        request_id,
        personality=personality,
        model=model,
        tags=None if tags is None else list(tags),
        pin_global=pin_global,
    )


def agent_retrieve(agent_id: str, *, request_id: str | None = None) -> Command:
    return command("agent_retrieve", request_id, agent_id=agent_id)


def agent_update(agent_id: str, body: Mapping[str, Any], *, request_id: str | None = None) -> Command:
    return command("agent_update", request_id, agent_id=agent_id, body=dict(body))


def agent_delete(agent_id: str, *, request_id: str | None = None) -> Command:
    return command("agent_delete", request_id, agent_id=agent_id)


# Models and providers


def list_models(*, force: bool | None = None, request_id: str | None = None) -> Command:
    return command("list_models", request_id, force=force)


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
    payload = given(model_handle=model_handle, model_id=model_id, reasoning_effort=reasoning_effort)
    return command("update_model", request_id, runtime=runtime.wire(), payload=payload)


def list_connect_providers(*, target: str = "local", request_id: str | None = None) -> Command:
    """Without ``target`` the server drops the command without an answer."""
    return command("list_connect_providers", request_id, target=target)


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
    return command(
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
    return command(
        "disconnect_provider",
        request_id,
        target=target,
        provider_id=provider_id,
        provider_name=provider_name,
    )
