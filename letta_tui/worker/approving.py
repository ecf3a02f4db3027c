"""Approval decisions: recorded before they are written, bound to one request, done when the state says so."""

from __future__ import annotations

from typing import Literal

from letta_tui.ledger.errors import LedgerError
from letta_tui.ledger.values import Approval, ApprovalState
from letta_tui.protocol import commands
from letta_tui.seam.intents import Decide
from letta_tui.transport.client import NoAnswer
from letta_tui.transport.connection import TransportError
from letta_tui.worker.crashpoints import reached
from letta_tui.worker.desk import Desk
from letta_tui.worker.publishing import Publisher
from letta_tui.worker.room import Room

# The server hands a denial's words to the model as the call's bare result, so they have to say what they are.
DENIED = "The person denied this call and gave no reason."
DENIED_BECAUSE = "The person denied this call. Reason: {reason}"
ANSWER_SECONDS = 30.0
NOT_SENT = "The decision was not sent: there is no settled connection now."
BY_CONFIG = "the config"  # in the place of a window's name

By = Literal["you", "the config"]


class Decider:
    def __init__(self, desk: Desk, publisher: Publisher) -> None:
        self._desk = desk
        self._publisher = publisher

    async def decide(self, intent: Decide, by: By = "you") -> None:
        """Write a decision: the person's, or what the config file says."""
        desk, room, link = self._desk, self._desk.room, self._desk.link
        if room is None or link is None or not room.ready or room.blocked:
            desk.tell(NOT_SENT, "warning")
            if room is not None and room.approvals.unsent(intent.request_id, NOT_SENT):
                self._publisher.repeat_approvals()
            return
        view = room.approvals.get(intent.request_id)
        if view is None or not room.approvals.deciding(intent.request_id):
            desk.tell("That request no longer waits for a decision.", "warning")
            self._publisher.touch()
            return
        self._publisher.touch()
        input_id = desk.new_id()
        reached("approval.before_record")
        try:
            desk.ledger.decide(
                room.place,
                intent.request_id,
                tool_call_id=view.tool_call_id,
                tool_name=view.tool_name,
                decision=intent.behavior,
                message=intent.message,
                suggestion_ids=intent.suggestion_ids,
                window_id=desk.config.window_id if by == "you" else BY_CONFIG,
            )
        except LedgerError as error:
            room.approvals.undecided(intent.request_id, error.words)
            desk.tell(error.words, "error")
            self._publisher.touch()
            return
        reached("approval.after_record")
        if intent.behavior == "allow":
            command = commands.allow(
                room.runtime,
                intent.request_id,
                suggestion_ids=intent.suggestion_ids,
                message=intent.message or None,
                request_id=input_id,
            )
        else:
            words = DENIED_BECAUSE.format(reason=intent.message) if intent.message else DENIED
            command = commands.deny(room.runtime, intent.request_id, words, request_id=input_id)

        def written() -> None:
            self._moved(room, intent.request_id, "written", input_id, link.connection_id)
            reached("approval.after_write")

        try:
            frame = await link.client.request(command, ANSWER_SECONDS, on_written=written)
        except NoAnswer as silent:
            room.approvals.undecided(intent.request_id, silent.words)
            self._publisher.touch()
            return
        except TransportError as lost:
            # Whether it arrived is seen from the pending list after the reconnect.
            room.approvals.undecided(intent.request_id, lost.words)
            self._publisher.touch()
            return
        reached("approval.after_answer")
        answer = frame.input_accepted
        if answer is not None and answer.accepted:
            self._moved(room, intent.request_id, "acknowledged", input_id, link.connection_id)
            desk.put(*room.transcript.decided(view.tool_call_id, intent.behavior, by, intent.message))
        else:
            words = (
                answer.error
                if answer is not None and answer.error
                else "The server did not take the decision."
            )
            self._moved(room, intent.request_id, "refused", input_id, link.connection_id, words)
            room.approvals.refused(intent.request_id, words)
            desk.tell(f"The server did not take the decision: {words}", "warning")
        self._publisher.touch()

    def recover(self, room: Room) -> list[str]:
        """After a reconnect: what became of decisions whose answer was never seen, as notes."""
        desk = self._desk
        notes: list[str] = []
        waiting = {view.request_id for view in room.approvals.pending}
        newest = {approval.request_id: approval for approval in desk.ledger.approvals(room.place)}
        for approval in newest.values():
            try:
                if approval.request_id in waiting:
                    notes.append(self._asked_again(room, approval))
                elif approval.state in ("decided", "written"):
                    notes.append(self._resolved(room, approval))
                self._show(room, approval)
            except LedgerError as error:
                desk.tell(error.words, "error")
        return [note for note in notes if note]

    def _asked_again(self, room: Room, approval: Approval) -> str:
        """Still pending after a reconnect, whatever was said to the decision: it did not count."""
        if approval.state not in ("decided", "written", "acknowledged"):
            return ""
        room.approvals.undecided(approval.request_id)
        self._desk.ledger.approval_moved(room.place, approval.request_id, "lost")
        if approval.state == "acknowledged":
            return (
                f"The server took your decision about {approval.tool_name} and still waits for one; "
                "you are asked again."
            )
        return f"Your decision about {approval.tool_name} did not arrive; you are asked again."

    def _show(self, room: Room, approval: Approval) -> None:
        """Who decided, on the row of a call that is known from history alone."""
        now = self._desk.ledger.approval(room.place, approval.request_id)
        if now is not None and now.state == "acknowledged":
            by: By = "the config" if now.window_id == BY_CONFIG else "you"
            self._desk.put(*room.transcript.decided(now.tool_call_id, now.decision, by, now.message))

    def _resolved(self, room: Room, approval: Approval) -> str:
        """It no longer waits. Whose word counted is told by the tool's row, when there is one."""
        row = next(
            (
                row.tool
                for row in reversed(room.transcript.rows)
                if row.tool is not None and row.tool.call_id == approval.tool_call_id
            ),
            None,
        )
        closed = row is not None and row.state == "closed"
        took = row is not None and (
            (approval.decision == "allow" and row.state in ("running", "done"))
            or (approval.decision == "deny" and row.state in ("denied", "failed"))
        )
        state = "acknowledged" if took and not closed else "closed_by_server"
        if state == "acknowledged":
            self._desk.ledger.approval_moved(room.place, approval.request_id, "acknowledged")
            return ""
        self._desk.ledger.approval_moved(room.place, approval.request_id, "closed_by_server")
        return f"{approval.tool_name} no longer waits: the server closed it before your decision counted."

    def _moved(
        self,
        room: Room,
        request_id: str,
        state: ApprovalState,
        input_id: str,
        connection_id: str,
        words: str = "",
    ) -> None:
        try:
            self._desk.ledger.approval_moved(
                room.place,
                request_id,
                state,
                input_request_id=input_id,
                connection_id=connection_id,
                words=words,
            )
        except LedgerError as error:
            self._desk.tell(error.words, "error")
