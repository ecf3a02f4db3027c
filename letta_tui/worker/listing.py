"""Lists the view asks for: conversations, agents, providers, models."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from letta_tui.ledger.values import Place, Remembered
from letta_tui.protocol import Frame, commands
from letta_tui.seam.intents import ConnectProvider, ListConversations, ListModels
from letta_tui.seam.state import AgentItem, ConversationItem, FormField, ModelItem, ProviderItem
from letta_tui.seam.updates import (
    AgentsListed,
    ConversationsListed,
    ModelsListed,
    ProviderConnected,
    ProvidersListed,
)
from letta_tui.worker.away import mark, while_away
from letta_tui.worker.desk import AskFailed, Desk
from letta_tui.worker.events import Events
from letta_tui.worker.ports import EndNote, KeeperTrouble

Json = Mapping[str, Any]
PAGE = 100
_NOTES_SECONDS = 3.0  # a list does not wait longer for a keeper


class Lists:
    def __init__(self, desk: Desk, events: Events) -> None:
        self._desk = desk
        self._events = events
        self._seen_elsewhere: dict[tuple[str, str], str] = {}  # as of the last listing

    async def conversations(self, intent: ListConversations) -> None:
        """The server's conversations, merged with those this client knows (with their open sends)."""
        desk, link = self._desk, self._desk.link
        key = link.server_key if link is not None else (desk.place.server_key if desk.place else None)
        remembered = (
            {item.place: item for item in desk.ledger.conversations(key, intent.agent_id)} if key else {}
        )
        error = ""
        rows: list[Json] = []
        names: dict[str, str] = {item.place.agent_id: item.agent_name for item in remembered.values()}
        try:
            names.update({item.agent_id: item.name for item in await self._agents()})
            rows.extend(await self._conversations_of(intent, intent.agent_id))
            if not rows and intent.agent_id is None:
                # Some servers list only the conversations of a named agent.
                for agent_id in names:
                    rows.extend(await self._conversations_of(intent, agent_id))
        except AskFailed as failed:
            error = failed.words
        self._seen_elsewhere = await self._noted(remembered)
        items: dict[tuple[str, str], ConversationItem] = {}
        for row in rows:
            item = self._from_server(row, names, remembered, key or "")
            if item is not None and (intent.archived or not item.archived):
                items.setdefault((item.agent_id, item.conversation_id), item)
        for place, known in remembered.items():
            title = known.title or place.conversation_id
            if (place.agent_id, place.conversation_id) in items or intent.query.lower() not in title.lower():
                continue
            if rows and not error and place.conversation_id != "default" and not known.open_sends:
                continue  # the server does not have it (any more), and nothing of ours hangs on it
            items[place.agent_id, place.conversation_id] = self._from_ledger(known, names)
        ordered = sorted(items.values(), key=lambda item: item.updated or 0.0, reverse=True)
        desk.put(ConversationsListed(tuple(self._told_apart(item, key) for item in ordered), error))

    def _told_apart(self, item: ConversationItem, key: str | None) -> ConversationItem:
        """With the last message sent there, where there is no title."""
        if item.title or key is None:
            return item
        sent = self._desk.ledger.sends(Place(key, item.agent_id, item.conversation_id), limit=1)
        return replace(item, last_sent=sent[0].text or "") if sent else item

    async def _conversations_of(self, intent: ListConversations, agent_id: str | None) -> list[Json]:
        frame = await self._desk.ask(
            commands.conversation_list(
                agent_id=agent_id,
                limit=PAGE,
                summary_search=intent.query or None,
                archive_status="all" if intent.archived else None,
            )
        )
        return _mappings(frame, "conversations")

    async def _noted(self, remembered: Mapping[Place, Remembered]) -> dict[tuple[str, str], str]:
        """What a keeper saw in conversations that no window shows, in a few words each."""
        keeper = self._desk.config.keeper
        if keeper is None or not remembered:
            return {}
        try:
            async with asyncio.timeout(_NOTES_SECONDS):
                notes = await keeper.ends_since("", "", 0.0)
        except (KeeperTrouble, TimeoutError):
            return {}
        by_place: dict[tuple[str, str], list[EndNote]] = {}
        for note in notes:
            by_place.setdefault((note.agent_id, note.conversation_id), []).append(note)
        words: dict[tuple[str, str], str] = {}
        for place, known in remembered.items():
            seen = known.state.get("seen_at")
            since = float(seen) if isinstance(seen, int | float) else None
            named = place.agent_id, place.conversation_id
            words[named] = mark(while_away(by_place.get(named, ()), since).notes)
        return words

    def _from_server(
        self, row: Json, names: Mapping[str, str], remembered: Mapping[Place, Remembered], key: str
    ) -> ConversationItem | None:
        conversation, agent = row.get("id"), row.get("agent_id")
        if not isinstance(conversation, str):
            return None
        agent = agent if isinstance(agent, str) else ""
        known = remembered.get(Place(key, agent, conversation))
        archived = row.get("archived") is True
        title = _text(row, "summary") or (known.title if known else "")
        return ConversationItem(
            agent_id=agent,
            agent_name=names.get(agent, ""),
            conversation_id=conversation,
            title=title,
            updated=_seconds(row.get("last_message_at")) or _seconds(row.get("updated_at")),
            open_sends=known.open_sends if known else 0,
            current=self._is_current(agent, conversation),
            note=self._note(agent, conversation, archived),
            archived=archived,
        )

    def _from_ledger(self, known: Remembered, names: Mapping[str, str]) -> ConversationItem:
        place = known.place
        return ConversationItem(
            agent_id=place.agent_id,
            agent_name=known.agent_name or names.get(place.agent_id, ""),
            conversation_id=place.conversation_id,
            title=known.title,
            updated=known.used.wall,
            open_sends=known.open_sends,
            current=self._is_current(place.agent_id, place.conversation_id),
            note=self._note(place.agent_id, place.conversation_id, False),
        )

    def _note(self, agent: str, conversation: str, archived: bool) -> str:
        if self._events.waiting_elsewhere.get((agent, conversation)):
            return "approval waiting"
        if not self._is_current(agent, conversation) and (
            seen := self._seen_elsewhere.get((agent, conversation))
        ):
            return seen
        return "archived" if archived else ""

    def _is_current(self, agent: str, conversation: str) -> bool:
        place = self._desk.place
        return place is not None and (place.agent_id, place.conversation_id) == (agent, conversation)

    async def agents(self) -> None:
        try:
            self._desk.put(AgentsListed(tuple(await self._agents())))
        except AskFailed as failed:
            self._desk.put(AgentsListed((), failed.words))

    async def _agents(self) -> list[AgentItem]:
        frame = await self._desk.ask(commands.agent_list(limit=PAGE))
        place = self._desk.place
        return [
            AgentItem(
                agent_id=_text(row, "id"),
                name=_text(row, "name") or _text(row, "id"),
                model=_text(row, "model"),
                current=place is not None and place.agent_id == row.get("id"),
            )
            for row in _mappings(frame, "agents")
            if _text(row, "id")
        ]

    async def providers(self) -> None:
        try:
            frame = await self._desk.ask(commands.list_connect_providers())
        except AskFailed as failed:
            self._desk.put(ProvidersListed((), failed.words))
            return
        self._desk.put(ProvidersListed(tuple(_providers(_mappings(frame, "providers")))))

    async def connect_provider(self, intent: ConnectProvider) -> None:
        """The fields go to the server and nowhere else: neither stored nor logged here."""
        try:
            frame = await self._desk.ask(
                commands.connect_provider(
                    intent.provider_id,
                    dict(intent.fields),
                    auth_method_id=intent.auth_method_id or None,
                ),
                timeout=90.0,
            )
        except AskFailed as failed:
            self._desk.put(ProviderConnected(intent.provider_id, False, failed.words))
            return
        self._desk.put(ProviderConnected(intent.provider_id, True))
        self._desk.put(ProvidersListed(tuple(_providers(_mappings(frame, "providers")))))

    async def models(self, intent: ListModels) -> None:
        try:
            frame = await self._desk.ask(commands.list_models(force=intent.force or None), timeout=60.0)
        except AskFailed as failed:
            self._desk.put(ModelsListed((), failed.words))
            return
        available = frame.raw.get("available_handles")
        allowed = set(available) if isinstance(available, list) and available else None
        models = [
            ModelItem(_text(row, "handle"), _text(row, "label") or _text(row, "handle"))
            for row in _mappings(frame, "entries")
            if _text(row, "handle") and (allowed is None or row.get("handle") in allowed)
        ]
        self._desk.put(ModelsListed(tuple(models)))


def _providers(rows: Iterable[Json]) -> Iterable[ProviderItem]:
    """One item for each way to connect that is a form; sign-in flows that need a browser are left out."""
    for row in rows:
        provider = _text(row, "id")
        has_form = bool(row.get("fields") or row.get("auth_methods"))
        if not provider or (row.get("is_oauth") is True and not has_form):
            continue
        state = row.get("connected")
        connected = isinstance(state, Mapping) and state.get("is_connected") is True
        label = _text(row, "display_name") or provider
        methods = [method for method in _list(row.get("auth_methods")) if isinstance(method, Mapping)]
        if not methods:
            yield ProviderItem(
                provider_id=provider,
                label=label,
                fields=tuple(_fields(row.get("fields"), row.get("requires_api_key") is not False)),
                connected=connected,
                description=_text(row, "description"),
            )
        for method in methods:
            yield ProviderItem(
                provider_id=provider,
                label=f"{label}: {_text(method, 'label')}" if len(methods) > 1 else label,
                fields=tuple(_fields(method.get("fields"), True)),
                auth_method_id=_text(method, "id"),
                connected=connected,
                description=_text(method, "description") or _text(row, "description"),
            )


def _fields(value: object, required: bool) -> Iterable[FormField]:
    for field in _list(value):
        if isinstance(field, Mapping) and _text(field, "key"):
            wanted = field.get("required")
            yield FormField(
                name=_text(field, "key"),
                label=_text(field, "label") or _text(field, "key"),
                secret=field.get("secret") is True,
                required=wanted if isinstance(wanted, bool) else required,
                placeholder=_text(field, "placeholder"),
            )


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _mappings(frame: Frame, name: str) -> list[Json]:
    return [row for row in _list(frame.raw.get(name)) if isinstance(row, Mapping)]


def _text(row: Json, name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


def _seconds(value: object) -> float | None:
    """An ISO time as seconds since the epoch."""
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None
