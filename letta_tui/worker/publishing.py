"""From the room's state to what the view shows: at most once per turn of the loop, and only what changed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from letta_tui.conversation.card import card, ran_again, remark
from letta_tui.conversation.places import SendState
from letta_tui.conversation.reconcile import Held, held
from letta_tui.conversation.words import busy_note, recovery_view
from letta_tui.ledger.errors import LedgerError
from letta_tui.ledger.transitions import AT_REST, IN_FLIGHT
from letta_tui.ledger.values import Send
from letta_tui.seam.state import ApprovalView, QueueItemView, SendView
from letta_tui.seam.updates import ApprovalsChanged, QueueChanged, SendsChanged
from letta_tui.worker.desk import Desk
from letta_tui.worker.room import Room

_HELD_WORDS = {
    "unconfirmed": "Waits until an earlier message is confirmed.",
    "unknown": "Waits until you have decided about an earlier message.",
    "order": "Waits behind an earlier message.",
    "queue_long": "Waits here because the server's queue is long.",
}

ASKS = "Waiting for your decision"  # about a call that the server takes for running
OLD_CARD = (
    "Asked over an earlier connection: if that one is gone, the tool cannot be run even when you allow it, "
    "and the agent is told so."
)


class Publisher:
    """``touch`` after any change; the updates go out at the end of the current step of the loop."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._scheduled = False
        self._approvals: tuple[ApprovalView, ...] | None = ()
        self._queue: tuple[QueueItemView, ...] = ()
        self._known: dict[str, bool] = {}  # client message ids seen in the queue: is it in the ledger?
        self._sends: tuple[SendView, ...] = ()

    def touch(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self.flush)

    def forget(self) -> None:
        """Another conversation: whatever was shown is to be shown anew."""
        self._approvals, self._queue, self._sends = (), (), ()
        self._known.clear()
        self._desk.put(ApprovalsChanged(()), QueueChanged(()), SendsChanged(()))
        self._desk.set_recovery(None)

    def repeat_approvals(self) -> None:
        """Say what waits although it may not have changed: the view has taken a decision for made."""
        self._approvals = None
        self.touch()

    def flush(self) -> None:
        self._scheduled = False
        desk, room = self._desk, self._desk.room
        if room is None:
            return
        waiting = self.waiting(room)
        states = self._states(room, waiting)
        for key, state in states.items():
            if room.shown.get(key) != state:
                room.shown[key] = state
                desk.put(*room.transcript.put_send(state))
        self._put_approvals(room)
        # What an earlier life of the program left unsent waits for the person, not in a queue.
        waits = [s for k, s in states.items() if s.delivery != "prepared" or k in room.released]
        queue = room.queue.views(waits, self._of_other_windows(room))
        if queue != self._queue:
            self._queue = queue
            desk.put(QueueChanged(queue))
        views = tuple(self.view_of(room, send, waiting) for send in room.sends.values() if self._open(send))
        if views != self._sends:
            self._sends = views
            desk.put(SendsChanged(views))
        self._put_recovery(room, views)
        turn = room.turn
        desk.set_status(
            activity="approval" if room.asks else turn.activity,
            activity_words=ASKS if room.asks else turn.activity_words,
            turn_started=turn.started,
            tokens=turn.tokens if turn.tokens is not None else desk.status.tokens,
        )

    def _of_other_windows(self, room: Room) -> set[str]:
        """Queued messages that the shared ledger knows, though not this window. Each is looked up once."""
        for key in room.queue.client_message_ids:
            if key not in room.sends and key not in self._known:
                try:
                    self._known[key] = self._desk.ledger.send(key) is not None
                except LedgerError:
                    self._known[key] = False
        return {key for key, known in self._known.items() if known}

    def waiting(self, room: Room) -> dict[str, Held]:
        """Prepared sends of this window that have to wait, by id (rule 7)."""
        considered = [
            send
            for send in room.sends.values()
            if send.delivery != "prepared" or send.client_message_id in room.released
        ]
        found = held(considered, queue_length=len(room.queue.client_message_ids))
        return {item.client_message_id: item for item in found}

    def may_write(self, room: Room) -> bool:
        """Whether a message may go to the server now, as far as connection and conversation are concerned."""
        desk = self._desk
        safe = desk.config.keeper is None or room.held or room.hold_given_up
        return desk.link is not None and room.ready and not room.blocked and safe

    def _goes_now(self, room: Room, send: Send, waiting: dict[str, Held]) -> bool:
        """Prepared, and about to be written: shown as being sent, so that it does not flicker as waiting."""
        key = send.client_message_id
        released = send.delivery == "prepared" and key in room.released
        return released and key not in waiting and self.may_write(room)

    def view_of(self, room: Room, send: Send, waiting: dict[str, Held]) -> SendView:
        key = send.client_message_id
        verdict = room.verdict(send)
        return card(
            send,
            verdict,
            checking=key in room.checking
            or (send.delivery in IN_FLIGHT and verdict is None and not room.ready),
            released=send.delivery == "prepared" and key in room.released,
            going=self._goes_now(room, send, waiting),
        )

    @staticmethod
    def _open(send: Send) -> bool:
        return send.delivery not in AT_REST or ran_again(send)

    def _states(self, room: Room, waiting: dict[str, Held]) -> dict[str, SendState]:
        states: dict[str, SendState] = {}
        for key, send in room.sends.items():
            if self._goes_now(room, send, waiting):
                states[key] = replace(state_of(send), delivery="unconfirmed", behind=room.turn.active)
                continue
            held_here = send.delivery == "prepared"
            note = ""
            if held_here:
                item = waiting.get(key)
                note = _HELD_WORDS[item.why] if item is not None else ""
                if not note:
                    note = _why_prepared(room)
            state = state_of(send)
            note = note or state.note
            states[key] = replace(state, behind=key in room.behind, held=held_here, note=note)
        return states

    def _put_approvals(self, room: Room) -> None:
        servers = (_card(room, view) for view in room.approvals.pending if view.request_id not in room.auto)
        pending = (*servers, *room.asks)
        if pending != self._approvals:
            self._approvals = pending
            self._desk.put(*room.transcript.awaiting([view.tool_call_id for view in pending]))
            self._desk.put(ApprovalsChanged(pending))

    def _put_recovery(self, room: Room, views: Sequence[SendView]) -> None:
        checking = not room.ready or bool(room.checking)
        told = [
            view for view in views if view.choices or (checking and view.client_message_id in room.checking)
        ]
        if room.settled_once and not room.approvals.pending:
            decided = busy_note(approval=True)
            room.notes = [note for note in room.notes if note != decided]
        if room.settled_once and not told and not room.notes:
            self._desk.set_recovery(None)
            return
        self._desk.set_recovery(
            recovery_view(told, checking=checking, relaunched=room.relaunched, notes=tuple(room.notes))
        )


def _card(room: Room, view: ApprovalView) -> ApprovalView:
    """A card of the server, with what is to be known when it is about a tool of the person's own."""
    if view.tool_name not in room.own_tools:
        return view
    note = view.note or (OLD_CARD if view.request_id in room.old_cards else "")
    return replace(view, own=True, note=note)


def state_of(send: Send) -> SendState:
    """A ledger row as the reducers want it."""
    return SendState(
        client_message_id=send.client_message_id,
        text=send.text,
        delivery=send.delivery,
        outcome=send.outcome,
        when=send.created.wall,
        otid=send.otid,
        note=remark(send),
    )


def _why_prepared(room: Room) -> str:
    if room.blocked:
        return room.blocked
    if not room.ready:
        return "Waits for the connection."
    return ""
