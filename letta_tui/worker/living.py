"""One connection after another: what goes on beside each, and what its end leaves to be checked."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from letta_tui.ledger.errors import LedgerError
from letta_tui.protocol import Runtime
from letta_tui.transport.connection import Refused
from letta_tui.transport.endpoint import Endpoint, server_key
from letta_tui.worker.config import Target
from letta_tui.worker.connecting import Connector
from letta_tui.worker.controls import Controls
from letta_tui.worker.desk import AskFailed, Desk, Link
from letta_tui.worker.events import Events
from letta_tui.worker.hosting import Hosting
from letta_tui.worker.judging import Judge
from letta_tui.worker.picking import CreateIt, OpenIt
from letta_tui.worker.ports import KeeperTrouble
from letta_tui.worker.publishing import Publisher
from letta_tui.worker.recovery import Recovery
from letta_tui.worker.sending import Sender
from letta_tui.worker.sleep import Gap
from letta_tui.worker.toolbox import Toolbox

log = logging.getLogger(__name__)

RELEASE_SECONDS = 2.0
RECHECK_SECONDS = 20.0  # after which what is still being checked is looked for again


class Living:
    """Recovers on each connection, sends over it, reads after each turn; goes to another conversation.

    ``check`` asks for a reading of everything open.
    """

    def __init__(
        self,
        desk: Desk,
        connector: Connector,
        recovery: Recovery,
        sender: Sender,
        judge: Judge,
        events: Events,
        hosting: Hosting,
        controls: Controls,
        toolbox: Toolbox,
        publisher: Publisher,
    ) -> None:
        self._desk = desk
        self._connector = connector
        self._recovery = recovery
        self._sender = sender
        self._judge = judge
        self._events = events
        self._hosting = hosting
        self._controls = controls
        self._toolbox = toolbox
        self._publisher = publisher
        self._target = desk.config.target
        self._wish: OpenIt | CreateIt | None = None
        self._recovering: asyncio.Task[None] | None = None
        self._judging = asyncio.Event()
        self._warned_of_default = False
        self.check = self._judging.set
        connector.live = self._live
        connector.down = self._down
        connector.gap = self.check
        connector.settle = self._settle
        sender.fresh = self._fresh
        sender.check = recovery.check = self.check
        events.turn_over = self._turn_over

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
        room = self._desk.room
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
            if link.scope is not None and self._desk.place is not None:
                self._hosting.opened(link.endpoint, self._desk.place)
                self._desk.set_connection(goes_on=self._hosting.after_leaving())
        except AskFailed as failed:
            if link.client.lost is None:
                self._desk.tell(failed.words, "warning")
            await link.client.close()
        except asyncio.CancelledError:
            raise
        except LedgerError as error:
            self._desk.tell(error.words, "error")
            self._desk.set_connection(phase="failed", words=error.words, can_send=False, why_not=error.words)
        except Exception:
            log.exception("recovery failed")
            self._desk.tell("Recovery failed by an error of this program; trying again.", "error")
            await link.client.close()

    def _warn_of_default(self, link: Link) -> None:
        """On a local server all agents' default conversations are one to its run lock: tell it, once."""
        place = self._desk.place
        local = link.info is not None and link.info.backend == "local"
        if place is None or place.conversation_id != "default" or not local or self._warned_of_default:
            return
        self._warned_of_default = True
        self._desk.tell(
            "On this server the default conversations of all agents share one lock: while one of them works, "
            "the others fail. A conversation of its own (/new) has no such limit.",
            "warning",
        )

    # --- the hosted service ---

    async def _settle(self, endpoint: Endpoint) -> tuple[Endpoint, Runtime | None]:
        """What a hosted endpoint needs to know before there is a connection; the others need nothing."""
        if endpoint.kind != "hosted":
            return endpoint, None
        room, wish = self._desk.room, self._wish
        if wish is None and room is not None and room.place.server_key == server_key(endpoint):
            wish = OpenIt(room.place.agent_id, room.place.conversation_id, "it was open")
        there, opened = await self._hosting.settle(endpoint, wish, self._target)
        if self._wish is None or self._wish is wish:
            self._wish = opened
        return there, Runtime(opened.agent_id, opened.conversation_id)

    async def _fresh(self, link: Link, key: str) -> bool:
        """Whether a message may be written on this connection: not when its sandbox has just expired."""
        desk, room = self._desk, self._desk.room
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

    def use_device(self, device: str) -> None:
        """Go to another machine of the account."""
        self._hosting.choose(device)
        self._desk.tasks.spawn(self._connector.move(), "move")

    # --- a turn, a tick, an end ---

    async def _read_after_turns(self, link: Link) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RECHECK_SECONDS):
                    await self._judging.wait()
            asked = self._judging.is_set()
            room = self._desk.room
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
                self._desk.tell(error.words, "error")

    def _turn_over(self) -> None:
        self._judging.set()
        self._controls.stir()

    def tick(self) -> None:
        """A turn whose end frame was lost ends by a reading that finds everything idle."""
        room = self._desk.room
        if room is not None and room.ready and room.turn.overdue(self._desk.now()):
            self._judging.set()

    def _down(self, link: Link) -> None:
        room = self._desk.room
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

    def away(self, gap: Gap) -> None:
        """After a long sleep nothing that was held is released by itself: the person may be gone."""
        room = self._desk.room
        if room is None:
            return
        held = [k for k, s in room.sends.items() if s.delivery == "prepared" and k in room.released]
        room.released.difference_update(held)
        self._publisher.touch()
        self._judging.set()

    # --- another conversation ---

    def go(self, wish: OpenIt | CreateIt) -> None:
        """Open another conversation on the connection there is, or on the next one."""
        self._wish = wish
        desk, link, room = self._desk, self._desk.link, self._desk.room
        desk.set_question(None)
        if room is not None:
            room.ready = False
            if not (isinstance(wish, OpenIt) and wish.conversation_id == room.place.conversation_id):
                desk.tasks.spawn(self.release(room.place.agent_id, room.place.conversation_id), "release")
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

    async def release(self, agent_id: str, conversation_id: str) -> None:
        if self._desk.config.keeper is None:
            return
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                await self._desk.config.keeper.release(agent_id, conversation_id)
        except (KeeperTrouble, TimeoutError) as trouble:
            log.info("not released: %s", trouble)
