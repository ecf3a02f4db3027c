"""The worker's loop: builds the parts, wires them, and takes intents until it is told to quit."""

from __future__ import annotations

import asyncio
import logging

from letta_tui.ledger.errors import LedgerError
from letta_tui.ledger.store import Ledger
from letta_tui.seam import intents as want
from letta_tui.seam.channel import Mailbox
from letta_tui.seam.updates import Closed
from letta_tui.worker import windows
from letta_tui.worker.approving import Decider
from letta_tui.worker.cache import Cache
from letta_tui.worker.calling import Caller
from letta_tui.worker.config import WorkerConfig
from letta_tui.worker.connecting import Connector, Open
from letta_tui.worker.controls import Controls
from letta_tui.worker.desk import Desk
from letta_tui.worker.dispatching import Dispatcher
from letta_tui.worker.drafts import Drafts
from letta_tui.worker.entering import Entrance
from letta_tui.worker.events import Events
from letta_tui.worker.history import History
from letta_tui.worker.hosting import Hosting
from letta_tui.worker.judging import Judge
from letta_tui.worker.listing import Lists
from letta_tui.worker.living import Living
from letta_tui.worker.managing import Manager
from letta_tui.worker.opening import Opener
from letta_tui.worker.publishing import Publisher
from letta_tui.worker.questions import Questions
from letta_tui.worker.recovery import Recovery
from letta_tui.worker.sending import Sender
from letta_tui.worker.tasks import Tasks
from letta_tui.worker.toolbox import Toolbox
from letta_tui.worker.watching import Watch

log = logging.getLogger(__name__)


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

    async def run(self) -> Closed:
        """Until ``Quit``. A ledger that cannot be opened is one clear sentence and no more."""
        try:
            ledger = Ledger.open(self._config.ledger_path, self._config.hands.stamp)
        except LedgerError as error:
            return Closed(error.words, 1)
        self._build(ledger)
        try:
            return await self._work()
        finally:
            await self._desk.tasks.cancel_all()
            await self._toolbox.offering.close()
            ledger.close()

    def _build(self, ledger: Ledger) -> None:
        config = self._config
        desk = self._desk = Desk(config, self._mailbox, ledger, Tasks(self._task_failed))
        desk.cache = Cache(config.cache_path)
        publisher = Publisher(desk)
        events = Events(desk, publisher)
        history = History(desk)
        judge = self._judge = Judge(desk, events, history, publisher)
        sender = Sender(desk, events, publisher)
        decider = Decider(desk, publisher)
        toolbox = self._toolbox = Toolbox(desk, publisher, decider)
        self._entrance = Entrance(desk, publisher)
        opener = Opener(desk, events, toolbox, self._entrance)
        recovery = Recovery(desk, opener, events, history, judge, decider, sender, publisher, toolbox)
        connector = self._connector = Connector(desk, events, self._open)
        hosting = Hosting(desk)
        manager = Manager(desk, judge, publisher)
        controls = self._controls = Controls(desk, events, sender, publisher)
        living = self._living = Living(
            desk, connector, recovery, sender, judge, events, hosting, controls, toolbox, publisher
        )
        questions = Questions(desk, connector, manager)
        manager.go = living.go
        manager.create_unconnected = hosting.create_agent
        events.queue_changed = sender.poke
        events.wedged = questions.wedged
        events.tool_called = toolbox.take
        events.tool_returned = toolbox.returned
        events.turn_stopped = toolbox.stop
        events.needs_nobody = toolbox.allow_by_config
        events.taken_back = sender.taken_back
        events.cancel_arrived = controls.cancel_arrived
        self._watch = Watch(desk, connector)
        self._watch.away = living.away
        drafts = self._drafts = Drafts(desk)
        caller = Caller(desk)
        desk.call = caller.call
        self._watch.ticks = (living.tick, drafts.tick)
        self._dispatcher = Dispatcher(
            desk=desk,
            sender=sender,
            controls=controls,
            toolbox=toolbox,
            decider=decider,
            questions=questions,
            living=living,
            manager=manager,
            lists=Lists(desk, events),
            hosting=hosting,
            history=history,
            connector=connector,
            publisher=publisher,
            drafts=drafts,
            caller=caller,
        )
        salvage = ledger.opening.salvage
        if salvage is not None:
            desk.tell(salvage.words, "warning")
        for warning in ledger.opening.warnings:
            desk.tell(warning, "warning")

    async def _work(self) -> Closed:
        try:
            self._entrance.preview(self._config.target)
            if self._desk.room is not None:
                self._judge.offline(self._desk.room)
        except LedgerError as error:
            self._desk.tell(error.words, "error")
        windows.register(self._desk.ledger, self._config.window_id)
        self._desk.tasks.spawn(self._connector.run(), "connection")
        self._desk.tasks.spawn(self._watch.run(), "watch")
        while True:
            intent = await self._inbox.get()
            if isinstance(intent, want.Quit):
                await self._quit(intent)
                lost = self._drafts.lost()
                return Closed(lost, 1) if lost else Closed()
            try:
                self._dispatcher.take(intent)
            except LedgerError as error:
                self._desk.tell(error.words, "error")
            except Exception:
                log.exception("an intent failed: %s", type(intent).__name__)
                words = "An error of this program: that was not done, and nothing sent is lost. Try again."
                self._desk.tell(words, "error")

    async def _quit(self, intent: want.Quit) -> None:
        desk, room = self._desk, self._desk.room
        if intent.what == "stop":
            await self._controls.stop_and_wait()
        if room is not None:
            try:
                desk.ledger.remember_conversation(
                    room.place, state={"seen_at": desk.now()}, used=False, window_id=self._config.window_id
                )
                erasings = desk.cache.erasings()
                rows = desk.rows_to_keep(room)
                # Without a connection they are no newer than what is kept already.
                if rows and room.history_known and desk.link is not None:
                    desk.cache.store(room.place, rows, desk.now(), erasings)
            except LedgerError as error:
                log.info("leaving without a note: %s", error.words)
            await self._living.release(room.place.agent_id, room.place.conversation_id)
        desk.set_connection(phase="closed", words="Closed.")
        link = desk.link
        if link is not None:
            await link.client.close()

    def _task_failed(self, name: str, error: Exception) -> None:
        what = f"{name}: {type(error).__name__}"
        self._desk.tell(f"An error of this program ({what}): try again; its log has more.", "error")
