"""Conversations and agents to manage: new, fork, rename, archive, compact, delete, create, forget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from letta_tui.ledger.errors import LedgerError
from letta_tui.ledger.values import Place
from letta_tui.protocol import commands
from letta_tui.seam.intents import (
    CreateAgent,
    ForgetConversation,
    ManageAgent,
    ManageConversation,
    Redact,
)
from letta_tui.transport.connection import TransportError
from letta_tui.worker.desk import AskFailed, Desk
from letta_tui.worker.judging import Judge
from letta_tui.worker.picking import CreateIt, OpenIt
from letta_tui.worker.publishing import Publisher
from letta_tui.worker.session import of_a_copy

COMPACT_SECONDS = 300.0  # a model writes the summary
_DOING = {
    "rename": "Renaming",
    "archive": "Archiving",
    "unarchive": "Taking out of the archive",
    "fork": "Copying",
    "compact": "Summarising",
    "delete": "Deleting",
}


class Manager:
    """``go`` opens another conversation; it returns at once. ``create_unconnected`` makes an agent where
    that takes no connection (the hosted service), and raises ``TransportError``."""

    def __init__(self, desk: Desk, judge: Judge, publisher: Publisher) -> None:
        self._desk = desk
        self._judge = judge
        self._publisher = publisher
        self.go: Callable[[OpenIt | CreateIt], None] = lambda wish: None
        self.create_unconnected: Callable[[Mapping[str, Any]], Awaitable[str]] | None = None

    async def manage(self, intent: ManageConversation) -> None:
        desk = self._desk
        conversation, agent = intent.conversation_id, intent.agent_id
        is_here = desk.place is not None and (desk.place.agent_id, desk.place.conversation_id) == (
            agent,
            conversation,
        )
        try:
            if intent.what == "rename":
                await desk.ask(commands.conversation_update(conversation, title=intent.title))
                self._remember_title(agent, conversation, intent.title)
                if is_here:
                    desk.set_status(conversation_title=intent.title)
                desk.tell("Renamed.")
            elif intent.what in ("archive", "unarchive"):
                archived = intent.what == "archive"
                await desk.ask(commands.conversation_update(conversation, archived=archived))
                desk.tell("Archived." if archived else "Taken out of the archive.")
            elif intent.what == "fork":
                await self.fork(agent, conversation)
            elif intent.what == "compact":
                desk.tell("The server is summarising the conversation.")
                frame = await desk.ask(
                    commands.conversation_compact(conversation, agent_id=agent or None), COMPACT_SECONDS
                )
                desk.tell(_compaction_words(frame.raw.get("compaction")))
            elif intent.what == "delete":
                # No command of this server deletes a conversation; hidden and archived is as far as it goes.
                await desk.ask(commands.conversation_update(conversation, archived=True, hidden=True))
                if intent.forget:
                    place = Place(self._server_key(), agent, conversation)
                    self._forget([place], "It is archived and hidden there.")
                else:
                    desk.tell("Archived and hidden: this server cannot delete a conversation.")
        except AskFailed as failed:
            desk.tell(f"{_DOING[intent.what]} did not work: {failed.words}", "error")

    async def fork(self, agent: str, conversation: str) -> None:
        """Copy a conversation on the server and go on in the copy. Raises ``AskFailed``."""
        frame = await self._desk.ask(
            commands.conversation_fork(conversation, agent_id=agent if conversation == "default" else None)
        )
        copy = frame.raw.get("conversation")
        new = copy.get("id") if isinstance(copy, Mapping) else None
        if not isinstance(new, str):
            raise AskFailed("The server did not name the copy.")
        self._remember_copy(agent, conversation, new)
        self.go(OpenIt(agent, new, "the copy"))
        self._desk.tell("You go on in the copy now; the other one stays as it is.")

    def _remember_copy(self, agent: str, conversation: str, copy: str) -> None:
        """It goes on with the folder, the mode and the tools of the one it was copied from."""
        link = self._desk.link
        known = self._desk.ledger.conversation(Place(link.server_key, agent, conversation)) if link else None
        if known is not None:
            there = replace(known.place, conversation_id=copy)
            self._desk.ledger.remember_conversation(
                there, agent_name=known.agent_name, state=of_a_copy(known.state), used=False
            )

    def _remember_title(self, agent: str, conversation: str, title: str) -> None:
        link = self._desk.link
        if link is None:
            return
        place = Place(link.server_key, agent, conversation)
        if self._desk.ledger.conversation(place) is not None:
            self._desk.ledger.remember_conversation(place, title=title, used=False)

    async def create_agent(self, intent: CreateAgent) -> None:
        desk = self._desk
        body = {"name": intent.name, "model": intent.model}
        if desk.link is None and self.create_unconnected is not None:
            if intent.personality:
                desk.tell(
                    "Presets are made over a connection, and there is none yet: a plain one can be made now."
                )
                return
            try:
                self.go(CreateIt(await self.create_unconnected(body), "a new agent"))
            except TransportError as error:
                desk.tell(f"The agent was not created: {error.words}", "error")
            return
        try:
            if intent.personality:
                preset = commands.create_agent(
                    intent.personality, model=intent.model or None, pin_global=False
                )
                agent_id = (await desk.ask(preset, 60.0)).raw.get("agent_id")
                if isinstance(agent_id, str) and intent.name:
                    await desk.ask(commands.agent_update(agent_id, {"name": intent.name}))
            else:
                agent = (await desk.ask(commands.agent_create(body), 60.0)).raw.get("agent")
                agent_id = agent.get("id") if isinstance(agent, Mapping) else None
        except AskFailed as failed:
            desk.tell(f"The agent was not created: {failed.words}", "error")
            return
        if not isinstance(agent_id, str):
            desk.tell(
                "The server did not name the agent it created: /agents shows whether it is there.", "error"
            )
            return
        self.go(CreateIt(agent_id, "a new agent"))

    async def manage_agent(self, intent: ManageAgent) -> None:
        desk, agent = self._desk, intent.agent_id
        is_here = desk.place is not None and desk.place.agent_id == agent
        try:
            if intent.what == "rename":
                await desk.ask(commands.agent_update(agent, {"name": intent.name}))
                if is_here:
                    desk.set_status(agent_name=intent.name)
                desk.tell("Renamed.")
            elif is_here:
                desk.tell("You are talking to this agent: open another one first.", "warning")
            else:
                await desk.ask(commands.agent_delete(agent), 60.0)
                if intent.forget:
                    known = desk.ledger.conversations(self._server_key(), agent)
                    self._forget([each.place for each in known], "The agent is deleted.")
                else:
                    desk.tell("The agent is deleted.")
        except AskFailed as failed:
            desk.tell(f"{_DOING[intent.what]} did not work: {failed.words}", "error")

    def new_conversation(self, agent_id: str | None) -> None:
        agent = agent_id or (self._desk.place.agent_id if self._desk.place else "")
        if not agent:
            self._desk.tell(
                "There is no agent yet to start a conversation with: /agents makes one.", "warning"
            )
            return
        self.go(CreateIt(agent, "you asked for a new one"))

    # --- what this client stored ---

    def redact(self, intent: Redact) -> None:
        desk, room = self._desk, self._desk.room
        try:
            send = desk.ledger.redact(intent.client_message_id)
        except LedgerError as error:
            desk.tell(error.words, "error")
            return
        self._forget_cached(send.place)  # stored anew, without it, after the next turn
        if room is not None and send.client_message_id in room.sends:
            room.sends[send.client_message_id] = send
            self._publisher.touch()
        desk.tell("Erased here. What reached the server stays in its history.")

    def forget(self, intent: ForgetConversation) -> None:
        place = Place(self._server_key(), intent.agent_id, intent.conversation_id)
        self._forget([place], "The server's copy is not touched.")

    def _server_key(self) -> str:
        desk = self._desk
        return desk.link.server_key if desk.link else (desk.place.server_key if desk.place else "")

    def _forget(self, places: Sequence[Place], besides: str) -> None:
        """``besides``: what was done on the server, in a sentence."""
        desk, count = self._desk, 0
        try:
            for place in places:
                count += desk.ledger.forget(place)
                self._forget_cached(place)
        except LedgerError as error:
            desk.tell(error.words, "error")
            return
        if desk.room is not None and desk.room.place in places:
            desk.room.forgotten = True
            self._judge.refresh(desk.room)
            self._publisher.touch()
        desk.tell(f"Forgotten here: {count} message{'' if count == 1 else 's'}. {besides}")

    def _forget_cached(self, place: Place) -> None:
        cache = self._desk.cache
        if not cache.forget(place):
            self._desk.tell(
                f"A copy may be left in {cache.path}: delete that file, nothing needs it.", "error"
            )


def _compaction_words(value: object) -> str:
    before = after = None
    if isinstance(value, Mapping):
        before, after = value.get("num_messages_before"), value.get("num_messages_after")
    if before == 0:
        return "There was nothing to summarise yet."
    if isinstance(before, int) and isinstance(after, int):
        return f"Summarised: {before} messages became {after}."
    return "Summarised."
