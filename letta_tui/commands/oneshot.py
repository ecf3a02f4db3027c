"""One message through the worker without a screen: submit it, or find it again, and watch it to its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from letta_tui.commands.answers import Answer, answer_to, is_row_of
from letta_tui.seam.channel import WorkerPort
from letta_tui.seam.intents import ResolveSend, Submit
from letta_tui.seam.state import Action, ApprovalView, ConnectionView, QuestionView, Row, SendView, StatusView
from letta_tui.seam.updates import (
    ApprovalsChanged,
    Closed,
    ConnectionChanged,
    NeedsSetup,
    Notice,
    QuestionChanged,
    RecoveryChanged,
    SendsChanged,
    StatusChanged,
    SubmitSettled,
    TextAppended,
    TranscriptChanged,
    Update,
)

Ending = Literal[
    "ended", "approval", "question", "refused", "no_connection", "undecided", "timeout", "closed"
]

_ROW_SECONDS = 5.0  # how long the history row is waited for once the turn has ended
_HOLD_SECONDS = 15.0  # how long the keeper has for its word, which is asked for when a card waits

_SETTLED = frozenset({"done", "cancelled", "failed", "ended_unseen"})
_JUDGED = frozenset(
    {"rejected", "cancelled", "failed", "vanished", "unknown", "superseded", "discarded", "redacted"}
)


@dataclass(frozen=True, slots=True)
class Result:
    """How watching ended. ``words`` says why when it was not the turn's own end."""

    ending: Ending
    words: str = ""
    approvals: tuple[ApprovalView, ...] = ()


class Oneshot:
    """``known``: the ledger has the message already, so nothing is submitted unless it was never sent.
    ``over``: its turn had ended and it was delivered, so only the answer is to be read.
    ``keeper``: one is asked to hold the conversation, so that a card can wait for a person there.
    """

    def __init__(
        self,
        port: WorkerPort,
        message_id: str,
        text: str,
        *,
        known: bool = False,
        over: bool = False,
        keeper: bool = False,
    ) -> None:
        self._over = over
        self._keeper = keeper
        self._port = port
        self._id = message_id
        self._text = text
        self._known = known
        self._asked = False
        self._over_since = 0.0
        self.ended_at = 0.0  # wall clock: its turn was seen to have ended
        self.connections = 0
        self._carded_since = 0.0
        self._changed = threading.Event()
        self.rows: list[Row] = []
        self.connection = ConnectionView(phase="starting", words="")
        self.status = StatusView()
        self.send: SendView | None = None
        self.approvals: tuple[ApprovalView, ...] = ()
        self.question: QuestionView | None = None
        self.trouble = ""  # the last error the worker told
        self.notes: list[str] = []  # what was rebuilt, and what could not be
        self._result: Result | None = None

    def watch(self, seconds: float | None) -> Result:
        """Go on until the turn has ended, a person is needed, or ``seconds`` have passed."""
        deadline = None if seconds is None else time.monotonic() + seconds
        self._port.on_update(self._changed.set)
        try:
            while True:
                self._changed.clear()
                for update in self._port.drain():
                    self._apply(update)
                result = self._result or self._judge()
                if result is not None:
                    return result
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    ready = self.connection.phase == "ready"
                    return Result("timeout", "" if ready else self.connection.words)
                self._changed.wait(0.5 if left is None else min(left, 0.5))
        finally:
            self._port.on_update(None)

    def answer(self, together: Iterable[str] = ()) -> Answer:
        """What the agent said in answer. ``together``: other inputs that ran in the same turn."""
        return answer_to(self._id, self.rows, together)

    def _stored_whole(self) -> bool:
        return bool(self.answer().text) and not any(row.live for row in self.rows)

    # --- what came ---

    def _apply(self, update: Update) -> None:
        match update:
            case TranscriptChanged():
                apply_splices(self.rows, update)
            case TextAppended(key, text):
                append_text(self.rows, key, text)
            case ConnectionChanged(connection):
                self.connections += connection.phase == "ready" and self.connection.phase != "ready"
                self.connection = connection
            case StatusChanged(status):
                self.status = status
            case SendsChanged(items):
                self.send = next((s for s in items if s.client_message_id == self._id), None)
            case ApprovalsChanged(items):
                self.approvals = items
            case QuestionChanged(question):
                self.question = question
            case RecoveryChanged(recovery) if recovery is not None:
                self.notes += [note for note in recovery.notes if note not in self.notes]
            case NeedsSetup(reason):
                self._result = Result("refused", f"{reason} Start letta-tui once to set it up.")
            case SubmitSettled(_, ok, _, error) if not ok:
                self._result = Result("refused", error)
            case Notice(text, "error"):
                self.trouble = text
            case Closed(error, _):
                self._result = Result("closed", error or self.trouble)
            case _:
                pass

    # --- what it means ---

    def _judge(self) -> Result | None:
        """The end, if this is one; asks the worker to send when it is time."""
        if self.question is not None:
            body = self.question.body
            if self._known:  # it was sent before: only why it cannot be found now is true of it
                body = body.partition(" Nothing was sent")[0]
            return Result("question", f"{self.question.title}. {body}")
        if self._over and self.connection.phase in ("lost", "failed") and self._stored_whole():
            return Result("ended")  # as it was stored here; the server need not be waited for
        if self.connection.phase == "failed":
            return Result("no_connection", self.connection.words)
        if self.connection.phase != "ready":
            return None
        if not self._known:
            if self._asked:
                return self._progress()
            if not self.connection.can_send:
                return Result("refused", self.connection.why_not) if self.connection.why_not else None
            self._asked = True
            self._port.send(Submit("send", self._text, self._id))
            return None
        return self._progress()

    def _progress(self) -> Result | None:
        row = next((row for row in self.rows if row.kind == "user" and is_row_of(self._id, row)), None)
        if self._over and self.send is None:
            return Result("ended")
        delivery = self.send.delivery if self.send else row.delivery if row else None
        outcome = self.send.outcome if self.send else row.outcome if row else "none"
        if self._known and self.send is not None and self.send.choices:
            return self._choose(self.send)
        if delivery in _JUDGED:
            return Result("undecided", self.send.explanation if self.send else "")
        if outcome in _SETTLED:
            # Only the row of the history makes it "delivered"; it is read right after the turn.
            now = time.monotonic()
            if not self._over_since:
                self._over_since, self.ended_at = now, time.time()
            if delivery == "delivered" or now - self._over_since > _ROW_SECONDS:
                return Result("ended")
            return None
        self._over_since = 0.0
        if self.approvals and outcome in ("running", "awaiting_approval"):
            now = time.monotonic()
            self._carded_since = self._carded_since or now
            waits = self._keeper and not self.connection.held and not any(a.own for a in self.approvals)
            if not waits or now - self._carded_since > _HOLD_SECONDS:
                return Result("approval", approvals=self.approvals)
        return None

    def _choose(self, send: SendView) -> Result | None:
        """Running the same id again asks for what cannot run it twice, and for nothing else."""
        if self._asked:
            return (
                None
                if send.delivery in ("prepared", "unconfirmed")
                else Result("undecided", send.explanation)
            )
        offered = {choice.action: choice.risk for choice in send.choices}
        action: Action
        if send.delivery == "prepared" and offered.get("send") == "":
            action = "send"  # stored by a run that died before it wrote a byte
        elif "resend" in offered:
            action = "resend"  # only offered while the server is certain to know the id again
        else:
            return Result("undecided", send.explanation)
        self._asked = True
        self._port.send(ResolveSend(self._id, action))
        return None


def apply_splices(rows: list[Row], update: TranscriptChanged) -> None:
    """Bring ``rows`` up to date, in place."""
    if update.reset:
        rows.clear()
    for splice in update.splices:
        rows[splice.start : splice.start + splice.delete] = splice.rows


def append_text(rows: list[Row], key: str, text: str) -> None:
    """Add to the text of the row ``key``; the result of a tool is not needed here."""
    for index in range(len(rows) - 1, -1, -1):
        if rows[index].key == key:
            if rows[index].tool is None:
                rows[index] = replace(rows[index], text=rows[index].text + text)
            return


def headline(approvals: Sequence[ApprovalView]) -> str:
    """What waits, in one line."""
    first = approvals[0]
    more = f" and {len(approvals) - 1} more" if len(approvals) > 1 else ""
    return f"{first.headline or first.tool_name}{more}"
