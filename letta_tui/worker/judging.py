"""Readings and verdicts: what became of each open send, in an order that cannot miss a moving item."""

from __future__ import annotations

import asyncio
import logging

from letta_tui.conversation.card import RAN_AGAIN, ran_again
from letta_tui.conversation.reconcile import EndNote, Reading, Verdict, reconcile
from letta_tui.ledger.errors import LedgerError
from letta_tui.ledger.transitions import ENDED, IN_FLIGHT
from letta_tui.ledger.values import Send
from letta_tui.protocol import commands
from letta_tui.worker.crashpoints import reached
from letta_tui.worker.desk import AskFailed, Desk, Link, ask
from letta_tui.worker.events import Events
from letta_tui.worker.history import History
from letta_tui.worker.noted import noted_ends
from letta_tui.worker.ports import KeeperTrouble
from letta_tui.worker.publishing import Publisher
from letta_tui.worker.room import Room

log = logging.getLogger(__name__)

NOTES_SECONDS = 2.0  # for a keeper to answer: a verdict does not wait for it any longer
MOST_READINGS = 5  # in a row; after that the next end of a turn, or the person, asks again


class Judge:
    """One reading at a time; a wish that comes while one is under way leads to one more."""

    def __init__(self, desk: Desk, events: Events, history: History, publisher: Publisher) -> None:
        self._desk = desk
        self._events = events
        self._history = history
        self._publisher = publisher
        self._policy = desk.config.policy
        self._lock = asyncio.Lock()

    def refresh(self, room: Room) -> None:
        """Read the open sends from the ledger again (another window may have written to it)."""
        known = dict(room.sends)
        room.sends = {send.client_message_id: send for send in self._desk.ledger.open_sends(room.place)}
        for key, send in known.items():
            if key not in room.sends:
                at_rest = self._desk.ledger.send(key)
                if at_rest is not None:
                    # Kept for its last view, and because the transcript marks its row.
                    room.sends[key] = at_rest if at_rest != send else send

    def forget_rested(self, room: Room) -> None:
        """Sends whose rest has been shown need no place here any more."""
        open_ones = {send.client_message_id for send in self._desk.ledger.open_sends(room.place)}
        for key in [key for key in room.sends if key not in open_ones and key in room.shown]:
            send = room.sends.pop(key)
            room.verdicts.pop(key, None)
            room.released.discard(key)
            if ran_again(send):
                room.sends[key] = send

    async def settle(self, link: Link, room: Room, *, quiet: bool = False) -> None:
        """Read and judge until every open send has a verdict that more reading would not change.

        Where a verdict asks for it, the settle delay is waited out and everything is read a second time.
        ``quiet``: the first reading is the everyday one after a turn; it is not shown as checking.
        Raises ``AskFailed`` when the server cannot be asked; nothing is then said of anything.
        """
        async with self._lock:
            first_read: float | None = None
            try:
                for number in range(MOST_READINGS):
                    self.refresh(room)
                    # Only what has been written once can be anywhere on the server.
                    in_question = [s for s in room.sends.values() if s.attempts or s.delivery in IN_FLIGHT]
                    room.checking = {
                        s.client_message_id
                        for s in in_question
                        if s.delivery in IN_FLIGHT and not room.turn.active and (number or not quiet)
                    }
                    self._publisher.touch()
                    mono = self._desk.config.hands.mono()
                    second = first_read is not None and mono - first_read >= self._policy.settle
                    reading = await self.read(link, room, in_question, second=second)
                    if first_read is None:
                        first_read = mono
                    again = self.apply(room, reading)
                    # A busy runtime is read again when its turn is over, which may be now.
                    if not again or not (room.idle or (reading.loop is not None and reading.loop.idle)):
                        break
                    await asyncio.sleep(self._policy.settle)
            finally:
                room.checking = set()
                self._publisher.touch()

    def is_behind(self, room: Room) -> bool:
        """Whether something is still being checked although nothing runs that it could be waiting for."""
        return room.idle and any(
            verdict.again and key in room.sends for key, verdict in room.verdicts.items()
        )

    async def read(self, link: Link, room: Room, sends: list[Send], *, second: bool) -> Reading:
        """Queue, then a later loop status, then history back to the oldest anchor (rule 2)."""
        reached("reconcile.before_read")
        fence = self._desk.stamp()
        await self._sync(link, room)
        queue = room.queue_read
        await self._sync(link, room)
        loop = room.loop_read
        history = await self._history.back_to(link, room, sends, join=True)
        reached("reconcile.after_read")
        return Reading(
            place=room.place,
            connection_id=link.connection_id,
            now=self._desk.stamp(),
            # A hosted conversation moves between machines: none of their habits can be relied on.
            server_version="" if link.endpoint.kind == "hosted" else link.version,
            server_life=link.life,
            deduplicates=False if link.endpoint.kind == "hosted" else None,
            fence=fence,
            second=second,
            queue=queue,
            loop=loop,
            history=history,
            ends=(*await self._noted(room, sends), *room.ends),
        )

    async def _noted(self, room: Room, sends: list[Send]) -> tuple[EndNote, ...]:
        """What a keeper saw of turns whose end is not known here; nothing where there is none to ask."""
        keeper = self._desk.config.keeper
        unended = [send for send in sends if send.outcome not in ENDED]
        if keeper is None or not unended or room.turn.active:
            return ()
        place, since = room.place, min(send.created.wall for send in unended)
        try:
            async with asyncio.timeout(NOTES_SECONDS):
                notes = await keeper.ends_since(place.agent_id, place.conversation_id, since)
        except (KeeperTrouble, TimeoutError) as trouble:
            log.info("the keeper's notes cannot be had: %r", trouble)
            return ()
        return noted_ends(notes, unended)

    def apply(self, room: Room, reading: Reading) -> bool:
        """Commit the verdicts of a reading; whether one of them asks for another reading."""
        basis = dict(room.sends)
        verdicts = reconcile(tuple(basis.values()), reading, self._policy)
        for verdict in verdicts:
            self._commit(room, verdict, basis[verdict.client_message_id])
        reached("reconcile.after_verdicts")
        self._publisher.touch()
        return any(verdict.again for verdict in verdicts)

    def offline(self, room: Room) -> None:
        """Verdicts while there is no connection: nothing is judged, what was not written is offered."""
        self.refresh(room)
        for verdict in reconcile(tuple(room.sends.values()), None, self._policy):
            room.verdicts[verdict.client_message_id] = verdict
        self._publisher.touch()

    def _commit(self, room: Room, verdict: Verdict, basis: Send) -> None:
        key = verdict.client_message_id
        try:
            send = self._desk.ledger.judge(
                basis,
                delivery=verdict.delivery,
                outcome=verdict.outcome,
                evidence=verdict.evidence,
                sentence=verdict.sentence,
                terminal=verdict.terminal,
            )
        except LedgerError as error:
            log.warning("verdict on %s not stored: %s", key, error.words)
            return
        if send.sentence in RAN_AGAIN and basis.sentence not in RAN_AGAIN:
            room.twice += 1
        if send.outcome == "ended_unseen" and basis.outcome != "ended_unseen":
            room.unseen += 1
        if send.delivery == "delivered" and room.sends.get(key, send).delivery != "delivered":
            reached("turn.delivered")
        room.sends[key] = send
        if send.attempts == basis.attempts:
            room.verdicts[key] = verdict
        else:
            room.verdicts.pop(key, None)  # another window has gone on with it: this is about what it was

    async def _sync(self, link: Link, room: Room) -> None:
        frame = await ask(link.client, commands.sync(room.runtime))
        if self._desk.link is not link:
            raise AskFailed("The connection changed meanwhile.")
        self._events.catch_up(link, frame.arrival)
