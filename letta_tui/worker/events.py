"""The event plane: every frame goes through the reducers once, and what it proves is written down."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from letta_tui.conversation.approvals import Settled
from letta_tui.conversation.reconcile import EndNote, QueueRead
from letta_tui.conversation.turn import TurnEnd
from letta_tui.ledger.errors import IllegalMove, LedgerError
from letta_tui.ledger.values import KEPT_OF_THE_END, Evidence, EvidenceKind, Place, Send
from letta_tui.protocol import Delta, DeviceStatus, Frame, LoopStatus, QueueState
from letta_tui.protocol.events import ControlRequest
from letta_tui.seam.state import TurnOutcome
from letta_tui.seam.updates import Attention
from letta_tui.worker.crashpoints import reached
from letta_tui.worker.desk import Desk, Link
from letta_tui.worker.publishing import Publisher, state_of
from letta_tui.worker.room import Room

log = logging.getLogger(__name__)

WEDGE = "already has an active run"  # in the server's words, when a cut-off turn left its run open
INTERRUPTED = "Interrupted"  # the status of a turn that somebody stops, before it ends

_ENDS: dict[TurnOutcome, EvidenceKind] = {
    "done": "turn_done",
    "cancelled": "turn_cancelled",
    "failed": "turn_failed",
}


class Events:
    """``turn_over`` is called when a turn ended, an error named an input, or one that is not known here began
    to run: history is to be read."""

    def __init__(self, desk: Desk, publisher: Publisher) -> None:
        self._desk = desk
        self._publisher = publisher
        self.turn_over: Callable[[], None] = lambda: None
        self.device_changed: Callable[[DeviceStatus], None] = lambda device: None
        self.queue_changed: Callable[[], None] = lambda: None
        self.taken_back: Callable[[Send], None] = lambda send: None
        self.cancel_arrived: Callable[[str], None] = lambda key: None
        self.wedged: Callable[[str], None] = lambda words: None
        self.tool_called: Callable[[Link, Frame], None] = lambda link, frame: None
        self.tool_returned: Callable[[Room, Delta], None] = lambda room, delta: None
        self.turn_stopped: Callable[[Place], None] = lambda place: None
        self.needs_nobody: Callable[[ControlRequest], bool] = lambda request: False
        self.waiting_elsewhere: dict[tuple[str, str], set[str]] = {}  # conversation → approval request ids

    async def pump(self, link: Link) -> None:
        """Take events until the connection ends (raises ``ConnectionLost``)."""
        async for frame in link.client.events():
            self.take(link, frame)

    def catch_up(self, link: Link, arrival: int) -> None:
        """Take what arrived before an answer, so that the reading it ends is complete."""
        for frame in link.client.take_before(arrival):
            self.take(link, frame)

    def take(self, link: Link, frame: Frame) -> None:
        room = self._desk.room
        if frame.external_tool_call is not None:
            self.tool_called(link, frame)
        if room is None or not room.is_about(frame.runtime):
            self._elsewhere(frame)
            return
        if room.connection_id != link.connection_id:
            return
        self._desk.put(*room.transcript.apply(frame))
        delta = frame.delta
        if delta is not None and delta.subagent_id is None:
            self._delta(link, room, frame, delta)
        self._queue(link, room, frame)
        self._loop(link, room, frame)
        for settled in room.approvals.apply(frame):
            self._settled(link, room, frame, settled)
        if frame.control_request is not None:
            reached("approval.seen")
            asked = frame.control_request
            for key in room.turn.client_message_ids:
                about = {"tool": asked.tool_name, "tool_call_id": asked.tool_call_id}
                self.observe(link, frame, key, "approval_asked", request_id=asked.request_id, payload=about)
            if not self.needs_nobody(frame.control_request):
                self._desk.call(
                    Attention("approval", f"{frame.control_request.tool_name} waits for your decision")
                )
        for end in room.turn.apply(frame, self._desk.now()):
            self._ended(link, room, frame, end)
        device = frame.device_status
        if device is not None:
            room.device = device
            self._desk.set_status(mode=device.mode or "", cwd=device.cwd or "")
            self.device_changed(device)
        if delta is None or delta.message_type not in ("assistant_message", "reasoning_message"):
            self._publisher.touch()

    def _delta(self, link: Link, room: Room, frame: Frame, delta: Delta) -> None:
        if delta.message_type == "user_message" and delta.otid in room.sends:
            self.observe(link, frame, delta.otid or "", "echo", run_id=delta.run_id or "")
        elif delta.message_type == "loop_error":
            for key in delta.client_message_ids:
                self.observe(link, frame, key, "loop_error", payload={"words": delta.message})
            if delta.client_message_ids:
                self.turn_over()
            if WEDGE in delta.message:
                self.wedged(delta.message)
        elif delta.message_type == "status" and delta.message == INTERRUPTED:
            self.turn_stopped(room.place)
        self.tool_returned(room, delta)

    def observe(
        self,
        link: Link | None,
        frame: Frame | None,
        key: str,
        kind: EvidenceKind,
        *,
        run_id: str = "",
        request_id: str = "",
        payload: dict[str, Any] | None = None,
    ) -> Send | None:
        """Record live evidence about one of our sends; others are ignored."""
        room = self._desk.room
        if room is None or (key not in room.sends and self._desk.ledger.send(key) is None):
            return None
        evidence = Evidence(
            kind=kind,
            stamp=self._desk.stamp(),
            connection_id=link.connection_id if link else "",
            event_seq=frame.event_seq if frame else None,
            idempotency_key=(frame.idempotency_key or "") if frame else "",
            run_id=run_id,
            request_id=request_id,
            server_life=link.life if link else "",
            payload=payload or {},
        )
        try:
            send = self._desk.ledger.observe(key, evidence)
        except LedgerError as error:
            # What was seen stays true although it could not be written; sending stops by itself.
            self._desk.tell(error.words, "error")
            return None
        if send is not None:
            before = room.sends.get(key)
            room.sends[key] = send
            if link is not None and before is not None and _reran(before, kind, link.life):
                return self.observe(link, frame, key, "server_reran", run_id=run_id) or send
        return send

    # --- what frames prove ---

    def _queue(self, link: Link, room: Room, frame: Frame) -> None:
        state = frame.queue
        removals = room.queue.apply(frame)
        if state is None:
            return
        ids = frozenset(item.client_message_id for item in state.items if item.client_message_id)
        room.queue_read = QueueRead(frame.arrival, ids)
        for key in ids:
            send = room.sends.get(key)
            if send is not None and send.delivery != "queued":
                self.observe(link, frame, key, "queue_seen", payload=_paused(state, key))
                reached("queue.seen")
                if key in room.cancel_asked:
                    self.cancel_arrived(key)
        for removal in removals:
            key = removal.client_message_id
            send = room.sends.get(key)
            if send is None:
                continue
            if removal.disposition == "dequeued":
                self.observe(link, frame, key, "dequeued")
                reached("queue.dequeued")
                continue
            seen = send.last.get("queue_seen")
            unbroken = seen is not None and seen.connection_id == link.connection_id
            moved = self.observe(link, frame, key, "removed" if unbroken else "removed_late")
            if key in room.cancel_asked:
                room.cancel_asked.discard(key)
                if moved is not None and moved.delivery == "cancelled":
                    self.taken_back(moved)
        self.queue_changed()

    def _loop(self, link: Link, room: Room, frame: Frame) -> None:
        status = frame.loop_status
        if status is not None:
            room.loop = status
            self._runs(link, room, frame, status)
        if status is not None or frame.device_status is not None:
            if frame.device_status is not None:
                room.device = frame.device_status
            room.loop_read = room.loop_now(frame.arrival)

    def _runs(self, link: Link, room: Room, frame: Frame, status: LoopStatus) -> None:
        for run, keys in status.client_message_ids_by_run_id.items():
            for key in keys:
                send = room.sends.get(key)
                if (run, key) in room.runs_seen:
                    continue
                if send is None:
                    if run in status.active_run_ids:
                        self._of_others(link, room, frame, run, key)
                    continue
                if run not in status.active_run_ids and send.delivery == "started":
                    continue  # a run that is over proves a start, and nothing about now
                room.runs_seen.add((run, key))
                room.behind.discard(key)
                self.observe(link, frame, key, "run_seen", run_id=run)
                reached("turn.started")

    def _of_others(self, link: Link, room: Room, frame: Frame, run: str, key: str) -> None:
        """What somebody else sent begins to run: the server tells nobody its text, and its reply is next."""
        room.runs_seen.add((run, key))
        send = self.observe(link, frame, key, "run_seen", run_id=run)
        if send is not None:  # another window of this client, whose ledger is this one
            self._desk.put(*room.transcript.put_send(state_of(send)))
        elif room.ready:
            self.turn_over()

    def _settled(self, link: Link, room: Room, frame: Frame, settled: Settled) -> None:
        for key in room.turn.client_message_ids:
            about = {"tool_call_id": settled.tool_call_id}
            self.observe(link, frame, key, "approval_settled", request_id=settled.request_id, payload=about)
        if settled.ours:
            return
        decided = self._desk.ledger.approval(room.place, settled.request_id)
        if decided is not None:
            # The ledger is shared by the windows of this client, so another of them has answered.
            self._desk.put(
                *room.transcript.decided(
                    settled.tool_call_id, decided.decision, "another window", decided.message
                )
            )
            verb = "allowed" if decided.decision == "allow" else "denied"
            self._desk.tell(f"Another window {verb} the tool call.")

    def settle_turn(self, link: Link, room: Room) -> None:
        """A reading found everything idle: a turn whose end frame was lost has ended."""
        for end in room.turn.settle(self._desk.now()):
            self._ended(link, room, None, end)

    def _ended(self, link: Link, room: Room, frame: Frame | None, end: TurnEnd) -> None:
        kind = _ENDS.get(end.outcome)
        terminal: dict[str, Any] = {
            "stop_reason": end.stop_reason,
            "error": end.error,
            "turn_id": end.turn_id,
            "run_ids": list(end.run_ids),
            "duration": end.duration,
            "final_text": None if end.final_text is None else end.final_text[:KEPT_OF_THE_END],
        }
        # The inputs of a turn are not always named; but a conversation has only one turn at a time.
        keys = end.client_message_ids or tuple(
            key
            for key, send in room.sends.items()
            if send.delivery == "started" and send.outcome in ("running", "awaiting_approval")
        )
        terminal["inputs"] = list(keys)
        if kind is not None:
            run_id = end.run_ids[-1] if end.run_ids else ""
            for key in keys:
                self._end_send(link, room, frame, key, end.outcome, run_id, terminal)
            if end.outcome in ("done", "cancelled", "failed"):
                room.ends.append(EndNote(keys, end.outcome, terminal, run_id))
                del room.ends[:-50]
        self.turn_stopped(room.place)  # nobody waits for a tool any more
        reached("turn.finished")
        title = self._desk.status.conversation_title or self._desk.status.agent_name
        if end.outcome == "failed":
            self._desk.call(Attention("failed", title))
        elif end.outcome == "done" and (end.duration or 0) >= self._desk.config.long_turn:
            self._desk.call(Attention("turn_ended", title))
        self.turn_over()

    def _end_send(
        self,
        link: Link,
        room: Room,
        frame: Frame | None,
        key: str,
        outcome: TurnOutcome,
        run_id: str,
        terminal: dict[str, Any],
    ) -> None:
        if key not in room.sends:
            return
        kind = _ENDS[outcome]
        evidence = Evidence(
            kind=kind,
            stamp=self._desk.stamp(),
            connection_id=link.connection_id,
            event_seq=frame.event_seq if frame else None,
            idempotency_key=(frame.idempotency_key or "") if frame else "",
            run_id=run_id,
            server_life=link.life,
            payload={"stop_reason": terminal["stop_reason"]},
        )
        try:
            room.sends[key] = self._desk.ledger.move_outcome(key, outcome, evidence, terminal=terminal)
        except IllegalMove:
            self.observe(link, frame, key, kind, run_id=run_id)
        except LedgerError as error:
            self._desk.tell(error.words, "error")

    def _elsewhere(self, frame: Frame) -> None:
        """Other conversations: only which of them wait for a decision."""
        runtime = frame.runtime
        if runtime is None:
            return
        where = (runtime.agent_id or "", runtime.conversation_id)
        if frame.control_request is not None:
            self.waiting_elsewhere.setdefault(where, set()).add(frame.control_request.request_id)
        elif frame.device_status is not None:
            pending = {item.request_id for item in frame.device_status.pending}
            self.waiting_elsewhere[where] = pending


def _paused(state: QueueState, key: str) -> dict[str, Any]:
    return {"paused": any(item.paused for item in state.items if item.client_message_id == key)}


def _reran(before: Send, kind: EvidenceKind, life: str) -> bool:
    """Whether this sighting proves a second run: it had one in an earlier life of the server.

    History alone may not tell: a server that was killed early in a turn has not kept that turn's row.
    """
    if kind not in ("queue_seen", "echo", "run_seen") or "server_reran" in before.last:
        return False
    ran = before.last.get("run_seen")
    return ran is not None and bool(life) and bool(ran.server_life) and ran.server_life != life
