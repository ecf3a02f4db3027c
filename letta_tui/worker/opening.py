"""Opening a conversation: which one, in which mode, and whether the server's answer is the one asked for."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from letta_tui.conversation.words import choice
from letta_tui.ledger.values import Place, Remembered
from letta_tui.protocol import RuntimeStarted, commands
from letta_tui.seam.state import Action, QuestionView
from letta_tui.seam.updates import DraftLoaded, NeedsSetup
from letta_tui.tools.deciding import session_notes
from letta_tui.transport.endpoint import server_key
from letta_tui.worker import windows
from letta_tui.worker.cache import MOST_ROWS, with_the_ledgers_word
from letta_tui.worker.config import Target
from letta_tui.worker.crashpoints import reached
from letta_tui.worker.desk import AskFailed, Desk, Link, ask
from letta_tui.worker.events import Events
from letta_tui.worker.picking import CreateIt, OpenIt, Pick, PickAgent, Stored, pick, resume_mode
from letta_tui.worker.publishing import Publisher, state_of
from letta_tui.worker.room import Room
from letta_tui.worker.session import Session, session_of
from letta_tui.worker.toolbox import Toolbox

log = logging.getLogger(__name__)

CLIENT_NAME = "letta-tui"
START_SECONDS = 60.0


class NotOpened(Exception):
    """The person has to decide, or to set something up; what is asked is on the screen already."""


class Opener:
    def __init__(self, desk: Desk, events: Events, publisher: Publisher, toolbox: Toolbox) -> None:
        self._desk = desk
        self._events = events
        self._publisher = publisher
        self._toolbox = toolbox
        self._draft_of: Place | None = None

    # --- which one ---

    def choose(self, link: Link, target: Target) -> Pick:
        """By the command line and by what is stored for this server."""
        ledger, window = self._desk.ledger, self._desk.config.window_id
        last = ledger.last_used(link.server_key, None, window)
        of_agent = ledger.last_used(link.server_key, target.agent_id, window) if target.agent_id else None
        return pick(target, _stored(last), _stored(of_agent))

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

    def preview(self, target: Target) -> None:
        """Before there is a connection: the room one comes back to, from ledger and cache.

        The server's answer decides later whether it is the right one. Nothing is shown when another
        conversation was asked for than the one this would be.
        """
        desk, config = self._desk, self._desk.config
        if config.endpoint is not None:
            key: str | None = server_key(config.endpoint)
        else:
            key = next(
                (c.place.server_key for c in desk.ledger.conversations() if c.endpoint_kind == "embedded"),
                None,
            )
        if key is None:
            return
        last = desk.ledger.last_used(key, None, config.window_id)
        of_agent = desk.ledger.last_used(key, target.agent_id, config.window_id) if target.agent_id else None
        chosen = pick(target, _stored(last), _stored(of_agent))
        if not isinstance(chosen, OpenIt) or not chosen.agent_id:
            return
        place = Place(key, chosen.agent_id, chosen.conversation_id)
        remembered = desk.ledger.conversation(place)
        if remembered is None:
            return
        room = self._make_room(place, relaunched=True)
        desk.set_status(
            agent_id=place.agent_id,
            agent_name=remembered.agent_name,
            conversation_id=place.conversation_id,
            conversation_title=remembered.title,
            mode=_text(remembered.state.get("mode")) or "",
            cwd=_text(remembered.state.get("cwd")) or "",
        )
        desk.set_connection(can_send=True)
        room.sends = {send.client_message_id: send for send in desk.ledger.open_sends(place)}
        self._publisher.touch()

    # --- open ---

    async def open(self, link: Link, wish: OpenIt | CreateIt) -> Room:
        """Start the runtime and make the room; its replay has been taken in.

        Raises ``NotOpened`` when the person has to decide first, ``AskFailed`` without an answer.
        """
        if isinstance(wish, CreateIt):
            return await self._create(link, wish)
        wish = await self.named(link, wish)
        place = Place(link.server_key, wish.agent_id, wish.conversation_id)
        remembered = self._desk.ledger.conversation(place)
        room = self._enter(link, place, relaunched=remembered is not None)
        state: Mapping[str, Any] = remembered.state if remembered is not None else {}
        config = self._desk.config
        mode = resume_mode(config.mode, _text(state.get("mode")), await self._server_mode(link, room))
        cwd = config.cwd if config.cwd_explicit else _text(state.get("cwd"))
        session = session_of(config, state, device=link.endpoint.device_id)
        command = commands.runtime_start(
            mode=mode,
            agent_id=wish.agent_id or None,
            conversation_id=wish.conversation_id,
            cwd=cwd,
            skill_sources=session.skill_sources,
            external_tools=await self._toolbox.groups(),
            client_info=self._client_info(),
        )
        started = await self._start(link, command, place)
        answered = started.runtime
        if answered is None or not room.is_about(answered):
            self._wrong_runtime(room, started)
            raise NotOpened
        self._remember(link, room, started, session, mode=mode, cwd=cwd)
        room.restored = session_notes(
            {**state, "cwd": cwd},
            tools=self._toolbox.names,
            missing=self._toolbox.missing,
            cwd=(room.device.cwd if room.device is not None else None) or "",
            device=session.device,
        )
        return room

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
            external_tools=await self._toolbox.groups(),
            client_info=self._client_info(),
        )
        try:
            frame = await ask(link.client, command, START_SECONDS)
        except AskFailed as failed:
            if not failed.refused:
                raise
            self._ask_person(
                "not_created",
                "No conversation could be started",
                f"The server says: {failed.words.rstrip('. ')}. Nothing was sent.",
                ("reconnect", "open_other"),
            )
            raise NotOpened from None
        started = frame.runtime_started
        if started is None or started.runtime is None or started.runtime.agent_id != wish.agent_id:
            self._ask_person(
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
        room = self._enter(link, place, relaunched=False)
        self._events.catch_up(link, frame.arrival)
        self._remember(link, room, started, session, mode=mode, cwd=config.cwd)
        room.restored = list(self._toolbox.missing)
        # What was replayed before the room existed was dropped: a sync replays it.
        synced = await ask(link.client, commands.sync(room.runtime))
        self._events.catch_up(link, synced.arrival)
        return room

    def _enter(self, link: Link, place: Place, *, relaunched: bool) -> Room:
        """The room for ``place``: the one that is there if it is the same conversation, else a new one."""
        desk = self._desk
        room = desk.room
        if room is None or room.place != place:
            room = self._make_room(place, relaunched=relaunched)
        room.connection_id = link.connection_id
        room.ready = False
        room.blocked = ""
        room.held = False
        room.hold_given_up = False
        room.queue_read = room.loop_read = None
        room.loop = room.device = None
        room.runs_seen.clear()
        desk.put(*room.transcript.connected(link.connection_id))
        room.queue.connected(link.connection_id)
        room.approvals.connected(link.connection_id)
        room.turn.connected(link.connection_id)
        room.sends = {send.client_message_id: send for send in desk.ledger.open_sends(place)}
        desk.set_status(agent_id=place.agent_id, conversation_id=place.conversation_id)
        self._publisher.touch()
        return room

    def _make_room(self, place: Place, *, relaunched: bool) -> Room:
        """A new room on the screen, with the cached rows of the conversation if there are any."""
        desk = self._desk
        room = desk.room = Room.of(place, relaunched=relaunched)
        self._publisher.forget()
        cached = desk.cache.load(place) if relaunched else None
        if cached is not None:
            sends = desk.ledger.sends(place, limit=MOST_ROWS)
            rows = with_the_ledgers_word(cached[0], sends)
            room.transcript.restore(rows, cached[1])
            shown = {row.client_message_id for row in rows}
            for send in sends:
                # A window that was killed kept nothing: what the ledger has learnt since is shown too.
                if send.client_message_id in shown or send.updated.wall > cached[1]:
                    room.transcript.put_send(state_of(send))
        desk.put(room.transcript.snapshot())
        self._load_draft(place)
        return room

    def _load_draft(self, place: Place) -> None:
        """This window's draft, or one that a window that is gone left behind."""
        if self._draft_of == place:
            return
        self._draft_of = place
        ledger, window = self._desk.ledger, self._desk.config.window_id
        draft = ledger.draft(window, place)
        if draft is None:
            others = [
                other for other in ledger.drafts(place) if not windows.is_alive(ledger, other.window_id)
            ]
            if others:
                draft = ledger.adopt_draft(others[0].window_id, window, place)
        if draft is None or not draft.text:
            return
        sent = [s for s in ledger.sends(place, limit=5) if s.created.wall >= draft.saved.wall]
        if any(send.text.strip() == draft.text.strip() for send in sent):
            # Submitted, and the program ended before the draft could be cleared: one place is enough.
            ledger.save_draft(window, place, "")
            return
        self._desk.put(DraftLoaded(draft.text))

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
                "external_tools": list(self._toolbox.names),
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
        actions: tuple[Action, ...] = (
            ("new", "open_other", "reconnect") if agent_id else ("open_other", "reconnect")
        )
        self._ask_person(
            "gone",
            "This conversation cannot be opened",
            f"The server does not open {conversation_id}: {words.rstrip('. ')}. Nothing was sent, "
            "and no other conversation is opened unless you say so.",
            actions,
        )

    def _wrong_runtime(self, room: Room, started: RuntimeStarted) -> None:
        answered = started.runtime
        named = f"{answered.agent_id}, {answered.conversation_id}" if answered else "nothing"
        self._ask_person(
            "wrong_runtime",
            "The server opened another conversation",
            f"Asked for was {room.place.agent_id}, {room.place.conversation_id}; the answer names {named}. "
            "Nothing is sent.",
            ("reconnect", "open_other"),
        )

    def _ask_person(self, kind: str, title: str, body: str, actions: tuple[Action, ...]) -> None:
        room = self._desk.room
        if room is not None:
            room.blocked = title + "."
        self._desk.set_connection(phase="ready", words=title + ".", can_send=False, why_not=title + ".")
        self._desk.set_question(question(kind, title, body, actions))


def question(kind: str, title: str, body: str, actions: tuple[Action, ...]) -> QuestionView:
    return QuestionView(kind, title, body, tuple(choice(action) for action in actions))


def _stored(remembered: Remembered | None) -> Stored | None:
    if remembered is None:
        return None
    return Stored(remembered.place.agent_id, remembered.place.conversation_id)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
