"""One row of the transcript while it is being built; :meth:`Entry.row` is what the view gets."""

from __future__ import annotations

from typing import Literal

from letta_tui.conversation.content import is_json
from letta_tui.conversation.growing import GrowingText
from letta_tui.conversation.pieces import Piece
from letta_tui.conversation.places import SendState
from letta_tui.seam.state import Row, RowKind, ToolState, ToolView

GONE = "no longer in the server's history"
UNKEPT = "not kept in the server's history"
RAN_TWICE = "the server restarted and ran this twice"

_CHECKED_ARGUMENTS = (
    65_536  # beyond this length growing arguments are not parsed to see whether they are whole
)

_TERMINAL: frozenset[ToolState] = frozenset({"done", "failed", "denied", "closed"})
# What the server writes as the result of a call it closed itself (an interrupt, a lost client).
_CLOSED_WORDS = (
    "interrupted by user",
    "user interrupted",
    "interrupted the stream",
    "tool call was cancelled",
)

Decider = Literal["you", "another window", "the config", "elsewhere", "the server"]
Decision = tuple[Literal["allow", "deny"], Decider, str]  # behaviour, who, reason


class Tool:
    """The state of one tool call, from whatever order its frames and history rows come in."""

    __slots__ = (
        "broke",
        "call_id",
        "complete",
        "decision",
        "edited",
        "failed",
        "finished",
        "name",
        "parts",
        "result",
        "seconds",
        "size",
        "started",
        "state",
        "told",
    )

    def __init__(self, call_id: str) -> None:
        self.call_id = call_id
        self.name = ""
        self.parts: list[str] = []  # of the arguments
        self.size = 0  # their length
        self.told = 0  # their length when the view was last told
        self.complete = False  # the arguments are whole
        self.edited = False  # the arguments are those that ran, told by client_tool_start
        self.state: ToolState = "requested"
        self.result = ""
        self.failed = False
        self.finished = False
        self.broke = False  # the stream said so; history may call the same end a success
        self.decision: Decision | None = None
        self.started: float | None = None
        self.seconds: float | None = None

    @property
    def settled(self) -> bool:
        return self.state in _TERMINAL

    @property
    def arguments(self) -> str:
        if len(self.parts) > 1:
            self.parts = ["".join(self.parts)]
        return self.parts[0] if self.parts else ""

    def _set_arguments(self, text: str, *, complete: bool) -> None:
        self.parts, self.size, self.complete = [text], len(text), complete

    def fragment(self, name: str, text: str, *, request: bool) -> None:
        """A call of the stream: whole, or a piece of its arguments (then the name may come once).

        ``request``: an approval request, which repeats the whole call.
        """
        if name and not self.name:
            self.name = name
        if not text or self.edited:
            return
        if not self.parts or (request and len(text) >= self.size and is_json(text)):
            self._set_arguments(text, complete=is_json(text))
        elif not self.complete:
            self.parts.append(text)
            self.size += len(text)
            if text.rstrip().endswith("}") and self.size <= _CHECKED_ARGUMENTS:
                self.complete = is_json(self.arguments)

    @property
    def worth_telling(self) -> bool:
        """Growing arguments are told in steps of an eighth, so that long ones stay cheap."""
        return self.complete or self.size < 256 or self.size - self.told > self.told // 8

    def whole_call(self, name: str, arguments: str) -> None:
        """The call as history has it. What ran after an edit is kept: history has the original."""
        self.name = name or self.name
        if arguments and not self.edited:
            self._set_arguments(arguments, complete=True)

    def start(self, name: str, arguments: str, when: float | None) -> None:
        if name:
            self.name = name
        if arguments and arguments != self.arguments:
            self.edited = self.complete
            self._set_arguments(arguments, complete=True)
        if self.started is None:
            self.started = when
        self.move("running")

    def output(self, text: str) -> None:
        """The output so far: cumulative, so a shorter one is old."""
        if not self.finished and len(text) >= len(self.result):
            self.result = text
        self.move("running")

    def finish(self, *, failed: bool, when: float | None) -> None:
        self.failed = self.broke = failed
        if not self.settled and when is not None and self.started is not None:
            self.seconds = max(0.0, when - self.started)
        self._end()

    def returned(self, text: str, *, failed: bool) -> None:
        self.finished = True
        self.failed = failed or self.broke
        self.result = text
        self._end()

    def close(self) -> None:
        """Its turn is over and no result exists."""
        if not self.settled:
            self.state = "closed"

    def decide(self, decision: Decision) -> None:
        if self.decision is not None and self.decision[1] == "you" and decision[1] != "you":
            return
        self.decision = decision
        if self.settled:
            if self.state != "closed" or decision[0] == "deny":  # a yes is no result
                self._end()
        elif decision[0] == "deny":
            self.state = "denied"
        elif self.state == "awaiting":
            self.state = "requested"

    def move(self, state: ToolState) -> None:
        """A step forward that is not an end; never back from one."""
        if not self.settled and not (state == "awaiting" and self.state == "running"):
            self.state = state

    def _end(self) -> None:
        behavior, who, _ = self.decision or ("", "", "")
        # Of others it is only known that they answered; ours is told when it has counted.
        if behavior == "deny" and (who == "you" or self.failed or not self.finished):
            self.state = "denied"
        elif not self.failed:
            self.state = "done"
        elif any(words in self.result.lower()[:200] for words in _CLOSED_WORDS):
            self.state = "closed"
        else:
            self.state = "failed"

    def sign(self) -> tuple[object, ...]:
        """Changes when the view of it does."""
        return self.name, self.size, self.arguments, self.state, self.result, self.decision

    def view(self) -> ToolView:
        self.told = self.size
        behavior, who, reason = self.decision or ("", "", "")
        if self.state == "closed":
            who, reason = "", self.result if self.failed else ""
        elif behavior == "deny" and not reason and who not in ("you", "another window"):
            reason = self.result  # of what was decided here the ledger has the reason, or there was none
        return ToolView(
            call_id=self.call_id,
            name=self.name,
            arguments=self.arguments,
            state=self.state,
            result=self.result,
            decided_by=who,
            reason=reason if self.state in ("denied", "closed") else "",
            seconds=self.seconds,
        )


class Entry:
    """``born`` and ``final_at`` are clocks of the transcript's frame counter; see ``Transcript.mark``."""

    __slots__ = (
        "born",
        "cmid",
        "confirmed_at",
        "dirty",
        "echoed",
        "exact",
        "final_at",
        "history_id",
        "in_history",
        "key",
        "kind",
        "marks",
        "otid",
        "own",
        "run_id",
        "send",
        "text",
        "tool",
        "when",
    )

    def __init__(self, key: str, kind: RowKind, born: int) -> None:
        self.key = key
        self.kind: RowKind = kind
        self.born = born
        self.text = GrowingText()
        self.tool: Tool | None = None
        self.when: float | None = None
        self.send: SendState | None = None
        self.marks: tuple[str, ...] = ()
        self.own = False  # a row of this client's (notice, error): history never has it
        self.in_history = False
        self.history_id = ""
        self.confirmed_at = -1  # clock of the newest request for history that had it
        self.run_id = ""
        self.otid = ""
        self.final_at: int | None = born  # None while it may grow
        self.exact = True  # known to equal history
        self.echoed = False
        self.cmid: str | None = None
        self.dirty = False

    @property
    def live(self) -> bool:
        if self.tool is not None:
            return not self.tool.settled
        return self.final_at is None

    def mark(self, words: str, on: bool = True) -> None:
        if (words in self.marks) != on:
            self.marks = (*self.marks, words) if on else tuple(m for m in self.marks if m != words)
            self.dirty = True

    def take(self, piece: Piece) -> None:
        """What stream and history both say of a row, besides its text."""
        if self.when is None and piece.when is not None:
            self.when = piece.when
            self.dirty = True

    def row(self) -> Row:
        send = self.send
        note = send.note if send is not None and send.delivery in ("delivered", "unconfirmed") else ""
        return Row(
            key=self.key,
            kind=self.kind,
            text=self.text.text,
            live=self.live,
            when=self.when,
            client_message_id=send.client_message_id if send else self.cmid,
            delivery=send.delivery if send else None,
            outcome=send.outcome if send else "none",
            tool=self.tool.view() if self.tool else None,
            marks=(*self.marks, note) if note and note not in self.marks else self.marks,
        )
