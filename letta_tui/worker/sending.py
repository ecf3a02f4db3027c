"""The send path: on disk first, one write at a time, and only evidence moves a message on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Literal

from letta_tui.conversation.reconcile import same_id_is_safe
from letta_tui.ledger.errors import LedgerError, StaleAttempt
from letta_tui.ledger.values import Attempt, Evidence, EvidenceKind, Send
from letta_tui.protocol import commands
from letta_tui.seam.intents import ResolveSend, Submit
from letta_tui.seam.updates import DraftLoaded, SubmitSettled
from letta_tui.transport.client import NoAnswer
from letta_tui.transport.connection import ConnectionLost, TransportError
from letta_tui.worker.crashpoints import reached
from letta_tui.worker.desk import Desk, Link
from letta_tui.worker.events import Events
from letta_tui.worker.publishing import Publisher
from letta_tui.worker.room import Room

log = logging.getLogger(__name__)

ACK_SECONDS = 30.0


class Sender:
    """``check`` asks for a reading of everything open, when an answer stayed out. ``fresh`` says, before a
    message is committed to be written, whether the connection still leads anywhere."""

    def __init__(self, desk: Desk, events: Events, publisher: Publisher) -> None:
        self._desk = desk
        self._events = events
        self._publisher = publisher
        self._wake = asyncio.Event()
        self.check: Callable[[], None] = lambda: None
        self.fresh: Callable[[Link, str], Awaitable[bool]] = _always

    def poke(self) -> None:
        """Something changed that may let a held message go."""
        self._wake.set()

    # --- from the composer ---

    def submit(self, intent: Submit) -> None:
        """First commit. Until ``SubmitSettled`` says ok the text is the composer's."""
        desk, room = self._desk, self._desk.room
        if not intent.text.strip():
            desk.put(SubmitSettled(intent.token, False, error="There is nothing to send."))
            return
        if room is None:
            words = "There is no conversation yet; your text stays here."
            desk.put(SubmitSettled(intent.token, False, error=words))
            return
        if room.blocked:
            desk.put(SubmitSettled(intent.token, False, error=room.blocked))
            return
        key = intent.client_message_id or desk.new_id()
        reached("submit.before_prepare")
        try:
            send = desk.ledger.prepare(
                room.place, intent.text, key, anchor=room.anchor(), window_id=desk.config.window_id
            )
        except LedgerError as error:
            desk.put(SubmitSettled(intent.token, False, error=error.words))
            return
        reached("submit.after_prepare")
        self._take(room, send)
        self._clear_draft(room, intent.text)
        room.notes = []  # the person has gone on
        self._publisher.flush()  # its row first, or for a moment the text would be nowhere on the screen
        desk.put(SubmitSettled(intent.token, True, client_message_id=key))
        self.poke()

    def _clear_draft(self, room: Room, text: str) -> None:
        """What has just been submitted is no draft any more; the composer saves what it holds next."""
        ledger, window = self._desk.ledger, self._desk.config.window_id
        try:
            draft = ledger.draft(window, room.place)
            if draft is not None and draft.text.strip() == text.strip():
                ledger.save_draft(window, room.place, "")
        except LedgerError as error:
            log.warning("the draft is not cleared: %s", error.words)

    def _take(self, room: Room, send: Send) -> None:
        room.sends[send.client_message_id] = send
        room.released.add(send.client_message_id)

    # --- the writer ---

    async def run(self, link: Link) -> None:
        """Write what may be written, one after the other, as long as the connection lasts."""
        while True:
            self._wake.clear()
            room = self._desk.room
            send = self._next(room) if room is not None else None
            if room is None or send is None:
                await self._wake.wait()
                continue
            await self._write(link, room, send)

    def _next(self, room: Room) -> Send | None:
        if not self._publisher.may_write(room):
            return None
        waiting = self._publisher.waiting(room)
        for key, send in room.sends.items():
            if send.delivery == "prepared" and key in room.released and key not in waiting:
                return send
        return None

    async def _write(self, link: Link, room: Room, send: Send, consent: Evidence | None = None) -> None:
        """Second commit, the write, and the answer."""
        desk, key = self._desk, send.client_message_id
        if not await self.fresh(link, key):
            return
        request_id = desk.new_id()
        reached("send.before_attempt")
        try:
            attempt = desk.ledger.begin_attempt(
                key,
                request_id=request_id,
                connection_id=link.connection_id,
                expected_attempts=len(send.attempts),
                server_version=link.version,
                server_life=link.life,
                consent=consent,
            )
        except StaleAttempt:
            # Another window was first: what it did is in the ledger.
            self._reload(room, key)
            room.released.discard(key)
            return
        except LedgerError as error:
            room.released.discard(key)
            desk.tell(error.words, "error")
            self._publisher.touch()
            return
        reached("send.after_attempt" if attempt.number == 1 else "resend.after_attempt")
        room.verdicts.pop(key, None)  # it is on its way again: what was offered before is over
        self._reload(room, key)
        if not self._stands(link, room, attempt):
            return
        if room.turn.active:
            room.behind.add(key)
        self._publisher.touch()
        command = commands.create_message(
            room.runtime, send.text, key, client_toolset=room.toolset, request_id=request_id
        )
        try:
            frame = await link.client.request(command, ACK_SECONDS, on_written=lambda: self._written(attempt))
        except NoAnswer:
            self.check()
            return
        except ConnectionLost as lost:
            self._events.observe(
                link, None, key, "connection_lost", request_id=request_id, payload={"words": lost.reason}
            )
            self._publisher.touch()
            return
        except TransportError as error:
            self._events.observe(
                link, None, key, "write_failed", request_id=request_id, payload={"words": error.words}
            )
            self._publisher.touch()
            return
        reached("send.after_accept")
        answer = frame.input_accepted
        if answer is None:
            self.check()
            return
        first = attempt.number == 1
        kind: EvidenceKind
        if answer.accepted:
            kind = "ack" if first else "ack_repeat"
        else:
            kind = "refused" if first else "refused_repeat"
        self._events.observe(
            link,
            frame,
            key,
            kind,
            request_id=request_id,
            payload={"disposition": answer.disposition or "", "words": answer.error},
        )
        reached("send.after_accept_recorded")
        room.released.discard(key)
        if answer.disposition == "started":
            room.behind.discard(key)
        self._publisher.touch()
        if kind != "ack":
            self.check()

    def _stands(self, link: Link, room: Room, attempt: Attempt) -> bool:
        """Whether what was committed may still be written.

        Not when time passed since (the machine slept: what was safe then need not be now). The connection is
        given up, because only on a new one can be shown that nothing was written on this one.
        """
        desk, key = self._desk, attempt.client_message_id
        try:
            if desk.ledger.attempt_stands(attempt):
                return True
        except LedgerError as error:
            desk.tell(error.words, "error")
        send = self._reload(room, key)
        room.released.discard(key)
        if send is not None and send.attempts and send.attempts[-1].number == attempt.number:
            words = "Too much time passed before it could be sent; nothing was sent."
            self._events.observe(
                link, None, key, "write_failed", request_id=attempt.request_id, payload={"words": words}
            )
            desk.tasks.spawn(link.client.close(), "reconnect")
        self._publisher.touch()
        return False

    def _written(self, attempt: Attempt) -> None:
        reached("send.after_write")
        try:
            self._desk.ledger.written(attempt)
        except LedgerError as error:
            log.warning("the write of %s is not recorded: %s", attempt.client_message_id, error.words)

    def _reload(self, room: Room, key: str) -> Send | None:
        send = self._desk.ledger.send(key)
        if send is not None:
            room.sends[key] = send
        return send

    # --- the person's choices about open sends ---

    def resolve(self, intent: ResolveSend) -> None:
        """Carry out a choice of the recovery card; everything is recorded as the person's choice."""
        desk, room, key = self._desk, self._desk.room, intent.client_message_id
        send = desk.ledger.send(key)
        if room is None or send is None:
            desk.tell("That message is not known here any more.", "warning")
            return
        try:
            self._resolve(room, send, intent)
        except StaleAttempt:
            desk.tell("Another window has just dealt with that message.", "warning")
        except LedgerError as error:
            desk.tell(error.words, "error")
        self._reload(room, key)
        self._publisher.touch()
        self.poke()

    def _resolve(self, room: Room, send: Send, intent: ResolveSend) -> None:
        desk, key = self._desk, send.client_message_id
        action = intent.action
        offered = self._offered(room, key)
        if action == "check":
            self.check()
        elif action == "copy":
            return  # the view copies; nothing happens to the message
        elif action not in offered and not (action == "edit" and send.delivery == "prepared"):
            desk.tell("That is not possible for this message now.", "warning")
        elif action == "send" and send.delivery == "prepared":
            if send.salvaged:
                self._spawn_write(room, send, self._consent("send", room, key))
            else:
                room.released.add(key)
        elif action == "resend" and not same_id_is_safe(send, desk.stamp(), desk.config.policy):
            # The offer grew old while it was on the screen; a new reading says what is possible now.
            desk.tell("Too much time has passed to send it again without a risk; checking anew.", "warning")
            self.check()
        elif action in ("resend", "send") and send.attempts:
            self._spawn_write(room, send, self._consent(action, room, key))
        elif action == "send_new":
            new = desk.ledger.prepare(
                room.place,
                intent.text or send.text,
                desk.new_id(),
                anchor=room.anchor(),
                window_id=desk.config.window_id,
                supersedes=key,
                consent=self._consent("send_new", room, key),
            )
            reached("resend_new.after_supersede")
            self._take(room, new)
        elif action == "edit":
            if intent.text.strip() and intent.text != send.text:
                new = desk.ledger.prepare(
                    room.place,
                    intent.text,
                    desk.new_id(),
                    anchor=room.anchor(),
                    window_id=desk.config.window_id,
                    supersedes=key,
                    consent=self._consent("edit", room, key),
                )
                self._take(room, new)
                return
            self._to_composer(room, send, "edit")
        elif action == "discard":
            desk.ledger.discard(key, self._consent("discard", room, key))
            room.released.discard(key)

    def _spawn_write(self, room: Room, send: Send, consent: Evidence) -> None:
        link = self._desk.link
        if link is None or not room.ready:
            self._desk.tell(
                "There is no connection to the server now; choose again when there is.", "warning"
            )
            return
        self._desk.tasks.spawn(self._write(link, room, send, consent), "send again")

    def take_back(self, key: str) -> bool:
        """Cancel a message that is held here, back into the composer. False when it is not held."""
        room = self._desk.room
        send = room.sends.get(key) if room is not None else None
        if room is None or send is None or send.delivery != "prepared":
            return False
        self.taken_back(send)
        self.poke()
        return True

    def taken_back(self, send: Send) -> None:
        """A message this window asked to cancel is out of every queue: its text is the composer's again."""
        desk, room = self._desk, self._desk.room
        if room is None:
            return
        try:
            self._to_composer(room, send, "cancelled")
        except LedgerError as error:
            desk.tell(error.words, "error")
        self._reload(room, send.client_message_id)
        self._publisher.touch()

    def _to_composer(self, room: Room, send: Send, why: Literal["edit", "cancelled"]) -> None:
        """The text is in the draft before it leaves the ledger's open rows: never in neither place.

        Raises ``LedgerError``; the message is then where it was.
        """
        desk, key = self._desk, send.client_message_id
        window = desk.config.window_id
        draft = desk.ledger.draft(window, room.place)
        text = f"{draft.text}\n{send.text}" if draft is not None and draft.text else send.text
        desk.ledger.save_draft(window, room.place, text)
        reached("edit.after_draft")
        desk.ledger.discard(key, self._consent("edit" if why == "edit" else "cancel", room, key))
        room.released.discard(key)
        desk.put(DraftLoaded(send.text, why))

    @staticmethod
    def _offered(room: Room, key: str) -> frozenset[str]:
        send = room.sends.get(key)
        verdict = room.verdict(send) if send is not None else None
        if verdict is None or key in room.checking:
            return frozenset()
        return frozenset(offer.action for offer in verdict.offers)

    def _consent(self, choice: str, room: Room, key: str) -> Evidence:
        verdict = room.verdicts.get(key)
        risk = next((o.risk for o in verdict.offers if o.action == choice), "") if verdict else ""
        return Evidence(kind="person", stamp=self._desk.stamp(), payload={"choice": choice, "risk": risk})


async def _always(link: Link, key: str) -> bool:
    return True
