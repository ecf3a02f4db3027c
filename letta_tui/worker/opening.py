"""Opening a conversation: which one, in which mode, and whether the server's answer is the one asked for."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from letta_tui.ledger.values import Place
from letta_tui.protocol import RuntimeStarted, commands
from letta_tui.seam.state import Action
from letta_tui.seam.updates import NeedsSetup
from letta_tui.tools.deciding import session_notes
from letta_tui.worker.config import Target
from letta_tui.worker.confining import why_not
from letta_tui.worker.crashpoints import reached
from letta_tui.worker.desk import AskFailed, Desk, Link, ask
from letta_tui.worker.entering import Entrance
from letta_tui.worker.events import Events
from letta_tui.worker.picking import CreateIt, OpenIt, Pick, PickAgent, resume_mode
from letta_tui.worker.ports import KeeperTrouble, Variables
from letta_tui.worker.questions import ask_person
from letta_tui.worker.room import Room
from letta_tui.worker.session import Session, session_of, variable_notes
from letta_tui.worker.toolbox import Toolbox

log = logging.getLogger(__name__)

CLIENT_NAME = "letta-tui"
START_SECONDS = 60.0


class NotOpened(Exception):
    """The person has to decide, or to set something up; what is asked is on the screen already."""


class Opener:
    def __init__(self, desk: Desk, events: Events, toolbox: Toolbox, entrance: Entrance) -> None:
        self._desk = desk
        self._events = events
        self._toolbox = toolbox
        self._entrance = entrance

    # --- which one ---

    def choose(self, link: Link, target: Target) -> Pick:
        return self._entrance.choose(link.server_key, target)

    async def pick_agent(self, link: Link, wish: PickAgent) -> Pick:
        """Nothing is stored here: an agent of the server, or the first-run screen. Raises ``NotOpened``."""
        frame = await ask(link.client, commands.agent_list(limit=50))
        agents = [agent for agent in frame.raw.get("agents") or () if isinstance(agent, Mapping)]
        agents = [agent for agent in agents if isinstance(agent.get("id"), str)]
        if not agents:
            self._desk.put(NeedsSetup("This server has no agent yet."))
            self._desk.set_connection(
                phase="ready",
                words="Connected; there is no agent yet.",
                can_send=False,
                why_not="There is no agent yet.",
            )
            raise NotOpened
        chosen = max(
            agents, key=lambda agent: str(agent.get("last_run_completion") or agent.get("created_at") or "")
        )
        if len(agents) > 1:
            self._desk.tell(
                f"Chatting with {chosen.get('name') or chosen['id']}; the server has other agents too."
            )
        if wish.default:
            return OpenIt(chosen["id"], "default", "you asked for the default conversation")
        return CreateIt(chosen["id"], "the first one on this server")

    async def named(self, link: Link, wish: OpenIt) -> OpenIt:
        """``wish`` with its agent, which the server is asked for when it is not known."""
        if wish.agent_id:
            return wish
        for known in self._desk.ledger.conversations(link.server_key):
            if known.place.conversation_id == wish.conversation_id:
                return OpenIt(known.place.agent_id, wish.conversation_id, wish.why)
        try:
            frame = await ask(link.client, commands.conversation_retrieve(wish.conversation_id))
        except AskFailed as failed:
            if not failed.refused:
                raise
            self._gone(wish.conversation_id, failed.words, agent_id="")
            raise NotOpened from None
        conversation = frame.raw.get("conversation")
        agent = conversation.get("agent_id") if isinstance(conversation, Mapping) else None
        return OpenIt(agent if isinstance(agent, str) else "", wish.conversation_id, wish.why)

    # --- open ---

    async def open(self, link: Link, wish: OpenIt | CreateIt) -> Room:
        """Start the runtime and make the room; its replay has been taken in.

        Raises ``NotOpened`` when the person has to decide first, ``AskFailed`` without an answer.
        """
        if isinstance(wish, CreateIt):
            self._only_the_confined(wish.agent_id)
            return await self._create(link, wish)
        wish = await self.named(link, wish)
        self._only_the_confined(wish.agent_id)
        place = Place(link.server_key, wish.agent_id, wish.conversation_id)
        remembered = self._desk.ledger.conversation(place)
        room = self._entrance.enter(link, place, relaunched=remembered is not None)
        state: Mapping[str, Any] = remembered.state if remembered is not None else {}
        config = self._desk.config
        asked_for = config.mode or _text(state.get("mode"))
        mode = resume_mode(config.mode, _text(state.get("mode")), await self._server_mode(link, room))
        cwd = config.cwd if config.cwd_explicit else _text(state.get("cwd"))
        session = session_of(config, state, device=link.endpoint.device_id)
        command = commands.runtime_start(
            mode=mode,
            agent_id=wish.agent_id or None,
            conversation_id=wish.conversation_id,
            cwd=cwd,
            skill_sources=session.skill_sources,
            external_tools=await self._toolbox.offering.groups(),
            client_info=self._client_info(),
        )
        started = await self._start(link, command, place)
        answered = started.runtime
        if answered is None or not room.is_about(answered):
            self._wrong_runtime(room, started)
            raise NotOpened
        variables = await self._variables()
        self._remember(link, room, started, session, variables, mode=mode, cwd=cwd)
        room.restored = session_notes(
            {**state, **session.stored(), "device": state.get("device"), "cwd": cwd, "mode": asked_for},
            tools=self._toolbox.offering.names,
            missing=self._toolbox.offering.missing,
            cwd=(room.device.cwd if room.device is not None else None) or "",
            device=session.device,
            mode=(room.device.mode if room.device is not None else None) or "",
        )
        if variables is not None:
            room.restored += variable_notes(state.get("environment"), variables)
        return room

    async def _variables(self) -> Variables | None:
        keeper = self._desk.config.keeper
        if keeper is None:
            return Variables(settable=False)
        try:
            return await keeper.variables()
        except KeeperTrouble as trouble:
            log.info("the server's environment could not be looked at: %s", trouble.words)
            return None

    def _only_the_confined(self, agent_id: str) -> None:
        if words := why_not(self._desk.config.confined_to, agent_id):
            ask_person(self._desk, "confined", "This server serves another agent", words, ("open_other",))
            raise NotOpened

    async def _create(self, link: Link, wish: CreateIt) -> Room:
        config = self._desk.config
        mode = config.mode or "standard"
        session = session_of(config, {}, device=link.endpoint.device_id)
        command = commands.runtime_start(
            mode=mode,
            agent_id=wish.agent_id,
            create_conversation={},
            cwd=config.cwd,
            skill_sources=session.skill_sources,
            external_tools=await self._toolbox.offering.groups(),
            client_info=self._client_info(),
        )
        try:
            frame = await ask(link.client, command, START_SECONDS)
        except AskFailed as failed:
            if not failed.refused:
                raise
            ask_person(
                self._desk,
                "not_created",
                "No conversation could be started",
                f"The server says: {failed.words.rstrip('. ')}. Nothing was sent.",
                ("reconnect", "open_other"),
            )
            raise NotOpened from None
        started = frame.runtime_started
        if started is None or started.runtime is None or started.runtime.agent_id != wish.agent_id:
            ask_person(
                self._desk,
                "wrong_runtime",
                "The server opened something else",
                "A new conversation was asked for; the server's answer names another agent. Nothing is sent.",
                ("new", "open_other"),
            )
            raise NotOpened
        reached("conversation.after_create")
        place = Place(link.server_key, wish.agent_id, started.runtime.conversation_id)
        # Stored before anything can be sent in it, so that a relaunch finds it.
        self._desk.ledger.remember_server(link.server_key, label=link.endpoint.shown, kind=link.endpoint.kind)
        self._desk.ledger.remember_conversation(
            place, state={"mode": mode, "cwd": config.cwd}, window_id=config.window_id
        )
        reached("conversation.after_remember")
        room = self._entrance.enter(link, place, relaunched=False)
        self._events.catch_up(link, frame.arrival)
        variables = await self._variables()
        self._remember(link, room, started, session, variables, mode=mode, cwd=config.cwd)
        room.restored = list(self._toolbox.offering.missing)
        if variables is not None:
            room.restored += variable_notes((), variables)
        # What was replayed before the room existed was dropped: a sync replays it.
        synced = await ask(link.client, commands.sync(room.runtime))
        self._events.catch_up(link, synced.arrival)
        return room

    async def _server_mode(self, link: Link, room: Room) -> str | None:
        """The mode the server has for this conversation; asking changes nothing there."""
        try:
            frame = await ask(link.client, commands.sync(room.runtime))
        except AskFailed as failed:
            if not failed.refused:
                raise
            return None
        self._events.catch_up(link, frame.arrival)
        return room.device.mode if room.device is not None else None

    async def _start(self, link: Link, command: Mapping[str, Any], place: Place) -> RuntimeStarted:
        try:
            frame = await ask(link.client, command, START_SECONDS)
        except AskFailed as failed:
            if not failed.refused:
                raise
            self._gone(place.conversation_id, failed.words, agent_id=place.agent_id)
            raise NotOpened from None
        self._events.catch_up(link, frame.arrival)
        started = frame.runtime_started
        if started is None:
            raise AskFailed("The server's answer about the conversation could not be read.")
        return started

    def _remember(
        self,
        link: Link,
        room: Room,
        started: RuntimeStarted,
        session: Session,
        variables: Variables | None,
        *,
        mode: str,
        cwd: str | None,
    ) -> None:
        desk = self._desk
        title = _text(started.conversation.get("summary")) or ""
        agent_name = _text(started.agent.get("name")) or ""
        model = _text(started.conversation.get("model")) or _text(started.agent.get("model")) or ""
        actual = room.device.mode if room.device is not None and room.device.mode else mode
        folder = room.device.cwd if room.device is not None and room.device.cwd else cwd
        desk.ledger.remember_server(link.server_key, label=link.endpoint.shown, kind=link.endpoint.kind)
        desk.ledger.remember_conversation(
            room.place,
            title=title,
            agent_name=agent_name,
            state={
                "mode": actual,
                "cwd": folder,
                "external_tools": list(self._toolbox.offering.names),
                **({"environment": list(variables.wanted)} if variables is not None else {}),
                **session.stored(),
            },
            window_id=desk.config.window_id,
        )
        room.toolset = session.toolset
        desk.set_status(
            agent_id=room.place.agent_id,
            agent_name=agent_name,
            conversation_id=room.place.conversation_id,
            conversation_title=title,
            model=model,
            mode=actual,
            cwd=folder or "",
        )

    def _client_info(self) -> dict[str, str]:
        return {"name": CLIENT_NAME, "title": "letta-tui", "version": self._desk.config.client_version}

    # --- questions ---

    def _gone(self, conversation_id: str, words: str, *, agent_id: str) -> None:
        no_agent = bool(agent_id) and agent_id in words  # the server names what it does not find
        title, hint = "This conversation cannot be opened", ""
        if no_agent:
            title = "This server does not know the agent"
            hint = "Perhaps another server answers at this address now, or the agent was deleted. "
        actions: tuple[Action, ...] = ("open_other", "reconnect")
        if agent_id and not no_agent:
            actions = ("new", *actions)
        ask_person(
            self._desk,
            "gone",
            title,
            f"The server does not open {conversation_id}: {words.rstrip('. ')}. {hint}Nothing was sent, "
            "and no other conversation is opened unless you say so.",
            actions,
        )

    def _wrong_runtime(self, room: Room, started: RuntimeStarted) -> None:
        answered = started.runtime
        named = f"{answered.agent_id}, {answered.conversation_id}" if answered else "nothing"
        ask_person(
            self._desk,
            "wrong_runtime",
            "The server opened another conversation",
            f"Asked for was {room.place.agent_id}, {room.place.conversation_id}; the answer names {named}. "
            "Nothing is sent.",
            ("reconnect", "open_other"),
        )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
