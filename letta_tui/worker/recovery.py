"""Recovery, in order: open, snapshot, history, decisions, verdicts; only then anything may be sent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from letta_tui.conversation import words
from letta_tui.ledger.transitions import AT_REST
from letta_tui.protocol import commands, names
from letta_tui.seam.state import Row
from letta_tui.worker.approving import Decider
from letta_tui.worker.away import AWAY, AWAY_HEAD, MEANWHILE, Away, by_history, summary, while_away
from letta_tui.worker.config import Target
from letta_tui.worker.desk import AskFailed, Desk, Link, ask
from letta_tui.worker.events import Events
from letta_tui.worker.history import History
from letta_tui.worker.judging import Judge
from letta_tui.worker.opening import NotOpened, Opener
from letta_tui.worker.picking import CreateIt, OpenIt, PickAgent
from letta_tui.worker.ports import KeeperTrouble
from letta_tui.worker.publishing import Publisher
from letta_tui.worker.room import Room
from letta_tui.worker.sending import Sender
from letta_tui.worker.toolbox import Toolbox

log = logging.getLogger(__name__)

BACKGROUND_ROWS = 600  # loaded without being asked for; the rest when the person scrolls there


class Recovery:
    def __init__(
        self,
        desk: Desk,
        opener: Opener,
        events: Events,
        history: History,
        judge: Judge,
        decider: Decider,
        sender: Sender,
        publisher: Publisher,
        toolbox: Toolbox,
    ) -> None:
        self._desk = desk
        self._opener = opener
        self._events = events
        self._history = history
        self._judge = judge
        self._decider = decider
        self._sender = sender
        self._publisher = publisher
        self._toolbox = toolbox
        self.check: Callable[[], None] = lambda: None

    async def run(self, link: Link, wish: OpenIt | CreateIt | None, target: Target) -> None:
        """Open what is wished for (else what the command line and the ledger say) and recover it."""
        desk = self._desk
        desk.set_connection(
            phase="recovering",
            words="Checking what happened.",
            can_send=desk.room is not None and not desk.room.blocked,
            why_not="" if desk.room is not None else "The conversation is not open yet.",
        )
        before = desk.room
        known = before.transcript.rows if before is not None else ()
        try:
            room = await self._open(link, wish, target)
        except NotOpened:
            return
        desk.set_question(None)
        if desk.config.keeper is not None:
            desk.tasks.spawn(self._hold(link, room), "hold")
        await self._history.newest(link, room)
        await self._recover_approvals(link, room)
        room.notes = [*self._decider.recover(room), *self._toolbox.recover(room), *room.restored]
        room.restored = []
        if desk.config.keeper is not None:
            await self._while_away(room)
        self._judge.refresh(room)
        # What was written before the history was read is judged first; the rest has nothing to be judged by.
        if room.sends:
            await self._judge.settle(link, room)
        if room.settled_once and desk.config.keeper is not None:
            await self._meanwhile(room)
        if room is before and not room.told_away:
            self._told_by_history(room, known)
        if desk.link is not link or desk.room is not room:
            return
        self._tell_findings(room)
        room.ready = True
        room.missed_since = None
        room.settled_once = True
        self._connected(link, room)
        self._toolbox.ready(room)
        self._publisher.touch()
        self._sender.poke()
        await self._keep(room)
        if self._judge.is_behind(room):
            self.check()  # its turn ended while it was being looked for
        await self._background(link, room)

    def _tell_findings(self, room: Room) -> None:
        """Each finding is told once: what ran twice, what ended unseen, what goes on."""
        if room.twice:
            room.notes.append(words.twice_note(room.twice))
        if room.unseen and not room.told_away:
            room.notes.append(words.unseen_note(room.unseen))
        room.twice = room.unseen = 0
        room.told_away = False
        told = any("your decision" in note for note in room.notes)
        if room.relaunched and not room.settled_once and room.approvals.pending and not told:
            room.notes.append(words.busy_note(approval=True))

    def _connected(self, link: Link, room: Room) -> None:
        where = link.endpoint.shown
        version = f" (version {link.version})" if link.version else ""
        self._desk.set_connection(
            phase="ready",
            words=f"Connected to {where}{version}.",
            server_version=link.version,
            retry_at=None,
            can_send=not room.blocked,
            why_not=room.blocked,
        )

    async def _open(self, link: Link, wish: OpenIt | CreateIt | None, target: Target) -> Room:
        if wish is not None:
            return await self._opener.open(link, wish)
        chosen = self._opener.choose(link, target)
        if isinstance(chosen, PickAgent):
            picked = await self._opener.pick_agent(link, chosen)
            if isinstance(picked, PickAgent):
                raise NotOpened
            chosen = picked
        return await self._opener.open(link, chosen)

    async def _recover_approvals(self, link: Link, room: Room) -> None:
        """Only where the state calls for it: the loop waits for an approval that nobody can see.

        Approval recovery stages denials for what the server cannot find, so it is asked for once.
        """
        stuck = (
            room.loop is not None
            and room.loop.status == names.WAITING_ON_APPROVAL
            and room.device is not None
            and not room.device.pending
            and not room.approvals.pending
        )
        if not stuck:
            return
        frame = await ask(link.client, commands.sync(room.runtime, recover_approvals=True))
        self._events.catch_up(link, frame.arrival)

    async def _hold(self, link: Link, room: Room) -> None:
        """Have the keeper stay subscribed too; the first message waits for its word, but not for ever.

        Asked again and again: a keeper that was killed holds nothing, and the question starts a new one.
        """
        desk, keeper = self._desk, self._desk.config.keeper
        assert keeper is not None
        began = desk.config.hands.mono()
        why, patience = "", desk.config.hold_wait
        while desk.link is link and desk.room is room:
            try:
                held = await keeper.hold(room.place.agent_id, room.place.conversation_id)
                if desk.link is not link or desk.room is not room:
                    return
                if held:
                    if not room.held:
                        room.held, room.hold_given_up = True, False
                        desk.set_connection(held=True)
                        self._sender.poke()
                    await asyncio.sleep(desk.config.hold_again)
                    began = desk.config.hands.mono()
                    continue
            except KeeperTrouble as trouble:
                why = f" {trouble.words}"
                if trouble.lasting:
                    patience = 0.0  # waiting changes nothing
            if room.held and desk.link is link and desk.room is room:
                room.held = False
                desk.set_connection(held=False)
            if not room.hold_given_up and desk.config.hands.mono() - began >= patience:
                room.hold_given_up = True
                desk.set_connection(held=False)
                desk.tell(
                    f"No keeper holds this conversation: a turn ends when this window does.{why}", "warning"
                )
                self._sender.poke()
            await asyncio.sleep(1.0)

    async def _while_away(self, room: Room) -> None:
        """What the keeper saw after this client last looked, as a line in the transcript and on the card."""
        desk, keeper = self._desk, self._desk.config.keeper
        assert keeper is not None
        remembered = desk.ledger.conversation(room.place)
        seen = remembered.state.get("seen_at") if remembered is not None else None
        if not room.relaunched or room.settled_once:
            return
        since = float(seen) if isinstance(seen, int | float) else None
        try:
            notes = await keeper.ends_since(room.place.agent_id, room.place.conversation_id, since or 0.0)
        except KeeperTrouble:
            return
        found = while_away(notes, since)
        waiting = [approval.tool_name for approval in room.approvals.pending]
        said = summary(found, waiting=waiting, now=desk.now())
        if said and found.left is not None:
            room.notes.append(said)
            room.told_away = True
            desk.put(*room.transcript.away(said, found.left))

    async def _meanwhile(self, room: Room) -> None:
        """The same after a connection that was lost, or a window that stood still: the keeper was there."""
        desk, keeper, since = self._desk, self._desk.config.keeper, room.missed_since
        assert keeper is not None
        if since is None:
            return
        try:
            notes = await keeper.ends_since(room.place.agent_id, room.place.conversation_id, since)
        except KeeperTrouble:
            return
        found = Away(since, tuple(note for note in notes if note.what != "left"))
        waiting = [approval.tool_name for approval in room.approvals.pending]
        said = summary(found, waiting=waiting, now=desk.now(), head=MEANWHILE)
        if not said:
            return
        room.notes.append(said)
        room.told_away = True
        if desk.now() - since >= AWAY:
            desk.put(*room.transcript.away(said, since))

    def _told_by_history(self, room: Room, known: Sequence[Row]) -> None:
        """The same where no keeper was, or where it was cut off together with this window."""
        desk, since, head = self._desk, room.missed_since, MEANWHILE
        if not room.settled_once:
            remembered = desk.ledger.conversation(room.place) if room.relaunched else None
            seen = remembered.state.get("seen_at") if remembered is not None else None
            since, head = (float(seen) if isinstance(seen, int | float) else None), AWAY_HEAD
        if since is None or room.turn.active or room.approvals.pending:
            return
        now = desk.now()
        later = None if room.settled_once else since
        notes = by_history(known, room.transcript.rows, room.place, now, later=later)
        said = summary(Away(since, notes), now=now, head=head)
        if not said:
            return
        room.notes.append(said)
        room.told_away = True
        if not room.settled_once or now - since >= AWAY:
            desk.put(*room.transcript.away(said, since))

    async def _background(self, link: Link, room: Room) -> None:
        """Some pages above the first, so that scrolling up a little does not wait for the server."""
        try:
            while desk_is_on(self._desk, link, room) and len(room.transcript.rows) < BACKGROUND_ROWS:
                if not await self._history.older(link, room):
                    return
                await asyncio.sleep(0.05)
        except AskFailed as failed:
            log.info("older rows not loaded: %s", failed.words)

    async def _keep(self, room: Room) -> None:
        """Store the newest rows for the next start, beside the loop: the file may be slow."""
        desk, cache = self._desk, self._desk.cache
        erasings = await asyncio.to_thread(cache.erasings)
        rows = desk.rows_to_keep(room)
        if rows:
            await asyncio.to_thread(cache.store, room.place, rows, desk.now(), erasings)

    async def after_turn(self, link: Link, room: Room) -> None:
        """A turn is over: its rows are read from history, and what they prove is recorded."""
        self._judge.refresh(room)
        if any(
            send.delivery not in AT_REST
            or send.outcome in ("none", "running")
            # Written on an earlier connection, and its turn ended on this one: a server that had
            # crashed may have run it again, which only its second row in history tells.
            or (send.attempts and send.attempts[-1].connection_id != link.connection_id)
            for send in room.sends.values()
        ):
            await self._judge.settle(link, room, quiet=True)
        else:
            await self._history.newest(link, room)
        if room.turn.overdue(self._desk.now()):
            self._events.settle_turn(link, room)
        room.unseen = 0  # this window was here
        self._tell_findings(room)
        self._publisher.flush()  # the rest is shown before the row is let go
        self._judge.forget_rested(room)
        self._sender.poke()
        self._publisher.touch()
        if desk_is_on(self._desk, link, room):
            await self._keep(room)
            self._desk.ledger.remember_conversation(
                room.place, state={"seen_at": self._desk.now()}, used=False
            )


def desk_is_on(desk: Desk, link: Link, room: Room) -> bool:
    return desk.link is link and desk.room is room
