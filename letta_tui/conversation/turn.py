"""The turn: how it ends, apart from how the connection does.

A turn begins with work (a loop status that is busy, a delta of a run) and ends once: by ``turn_finished``;
or, when that was lost, by what its last run said, once everything has been idle for a while or the next
turn begins; or, when neither was seen, by an idle loop and device after a reconnect ("ended unseen"). A
queue echo or a late idle status between two turns is neither.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from letta_tui.conversation import content
from letta_tui.conversation.runtimes import concerns
from letta_tui.protocol import names
from letta_tui.protocol.events import Delta, LoopStatus, TurnFinished
from letta_tui.protocol.frames import Frame
from letta_tui.protocol.values import number
from letta_tui.seam.state import Activity, TurnOutcome

_DONE = frozenset({"end_turn", "tool_rule", "none", ""})
_ENDS_KEPT = 256
GRACE = 2.0  # seconds an end frame may come after everything was seen idle

_ACTIVITY: dict[str, Activity] = {
    "SENDING_API_REQUEST": "sending",
    "WAITING_FOR_API_RESPONSE": "waiting",
    "RETRYING_API_REQUEST": "retrying",
    "PROCESSING_API_RESPONSE": "streaming",
    "EXECUTING_CLIENT_SIDE_TOOL": "tool",
    "EXECUTING_COMMAND": "command",
    "WAITING_ON_APPROVAL": "approval",
}
ACTIVITY_WORDS: dict[Activity, str] = {
    "idle": "Ready",
    "sending": "Sending to the model",
    "waiting": "Waiting for the model",
    "streaming": "Answering",
    "tool": "Running a tool",
    "command": "Running a command",
    "approval": "Waiting for your decision",
    "retrying": "The model did not answer; trying again",
    "cancelling": "Stopping",
}


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """One ended turn, reported once. ``duration`` in seconds, None when its start was not seen.

    ``final_text``: its last words, "" when it said nothing; None when they were not heard from their
    beginning on one connection, so that only history can tell them.
    """

    outcome: TurnOutcome  # done, cancelled, failed, ended_unseen
    stop_reason: str
    error: str
    turn_id: str
    run_ids: tuple[str, ...]
    client_message_ids: tuple[str, ...]
    duration: float | None
    final_text: str | None


@dataclass(slots=True)
class _Current:
    """What is known of the turn that runs."""

    started: float | None
    run_ids: list[str] = field(default_factory=list)
    client_message_ids: list[str] = field(default_factory=list)
    stop_reason: str = ""  # of the last run; never requires_approval
    error: str = ""
    cancelled: bool = False
    worked: bool = False  # more was seen of it than a command, such as a change of the mode
    rested: float | None = None  # since when everything was seen idle, without an end frame
    text: list[str] = field(default_factory=list)
    text_of: str = ""  # the message ``text`` belongs to
    cut: bool = False  # something of ``text`` may be missing
    joined: bool = False  # in its middle, and nothing was said since: what comes may have begun before

    @property
    def final_text(self) -> str | None:
        return None if self.cut or self.joined else "".join(self.text)


def outcome_of(stop_reason: str, error: str = "") -> TurnOutcome:
    """``done``, ``cancelled`` or ``failed``."""
    if stop_reason in ("cancelled", "aborted", "interrupted"):
        return "cancelled"
    return "done" if stop_reason in _DONE and not error else "failed"


class Turn:
    """The current turn of one runtime. Times passed in are wall-clock seconds."""

    def __init__(self, agent_id: str, conversation_id: str) -> None:
        self._runtime = (agent_id, conversation_id)
        self._connection_id = ""
        self._current: _Current | None = None
        self._loop: LoopStatus | None = None
        self._processing: bool | None = None
        self._aborting = False
        self._ended: dict[str, None] = {}  # turn ids
        self._old_runs: dict[str, None] = {}  # runs of ended turns
        self._broken = False  # the turn was running when a connection ended
        self._tokens: int | None = None
        self._seen: set[object] = set()  # deltas of this turn and connection

    def connected(self, connection_id: str) -> None:
        """A new connection: nothing is known of the loop until its frames say so."""
        if connection_id == self._connection_id:
            return
        self._connection_id = connection_id
        self._loop, self._processing = None, None
        self._aborting = False
        self._seen.clear()
        self._old_runs.clear()  # run ids count from 1 again when the server restarts
        self._broken = self._current is not None
        if self._current is not None:
            self._current.cut = self._current.joined = True

    @property
    def active(self) -> bool:
        return self._current is not None

    @property
    def idle_known(self) -> bool:
        """This connection's loop and device status both say: waiting for input, nothing runs."""
        return self._loop is not None and self._loop.idle and self._processing is False

    @property
    def activity(self) -> Activity:
        if self._current is None:
            return "idle"
        if self._aborting:
            return "cancelling"
        status = self._loop.status if self._loop is not None else ""
        return _ACTIVITY.get(status, "waiting")

    @property
    def activity_words(self) -> str:
        activity = self.activity
        if activity == "tool" and self._loop is not None and len(self._loop.executing_tool_call_ids) > 1:
            return f"Running {len(self._loop.executing_tool_call_ids)} tools"
        return ACTIVITY_WORDS[activity]

    @property
    def started(self) -> float | None:
        """When the turn began; None when idle or joined in the middle."""
        return self._current.started if self._current is not None else None

    @property
    def run_ids(self) -> tuple[str, ...]:
        """Run ids of the current turn."""
        return tuple(self._current.run_ids) if self._current is not None else ()

    @property
    def client_message_ids(self) -> tuple[str, ...]:
        """Inputs the current turn consumed, as far as the server has said."""
        return tuple(self._current.client_message_ids) if self._current is not None else ()

    @property
    def tokens(self) -> int | None:
        """Context tokens of the last usage frame."""
        return self._tokens

    def aborting(self, on: bool = True) -> None:
        """``abort_message`` was sent; its end is awaited."""
        self._aborting = on and self._current is not None

    def apply(self, frame: Frame, now: float) -> tuple[TurnEnd, ...]:
        """Take any frame; returns the ends it brought, each turn's once."""
        if not concerns(frame, *self._runtime):
            return ()
        if (delta := frame.delta) is not None:
            if not delta.subagent_id and not self._repeated(frame, delta):
                self._delta(delta, now)
            return ()
        if (loop := frame.loop_status) is not None:
            return self._take_loop(loop, now)
        if (status := frame.device_status) is not None:
            self._processing = status.is_processing
            return self._rested(now)
        if (end := frame.turn_finished) is not None:
            return self._finished(end, content.error_text(frame.raw.get("error")), now)
        return ()

    @property
    def resting(self) -> bool:
        """Everything is idle but the turn's end was not seen: :meth:`settle` it after ``GRACE`` seconds."""
        return self._current is not None and self._current.rested is not None

    def overdue(self, now: float) -> bool:
        """It rests for so long that no end frame is to be expected any more."""
        current = self._current
        return current is not None and current.rested is not None and now - current.rested >= GRACE

    def settle(self, now: float) -> tuple[TurnEnd, ...]:
        """Call it when a whole reading found the runtime idle: a turn without an end frame has ended."""
        if self._current is None or not self.idle_known:
            return ()
        return self._close(now)

    def _repeated(self, frame: Frame, delta: Delta) -> bool:
        place = (delta.run_id, delta.seq_id) if delta.seq_id is not None else None
        names_of_it = [n for n in (frame.idempotency_key, place) if n is not None]
        repeated = any(n in self._seen for n in names_of_it)
        self._seen.update(names_of_it)
        return repeated

    def _begin(self, started: float | None) -> _Current:
        if self._current is None:
            self._current = _Current(started, joined=started is None)
            self._broken = False
        return self._current

    def _delta(self, delta: Delta, now: float) -> None:
        what = delta.message_type
        if what == "usage_statistics":
            tokens = number(delta.raw, "context_tokens")
            self._tokens = tokens if tokens is not None else number(delta.raw, "total_tokens")
            return
        run = delta.run_id or ""
        if what in ("user_message", "ping") or run in self._old_runs:
            return
        current = self._current
        if current is None:
            if not run or what not in _WORK:
                return
            current = self._begin(now if self._loop is not None else None)
        if run and run not in current.run_ids:
            current.run_ids.append(run)
            current.stop_reason = ""
        if what == "stop_reason":
            if delta.stop_reason != "requires_approval":
                current.stop_reason = delta.stop_reason or ""
        elif what in ("loop_error", "error_message"):
            if what == "error_message" or delta.is_terminal:
                current.error = delta.message
        elif what == "status" and delta.message == "Interrupted":
            current.cancelled = True
        elif what == "assistant_message":
            name = f"{run}:{delta.otid or delta.id}"
            if name != current.text_of:
                current.text_of, current.text = name, []
                current.cut = current.joined  # only the first one heard can have begun before
            current.joined = False
            current.text.append(content.text_of(delta.raw.get("content")))

    def _take_loop(self, loop: LoopStatus, now: float) -> tuple[TurnEnd, ...]:
        first, self._loop = self._loop is None, loop
        if loop.idle:
            return self._rested(now)
        if loop.status == names.WAITING_ON_INPUT:
            return ()
        runs = [r for r in loop.active_run_ids if r not in self._old_runs]
        if self._current is None and loop.active_run_ids and not runs:
            return ()  # a late frame of a turn whose end is known
        ends: tuple[TurnEnd, ...] = ()
        if self._current is not None and self._current.rested is not None:
            ends = self._close(now)
        if self._current is not None:
            self._current.rested = None
        # The first status of a connection that is busy already: the turn was joined in the middle.
        current = self._begin(None if first and self._processing else now)
        current.worked = current.worked or loop.status != names.EXECUTING_COMMAND
        if self._broken and runs:
            inputs = {sent for run in runs for sent in loop.client_message_ids_by_run_id.get(run, ())}
            if inputs and current.client_message_ids and not inputs & set(current.client_message_ids):
                # The server restarted and runs something else: the end of the other was not seen.
                ends = (*ends, self._end("ended_unseen", "", "", "", now))
                self._old_runs.clear()
                current = self._begin(None if first and self._processing else now)
            elif not set(runs) & set(current.run_ids):
                current.run_ids = []  # run ids mean nothing across a restart of the server
            self._broken = False
        for run in runs:
            if run not in current.run_ids:
                current.run_ids.append(run)
                current.stop_reason = ""
        for run in current.run_ids:
            for sent in loop.client_message_ids_by_run_id.get(run, ()):
                if sent not in current.client_message_ids:
                    current.client_message_ids.append(sent)
        return ends

    def _rested(self, now: float) -> tuple[TurnEnd, ...]:
        """Everything is idle: the end frame comes now (after an abort, late), or was lost."""
        current = self._current
        if current is None or not self.idle_known:
            return ()
        if not current.worked and not current.run_ids and not current.client_message_ids:
            return self._close(now)  # no turn: no end frame will come
        if self._broken or (current.rested is not None and now - current.rested >= GRACE):
            return self._close(now)
        if current.rested is None:
            current.rested = now
        return ()

    def _close(self, now: float) -> tuple[TurnEnd, ...]:
        """End a turn whose end frame was not seen."""
        current = self._current
        assert current is not None
        if self._broken:
            return (self._end("ended_unseen", "", "", "", now),)
        if current.stop_reason or current.error:
            stop = current.stop_reason or "error"
            return (self._end(outcome_of(stop, current.error), stop, current.error, "", now),)
        if current.cancelled or self._aborting:
            return (self._end("cancelled", "cancelled", "", "", now),)
        if not current.run_ids and not current.client_message_ids:
            self._end("ended_unseen", "", "", "", now)  # a status without any work: no turn
            return ()
        return (self._end("ended_unseen", "", "", "", now),)

    def _finished(self, end: TurnFinished, error: str, now: float) -> tuple[TurnEnd, ...]:
        if end.stop_reason == "requires_approval" or (end.turn_id and end.turn_id in self._ended):
            return ()  # the end of a run only, or told already
        if end.turn_id:
            self._ended[end.turn_id] = None
            if len(self._ended) > _ENDS_KEPT:
                del self._ended[next(iter(self._ended))]
        if end.run_id and end.run_id in self._old_runs:
            return ()  # the end of a turn that was already reported from its stop reason
        stop = end.stop_reason
        current = self._current
        if current is None:
            self._current = current = _Current(None, joined=True)
        if end.run_id and end.run_id not in current.run_ids:
            current.run_ids.append(end.run_id)
        self._tokens = number(end.usage, "context_tokens") or self._tokens
        error = end.error or error or (current.error if stop not in _DONE else "")
        return (self._end(outcome_of(stop, error), stop, error, end.turn_id, now),)

    def _end(self, outcome: TurnOutcome, stop: str, error: str, turn_id: str, now: float) -> TurnEnd:
        current = self._current
        assert current is not None
        self._current, self._aborting, self._broken = None, False, False
        self._seen.clear()
        for run in current.run_ids:
            self._old_runs[run] = None
        while len(self._old_runs) > _ENDS_KEPT:
            del self._old_runs[next(iter(self._old_runs))]
        return TurnEnd(
            outcome=outcome,
            stop_reason=stop,
            error=error,
            turn_id=turn_id,
            run_ids=tuple(current.run_ids),
            client_message_ids=tuple(current.client_message_ids),
            duration=max(0.0, now - current.started) if current.started is not None else None,
            final_text=current.final_text,
        )


_WORK = frozenset(
    {
        "assistant_message",
        "reasoning_message",
        "hidden_reasoning_message",
        "tool_call_message",
        "approval_request_message",
        "tool_return_message",
        "client_tool_start",
        "client_tool_end",
    }
)
