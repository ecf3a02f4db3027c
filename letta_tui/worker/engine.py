"""The worker's loop: builds the parts, wires them, and hands each intent to the part whose job it is."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable

from letta_tui.ledger.errors import LedgerError
from letta_tui.ledger.store import Ledger
from letta_tui.protocol import Runtime
from letta_tui.seam import intents as want
from letta_tui.seam.channel import Mailbox
from letta_tui.seam.updates import Closed
from letta_tui.transport.connection import Refused
from letta_tui.transport.endpoint import Endpoint, server_key
from letta_tui.worker import windows
from letta_tui.worker.approving import Decider
from letta_tui.worker.cache import Cache
from letta_tui.worker.config import Target, WorkerConfig
from letta_tui.worker.connecting import Connector, Open
from letta_tui.worker.controls import Controls
from letta_tui.worker.desk import AskFailed, Desk, Link
from letta_tui.worker.events import Events
from letta_tui.worker.history import History
from letta_tui.worker.hosting import Hosting
from letta_tui.worker.judging import Judge
from letta_tui.worker.listing import Lists
from letta_tui.worker.managing import Manager
from letta_tui.worker.opening import Opener, question
from letta_tui.worker.picking import CreateIt, OpenIt
from letta_tui.worker.ports import KeeperTrouble
from letta_tui.worker.publishing import Publisher
from letta_tui.worker.recovery import Recovery
from letta_tui.worker.sending import Sender
from letta_tui.worker.sleep import Gap
from letta_tui.worker.tasks import Tasks
from letta_tui.worker.toolbox import Toolbox
from letta_tui.worker.watching import Watch

log = logging.getLogger(__name__)

RELEASE_SECONDS = 2.0
RECHECK_SECONDS = 20.0  # after which what is still being checked is looked for again


class Engine:
    def __init__(
        self,
        config: WorkerConfig,
        mailbox: Mailbox,
        inbox: asyncio.Queue[want.Intent],
        *,
        open_: Open | None = None,
    ) -> None:
        self._config = config
        self._mailbox = mailbox
        self._inbox = inbox
        self._open = open_
        self._target = config.target
        self._wish: OpenIt | CreateIt | None = None
        self._recovering: asyncio.Task[None] | None = None
        self._judging = asyncio.Event()
        self._warned_of_default = False

    async def run(self) -> Closed:
        """Until ``Quit``. A ledger that cannot be opened is one clear sentence and no more."""
        try:
            ledger = Ledger.open(self._config.ledger_path, self._config.hands.stamp)
        except LedgerError as error:
            return Closed(error.words, 74)
        self._build(ledger)
        try:
            return await self._work()
        finally:
            await self.desk.tasks.cancel_all()
            await self._toolbox.close()
            ledger.close()

    def _build(self, ledger: Ledger) -> None:
        desk = self.desk = Desk(self._config, self._mailbox, ledger, Tasks(self._task_failed))
        desk.cache = Cache(self._config.cache_path)
        publisher = self._publisher = Publisher(desk)
        events = self._events = Events(desk, publisher)
        history = self._history = History(desk)
        judge = self._judge = Judge(desk, events, history, publisher)
        sender = self._sender = Sender(desk, events, publisher)
        decider = self._decider = Decider(desk, publisher)
        toolbox = self._toolbox = Toolbox(desk, publisher, decider)
        opener = self._opener = Opener(desk, events, publisher, toolbox)
        self._recovery = Recovery(desk, opener, events, history, judge, decider, sender, publisher, toolbox)
        self._connector = Connector(desk, events, self._open)
        self._hosting = Hosting(desk)
        self._connector.settle = self._settle
        sender.fresh = self._fresh
        self._lists = Lists(desk, events)
        self._manager = Manager(desk, judge, publisher)
        self._controls = Controls(desk, events, sender, publisher)
        self._watch = Watch(desk, self._connector)
        self._connector.live = self._live
        self._connector.down = self._down
        self._connector.gap = self._judging.set
        self._manager.go = self._go
        self._manager.create_unconnected = self._hosting.create_agent
        self._watch.away = self._away
        self._watch.tick = self._tick
        sender.check = self._judging.set
        self._recovery.check = self._judging.set
        events.turn_over = self._turn_over
        events.queue_changed = sender.poke
        events.wedged = self._wedged
        events.tool_called = toolbox.take
        events.tool_returned = toolbox.returned
        events.turn_stopped = toolbox.stop
        events.needs_nobody = toolbox.allow_by_config
        events.taken_back = sender.taken_back
        events.cancel_arrived = self._controls.cancel_arrived
        windows.register(ledger, self._config.window_id)
        salvage = ledger.opening.salvage
        if salvage is not None:
            desk.tell(salvage.words, "warning")
        for warning in ledger.opening.warnings:
            desk.tell(warning, "warning")

    async def _work(self) -> Closed:
        try:
            self._opener.preview(self._target)
            if self.desk.room is not None:
                self._judge.offline(self.desk.room)
        except LedgerError as error:
            self.desk.tell(error.words, "error")
        self.desk.tasks.spawn(self._connector.run(), "connection")
        self.desk.tasks.spawn(self._watch.run(), "watch")
        while True:
            intent = await self._inbox.get()
            if isinstance(intent, want.Quit):
                await self._quit(intent)
                return Closed()
            try:
                self._take(intent)
            except LedgerError as error:
                self.desk.tell(error.words, "error")
            except Exception:
                log.exception("an intent failed: %s", type(intent).__name__)
                self.desk.tell("Something went wrong here; what was sent is in the ledger.", "error")

    # --- beside a connection ---

    async def _live(self, link: Link) -> None:
        """What goes on over one connection: recovery, then sending, and a reading after each turn."""
        async with asyncio.TaskGroup() as group:
            self._recovering = asyncio.create_task(self._recover(link))
            group.create_task(self._sender.run(link))
            group.create_task(self._hosting.keep(link.endpoint))
            group.create_task(self._read_after_turns(link))
            try:
                await asyncio.Event().wait()
            finally:
                self._recovering.cancel()

    async def _recover(self, link: Link) -> None:
        room = self.desk.room
        wish = self._wish
        if wish is None and room is not None and room.place.server_key == link.server_key:
            wish = OpenIt(room.place.agent_id, room.place.conversation_id, "it was open")
        if link.scope is not None and not (
            isinstance(wish, OpenIt) and link.scope == Runtime(wish.agent_id, wish.conversation_id)
        ):
            await self._connector.move()  # another one was asked for while this connection was made
            return
        try:
            await self._recovery.run(link, wish, self._target)
            self._wish = None
            self._target = Target()
            self._warn_of_default(link)
            if link.scope is not None and self.desk.place is not None:
                self._hosting.opened(link.endpoint, self.desk.place)
        except AskFailed as failed:
            if link.client.lost is None:
                self.desk.tell(failed.words, "warning")
            await link.client.close()
        except asyncio.CancelledError:
            raise
        except LedgerError as error:
            self.desk.tell(error.words, "error")
            self.desk.set_connection(phase="failed", words=error.words, can_send=False, why_not=error.words)
        except Exception:
            log.exception("recovery failed")
            self.desk.tell("Recovery failed by an error of this program; trying again.", "error")
            await link.client.close()

    def _warn_of_default(self, link: Link) -> None:
        """On a local server all agents' default conversations are one to its run lock: tell it, once."""
        place = self.desk.place
        local = link.info is not None and link.info.backend == "local"
        if place is None or place.conversation_id != "default" or not local or self._warned_of_default:
            return
        self._warned_of_default = True
        self.desk.tell(
            "On this server the default conversations of all agents share one lock: while one of them works, "
            "the others fail. A conversation of its own (/new) has no such limit.",
            "warning",
        )

    # --- the hosted service ---

    async def _settle(self, endpoint: Endpoint) -> tuple[Endpoint, Runtime | None]:
        """What a hosted endpoint needs to know before there is a connection; the others need nothing."""
        if endpoint.kind != "hosted":
            return endpoint, None
        room, wish = self.desk.room, self._wish
        if wish is None and room is not None and room.place.server_key == server_key(endpoint):
            wish = OpenIt(room.place.agent_id, room.place.conversation_id, "it was open")
        there, opened = await self._hosting.settle(endpoint, wish, self._target)
        if self._wish is None or self._wish is wish:
            self._wish = opened
        return there, Runtime(opened.agent_id, opened.conversation_id)

    async def _fresh(self, link: Link, key: str) -> bool:
        """Whether a message may be written on this connection: not when its sandbox has just expired."""
        desk, room = self.desk, self.desk.room
        if link.endpoint.kind != "hosted" or room is None:
            return True
        try:
            fresh = await self._hosting.before_send(link.endpoint, key)
        except Refused as refused:
            room.released.discard(key)
            desk.tell(f"Not sent: {refused.words}", "error")
            self._judging.set()
            return False
        if not fresh:
            room.ready = False
            desk.tasks.spawn(self._connector.move(), "move")
        return fresh and desk.link is link and desk.room is room

    def _use_device(self, device: str) -> None:
        self._hosting.choose(device)
        self.desk.tasks.spawn(self._connector.move(), "move")

    async def _read_after_turns(self, link: Link) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RECHECK_SECONDS):
                    await self._judging.wait()
            asked = self._judging.is_set()
            room = self.desk.room
            if room is None or not room.ready:
                if asked:
                    await asyncio.sleep(0.2)  # the wish stands until recovery has ended
                continue
            self._judging.clear()
            if not asked and not self._judge.is_behind(room):
                continue
            try:
                await self._recovery.after_turn(link, room)
            except AskFailed as failed:
                if link.client.lost is None:
                    log.info("history not read: %s", failed.words)
            except LedgerError as error:
                self.desk.tell(error.words, "error")

    def _turn_over(self) -> None:
        self._judging.set()
        self._controls.stir()

    def _tick(self) -> None:
        """A turn whose end frame was lost ends by a reading that finds everything idle."""
        room = self.desk.room
        if room is not None and room.ready and room.turn.overdue(self.desk.now()):
            self._judging.set()

    def _down(self, link: Link) -> None:
        room = self.desk.room
        self._toolbox.down(link)
        self._controls.stir()
        self._judging.clear()
        if room is None:
            return
        room.ready = False
        room.held = False
        for key, send in list(room.sends.items()):
            if send.attempts and send.delivery in ("unconfirmed", "accepted", "queued", "started"):
                reason = link.client.lost.reason if link.client.lost is not None else ""
                self._events.observe(link, None, key, "connection_lost", payload={"words": reason})
        self._judge.offline(room)

    def _go(self, wish: OpenIt | CreateIt) -> None:
        """Open another conversation on the connection there is, or on the next one."""
        self._wish = wish
        desk, link, room = self.desk, self.desk.link, self.desk.room
        desk.set_question(None)
        if room is not None:
            room.ready = False
            if not (isinstance(wish, OpenIt) and wish.conversation_id == room.place.conversation_id):
                desk.tasks.spawn(self._release(room.place.agent_id, room.place.conversation_id), "release")
        if link is None:
            self._connector.reconnect_now()
            return
        if link.scope is not None:
            if self._recovering is not None:
                self._recovering.cancel()  # or its end would take the new wish for its own
            desk.tasks.spawn(self._connector.move(), "move")
            return
        if self._recovering is not None:
            self._recovering.cancel()
        self._recovering = desk.tasks.spawn(self._recover(link), "open")

    async def _release(self, agent_id: str, conversation_id: str) -> None:
        if self._config.keeper is None:
            return
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                await self._config.keeper.release(agent_id, conversation_id)
        except (KeeperTrouble, TimeoutError) as trouble:
            log.info("not released: %s", trouble)

    def _away(self, gap: Gap) -> None:
        """After a long sleep nothing that was held is released by itself: the person may be gone."""
        room = self.desk.room
        if room is None:
            return
        held = [k for k, s in room.sends.items() if s.delivery == "prepared" and k in room.released]
        room.released.difference_update(held)
        self._publisher.touch()
        self._judging.set()

    # --- intents ---

    def _take(self, intent: want.Intent) -> None:
        later: Awaitable[None] | None = None
        match intent:
            case want.Submit():
                self._put_away_notes()  # whoever writes has seen them
                self._sender.submit(intent)
            case want.SaveDraft(text):
                self._save_draft(text)
            case want.ResolveSend():
                self._sender.resolve(intent)
            case want.Abort():
                later = self._abort()
            case want.CancelQueued():
                later = self._controls.cancel_queued(intent)
            case want.ResumeQueue():
                later = self._controls.resume_queue()
            case want.Decide():
                if not self._toolbox.decide(intent):
                    later = self._decider.decide(intent)
            case want.PutAwayNotes():
                self._put_away_notes()
            case want.AnswerQuestion():
                self._answer(intent)
            case want.OpenConversation(agent_id, conversation_id):
                self._go(OpenIt(agent_id, conversation_id, "you opened it"))
            case want.NewConversation(agent_id):
                self._manager.new_conversation(agent_id)
            case want.ManageConversation():
                later = self._manager.manage(intent)
            case want.ListConversations():
                later = self._lists.conversations(intent)
            case want.ListAgents():
                later = self._lists.agents()
            case want.ListDevices():
                later = self._hosting.devices(self._config.endpoint)
            case want.UseDevice(device):
                self._use_device(device)
            case want.ListProviders():
                later = self._lists.providers()
            case want.ConnectProvider():
                later = self._lists.connect_provider(intent)
            case want.ListModels():
                later = self._lists.models(intent)
            case want.CreateAgent():
                later = self._manager.create_agent(intent)
            case want.ManageAgent():
                later = self._manager.manage_agent(intent)
            case want.SetMode():
                later = self._controls.set_mode(intent)
            case want.SetCwd():
                later = self._controls.set_cwd(intent)
            case want.SetModel():
                later = self._controls.set_model(intent)
            case want.LoadOlder():
                later = self._older()
            case want.Reconnect():
                self._connector.reconnect_now()
            case want.Redact():
                self._manager.redact(intent)
            case want.ForgetConversation():
                self._manager.forget(intent)
            case want.FocusChanged(focused):
                self._focused(focused)
            case want.Quit():
                pass  # taken by the loop
        if later is not None:
            self.desk.tasks.spawn(_run(later), type(intent).__name__)

    def _put_away_notes(self) -> None:
        room = self.desk.room
        if room is not None and room.notes and room.settled_once:
            room.notes.clear()
            self._publisher.touch()

    def _save_draft(self, text: str) -> None:
        place = self.desk.place
        if place is not None:
            self.desk.ledger.save_draft(self._config.window_id, place, text)

    async def _abort(self) -> None:
        await self._controls.abort()

    async def _older(self) -> None:
        desk = self.desk
        if desk.link is None or desk.room is None:
            return
        try:
            await self._history.older(desk.link, desk.room)
        except AskFailed as failed:
            desk.tell(f"Older messages could not be read: {failed.words}", "warning")

    def _focused(self, focused: bool) -> None:
        place = self.desk.place
        if place is not None and not focused:
            self.desk.ledger.remember_conversation(place, state={"seen_at": self.desk.now()}, used=False)

    # --- questions ---

    def _wedged(self, words: str) -> None:
        """The conversation refuses every input until its server restarts (a turn was cut off earlier)."""
        room = self.desk.room
        if room is None or self.desk.question is not None:
            return
        owned = self.desk.link is not None and self.desk.link.embedded
        self.desk.set_question(
            question(
                "wedged",
                "This conversation is stuck on the server",
                f"The server says: {words.rstrip('. ')}. Every message fails until the server restarts.",
                ("restart", "fork", "keep") if owned else ("fork", "keep"),
            )
        )

    def _answer(self, intent: want.AnswerQuestion) -> None:
        desk, room = self.desk, self.desk.room
        asked = desk.question
        if asked is None or asked.id != intent.question_id:
            return
        if intent.action not in {choice.action for choice in asked.choices}:
            return
        if intent.action == "open_other":
            return  # the view opens its picker; the question stands until something is opened
        desk.set_question(None)
        if intent.action == "new":
            self._manager.new_conversation(None)
        elif intent.action == "reconnect":
            link = desk.link
            if link is not None:
                desk.tasks.spawn(link.client.close(), "reconnect")
            self._connector.reconnect_now()
        elif intent.action == "restart":
            desk.tasks.spawn(self._restart(), "restart")
        elif intent.action == "fork" and room is not None:
            desk.tasks.spawn(self._fork(room.place.agent_id, room.place.conversation_id), "fork")

    async def _restart(self) -> None:
        keeper = self._config.keeper
        if keeper is None:
            return
        self.desk.tell("Restarting the server.")
        try:
            await keeper.restart_server()
            self.desk.tell("The server was restarted.")
        except KeeperTrouble as trouble:
            self.desk.tell(f"The server could not be restarted: {trouble.words}", "error")
        self._connector.reconnect_now()

    async def _fork(self, agent_id: str, conversation_id: str) -> None:
        try:
            await self._manager.fork(agent_id, conversation_id)
        except AskFailed as failed:
            self.desk.tell(f"The conversation could not be copied: {failed.words}", "error")

    # --- leaving ---

    async def _quit(self, intent: want.Quit) -> None:
        desk, room = self.desk, self.desk.room
        if intent.what == "stop":
            await self._controls.stop_and_wait()
        if room is not None:
            try:
                desk.ledger.remember_conversation(
                    room.place, state={"seen_at": desk.now()}, used=False, window_id=self._config.window_id
                )
            except LedgerError as error:
                log.info("leaving without a note: %s", error.words)
            if room.history_known:
                desk.cache.store(room.place, room.transcript.rows, desk.now())
            await self._release(room.place.agent_id, room.place.conversation_id)
        desk.set_connection(phase="closed", words="Closed.")
        link = desk.link
        if link is not None:
            await link.client.close()

    def _task_failed(self, name: str, error: Exception) -> None:
        self.desk.tell(f"Something went wrong here ({name}: {type(error).__name__}).", "error")


async def _run(work: Awaitable[None]) -> None:
    await work
