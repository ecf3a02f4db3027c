"""Tool calls that wait for a person, from device status snapshots and control requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from letta_tui.conversation.headlines import headline, pretty
from letta_tui.conversation.runtimes import concerns
from letta_tui.protocol.events import ControlRequest, Delta
from letta_tui.protocol.frames import Frame
from letta_tui.protocol.values import mappings, number, texts
from letta_tui.seam.state import ApprovalView, DiffHunk, DiffLine, DiffView, Suggestion

_STEPS_KEPT = 32


@dataclass(frozen=True, slots=True)
class Settled:
    """A request that is no longer pending. ``ours``: this client had an answer under way for it."""

    request_id: str
    tool_call_id: str
    ours: bool


@dataclass(slots=True)
class _Pending:
    request: ControlRequest
    state: Literal["pending", "deciding", "refused"] = "pending"
    note: str = ""


class Approvals:
    """The pending set of one runtime. Requests are the same when runtime and request id are."""

    def __init__(self, agent_id: str, conversation_id: str) -> None:
        self._runtime = (agent_id, conversation_id)
        self._pending: dict[str, _Pending] = {}
        self._steps: dict[str, list[str]] = {}  # tool calls of a run that need a person, in order
        self._calls: dict[str, list[str]] = {}  # tool calls of a run, in order
        self._keys: set[str] = set()
        self._connection_id = ""
        self._known = False

    def connected(self, connection_id: str) -> None:
        """A new connection: what was pending stays shown until its first snapshot (``known``)."""
        if connection_id != self._connection_id:
            self._connection_id = connection_id
            self._known = False
            self._keys.clear()

    @property
    def known(self) -> bool:
        """A device status of this connection was seen."""
        return self._known

    @property
    def pending(self) -> tuple[ApprovalView, ...]:
        """What waits for a person, in the server's order."""
        return tuple(self._view(n, p) for n, p in enumerate(self._pending.values()))

    @property
    def tool_call_ids(self) -> tuple[str, ...]:
        """Tool calls that wait for a person."""
        return tuple(p.request.tool_call_id for p in self._pending.values())

    def get(self, request_id: str) -> ApprovalView | None:
        return next((v for v in self.pending if v.request_id == request_id), None)

    def apply(self, frame: Frame) -> tuple[Settled, ...]:
        """Take any frame; returns what it settled. ``pending`` has the new state."""
        if not concerns(frame, *self._runtime):
            return ()
        status = frame.device_status
        if status is not None:
            self._known = True
            return self._snapshot(status.pending)
        request = frame.control_request
        if request is not None:
            if request.subtype in ("can_use_tool", "") and self._first_time(frame):
                self._pending.setdefault(request.request_id, _Pending(request))
            return ()
        delta = frame.delta
        if delta is not None and not delta.subagent_id:
            self._step(delta)
        return ()

    def deciding(self, request_id: str) -> bool:
        """A decision is being written; False when the request is not pending or already answered."""
        item = self._pending.get(request_id)
        if item is None or item.state == "deciding":
            return False
        item.state, item.note = "deciding", "Waiting for the server's word."
        return True

    def refused(self, request_id: str, words: str) -> None:
        """The server refused the decision: it may be answered again while it is in the snapshot."""
        item = self._pending.get(request_id)
        if item is not None:
            item.state, item.note = "refused", words

    def unsent(self, request_id: str, words: str) -> bool:
        """The decision could not be tried: it may be made again. False when another one is on its way."""
        item = self._pending.get(request_id)
        if item is None or item.state == "deciding":
            return False
        item.state, item.note = "refused", words
        return True

    def undecided(self, request_id: str, words: str = "") -> None:
        """The write was lost, or what became of it is not known: it is pending again."""
        item = self._pending.get(request_id)
        if item is not None:
            item.state, item.note = "pending", words

    def _first_time(self, frame: Frame) -> bool:
        """A request that was settled does not come back by a repeat of its event."""
        key = frame.idempotency_key
        if key is None:
            return True
        if key in self._keys:
            return False
        self._keys.add(key)
        return True

    def _snapshot(self, requests: tuple[ControlRequest, ...]) -> tuple[Settled, ...]:
        now = {r.request_id: r for r in requests if r.subtype in ("can_use_tool", "")}
        settled = tuple(
            Settled(key, item.request.tool_call_id, item.state == "deciding")
            for key, item in self._pending.items()
            if key not in now
        )
        kept: dict[str, _Pending] = {}
        for key, request in now.items():
            item = self._pending.get(key)
            if item is None:
                item = _Pending(request)
            elif not item.request.diffs or request.diffs:
                item.request = request
            kept[key] = item
        self._pending = kept
        return settled

    # "2 of 4": the calls of one step are asked one after another.

    def _step(self, delta: Delta) -> None:
        run = delta.run_id or ""
        if delta.message_type == "approval_classification_end":
            asked = [c for c in texts(delta.raw, "user_input_tool_call_ids") if c]
            if asked:
                _remember(self._steps, run, asked)
        elif delta.message_type in ("approval_request_message", "tool_call_message"):
            calls = self._calls.get(run, [])
            for item in (*mappings(delta.raw, "tool_calls"), delta.raw.get("tool_call")):
                call_id = item.get("tool_call_id") if isinstance(item, Mapping) else None
                if isinstance(call_id, str) and call_id not in calls:
                    calls = [*calls, call_id]
            _remember(self._calls, run, calls)

    def _view(self, number_here: int, item: _Pending) -> ApprovalView:
        request = item.request
        call_id = request.tool_call_id
        step = _containing(self._steps, call_id) or _containing(self._calls, call_id)
        if len(step) < len(self._pending):
            step = list(self.tool_call_ids)
        return ApprovalView(
            request_id=request.request_id,
            tool_call_id=call_id,
            tool_name=request.tool_name,
            headline=headline(request.tool_name, request.input),
            arguments=pretty(request.input),
            diffs=tuple(_diff(d) for d in request.diffs),
            suggestions=tuple(Suggestion(s.id, s.text) for s in request.suggestions if s.id),
            blocked_path=request.blocked_path or "",
            position=step.index(call_id) + 1 if call_id in step else number_here + 1,
            total=len(step),
            state=item.state,
            note=item.note,
        )


def _remember(steps: dict[str, list[str]], run: str, calls: list[str]) -> None:
    steps.pop(run, None)
    steps[run] = calls
    while len(steps) > _STEPS_KEPT:
        del steps[next(iter(steps))]


def _containing(steps: dict[str, list[str]], call_id: str) -> list[str]:
    return next((calls for calls in reversed(steps.values()) if call_id in calls), [])


_NO_PREVIEW = {
    "fallback": "No line-by-line preview.",
    "unpreviewable": "This change cannot be shown before it is made.",
}
_LINES: dict[str, Literal["context", "add", "remove"]] = {
    "context": "context",
    "add": "add",
    "remove": "remove",
}


def _diff(raw: Mapping[str, Any]) -> DiffView:
    mode, reason = raw.get("mode"), raw.get("reason")
    name = raw.get("fileName")
    hunks = tuple(
        DiffHunk(
            number(h, "oldStart") or 0,
            number(h, "newStart") or 0,
            tuple(
                DiffLine(_LINES.get(str(line.get("type")), "context"), str(line.get("content", "")))
                for line in mappings(h, "lines")
            ),
        )
        for h in mappings(raw, "hunks")
    )
    words = reason if isinstance(reason, str) and reason else ""
    if not hunks and not words:
        words = _NO_PREVIEW.get(str(mode), "No preview of the change.")
    return DiffView(name if isinstance(name, str) else "", hunks, "" if hunks else words)
