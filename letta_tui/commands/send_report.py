"""What ``letta-tui send`` says about a message: exit code, one sentence, or an object for a program."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from letta_tui.commands.answers import Answer
from letta_tui.commands.errors import APPROVAL_NEEDED, FAILED, OK, TURN_FAILED
from letta_tui.commands.errors import UNKNOWN_DELIVERY as UNKNOWN
from letta_tui.commands.oneshot import Result, headline
from letta_tui.commands.output import plain
from letta_tui.ledger.transitions import ENDED
from letta_tui.ledger.values import KEPT_OF_THE_END, Send

_NOT_DELIVERED = {
    "prepared": "is stored and was not sent",
    "rejected": "was refused",
    "cancelled": "was taken back from the queue",
    "failed": "was not delivered: its turn failed before the server kept it",
    "discarded": "was discarded before it was delivered",
    "superseded": "was sent again under another id",
    "redacted": "was erased here before it was delivered",
}

_NOT_KEPT = "The answer was received, but the server's history does not have it."


@dataclass(frozen=True, slots=True)
class Report:
    """What is said about the message, from the ledger's row (``None`` when it was never stored).

    ``stopped``: this command ended the turn. ``stopped_for``: what the card wanted for which the turn was
    ended, now or in an earlier run. ``reachable``: the server was there at the end. ``notes``: what was
    rebuilt.
    """

    result: Result
    send: Send | None
    reply: Answer
    stopped: bool = False
    stopped_for: str = ""
    reachable: bool = True
    notes: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """As it stands in the transcript, else as it was received when the turn ended."""
        return self.reply.text or ("" if self.reply.acted or self.cut else self.received or "")

    @property
    def received(self) -> str | None:
        """The last words of the turn, heard until its end; the ledger keeps the beginning of them. None: they
        were not heard whole."""
        text = (self.send.terminal or {}).get("final_text") if self.send is not None else None
        return text if isinstance(text, str) else None

    @property
    def cut(self) -> bool:
        return len(self.received or "") >= KEPT_OF_THE_END

    @property
    def said(self) -> tuple[str, ...]:
        """What a person is told besides the answer."""
        lost = self.code == OK and self.answer and not self.reply.text
        return (*self.notes, *((_NOT_KEPT,) if lost else ()))

    @property
    def code(self) -> int:
        """The exit code: the truth about the message, not about the connection."""
        send = self.send
        if send is None or send.delivery in _NOT_DELIVERED:
            return FAILED
        if self.result.ending == "approval" or (send.outcome == "cancelled" and self.stopped_for):
            return APPROVAL_NEEDED
        if send.delivery != "delivered":
            return UNKNOWN  # said of the turn only with the history's row in hand
        if send.outcome == "done":
            silent = self.reply.acted or self.received == ""
            return OK if self.answer or (self.reachable and silent) else UNKNOWN
        if send.outcome in ("failed", "cancelled"):
            return TURN_FAILED
        if send.outcome == "ended_unseen" and self.reachable:
            return OK if self.answer else TURN_FAILED
        return UNKNOWN

    def words(self) -> str:
        """One sentence for a person."""
        send, result = self.send, self.result
        if send is None:
            return result.words or "The message was not sent."
        name = f"message {send.client_message_id}"
        if self.code == APPROVAL_NEEDED:
            if self.stopped_for:
                what = plain(self.stopped_for, 120)
                end = "Nobody could answer it here, so it was not run and the turn was stopped"
                return f"A tool call needed approval: {what}. {end} ({name})."
            what = plain(headline(result.approvals), 120)
            return f"A tool call waits for approval: {what}. Start letta-tui to answer it ({name})."
        error = plain(server_words(str((send.terminal or {}).get("error") or "")), 300)
        if self.code == TURN_FAILED:
            how = "was cancelled" if send.outcome == "cancelled" else "failed"
            if send.outcome == "ended_unseen":
                how = "ended unseen, without a reply"
            return f"The message was delivered, but its turn {how}" + (f": {error}." if error else ".")
        again = f"Run the same again with --id ({name})."
        if self.code == UNKNOWN:
            why = f" {result.words}" if result.words else ""
            if send.delivery in ("unconfirmed", "unknown", "vanished"):
                return f"Nobody can say whether the server has it.{why} {again}"
            if send.outcome == "done" and send.delivery == "delivered":
                ended = "Its turn ended" if self.received is None else "It was answered"
                if self.reachable:
                    return f"{ended}, but the server's history has nothing of an answer now.{why} {again}"
                return f"{ended}, but the answer cannot be read now.{why} {again}"
            if send.outcome in ENDED:
                return f"Its turn is over, but it was not found in the server's history yet.{why} {again}"
            if result.ending == "question":
                seen = f"`letta-tui explain {send.client_message_id}` tells what was seen of it."
                return f"{why.strip()} How the turn of {name} ended is not known: {seen}"
            lead = result.words or "No end within the time given."
            goes_on = self.reachable and result.ending == "timeout"
            end = "The turn goes on." if goes_on else "How its turn ends is not known."
            return f"{lead} {'The turn was stopped.' if self.stopped else end} {again}"
        why = plain(result.words or error, 300)
        what = f"{_NOT_DELIVERED[send.delivery]}{f': {why}' if why else '.'}"
        return f"The message {what} Its id is {send.client_message_id}."

    def data(self, message_id: str) -> dict[str, Any]:
        """The report for a program."""
        send = self.send
        terminal = dict(send.terminal or {}) if send is not None else {}
        seconds = terminal.get("duration")
        return {
            "success": self.code == OK,
            "result": self.answer or None,
            "stop_reason": terminal.get("stop_reason") or None,
            "duration_ms": round(seconds * 1000) if isinstance(seconds, int | float) else None,
            "run_ids": list(send.run_ids) if send is not None else [],
            "agent": send.place.agent_id if send is not None else None,
            "conversation": send.place.conversation_id if send is not None else None,
            "client_message_id": message_id,
            "delivery": send.delivery if send is not None else None,
            "turn": send.outcome if send is not None else None,
            "waiting_for": [a.tool_name for a in self.result.approvals],
            "error": None if self.code == OK else self.words(),
            "exit_code": self.code,
            "notes": list(self.said),
        }


def server_words(error: str) -> str:
    """The sentence inside an error that comes wrapped in layers of JSON, some with a number before."""
    for _ in range(6):
        start = error.find("{")
        try:
            found: Any = json.loads(error[start:]) if start >= 0 else None
        except ValueError:
            break
        while isinstance(found, dict):
            found = found.get("message") or found.get("error") or found.get("detail")
        if not isinstance(found, str):
            break
        error = found
    return error.strip().rstrip(".")
