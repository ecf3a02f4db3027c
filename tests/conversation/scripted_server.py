"""A small model of the server: turns as frames, and the history it would answer with after each frame.

It follows what was recorded of the real one: history's text equals the deltas emitted so far, tool
requests are named differently in stream and history, running output is cumulative, results come in three
shapes, sequence numbers start anew with each run, direct-start prompts are in history only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from letta_tui.protocol.frames import Frame
from tests.conversation import view


@dataclass(frozen=True)
class ToolPlan:
    name: str
    arguments: str
    outputs: tuple[str, ...]  # pieces of running output
    ok: bool


@dataclass(frozen=True)
class RunPlan:
    reasoning: tuple[str, ...]
    text: tuple[str, ...]
    tools: tuple[ToolPlan, ...]
    interleaved: bool
    first_seq: int


@dataclass(frozen=True)
class TurnPlan:
    prompt: str
    queued: bool
    reminder: bool
    runs: tuple[RunPlan, ...]


@dataclass
class Server:
    """``frames[i]`` was emitted when history was ``histories[i + 1]`` (oldest first)."""

    frames: list[Frame] = field(default_factory=list)
    histories: list[list[dict[str, Any]]] = field(default_factory=lambda: [[]])
    prompts: list[str] = field(default_factory=list)  # otids
    starts: list[int] = field(default_factory=list)  # index of each turn's first frame
    _rows: list[dict[str, Any]] = field(default_factory=list)
    _number: int = 0
    _run: int = 0
    _letta: int = 0

    def _emit(self, frame: Frame) -> None:
        self.frames.append(frame)
        self.histories.append([dict(row) for row in self._rows])

    def _id(self) -> str:
        self._number += 1
        return f"ui-msg-{self._number}"

    def play(self, turns: Sequence[TurnPlan]) -> Server:
        for number, turn in enumerate(turns):
            self._turn(number, turn)
        return self

    def _turn(self, number: int, turn: TurnPlan) -> None:
        otid = f"prompt-{number}"
        self.prompts.append(otid)
        self.starts.append(len(self.frames))
        if turn.queued:
            self._emit(view.delta("user_message", id=f"user-msg-{number}", content=turn.prompt, otid=otid))
        parts = [{"type": "text", "text": turn.prompt}]
        if turn.reminder:
            parts.insert(0, {"type": "text", "text": "<system-reminder>\nenvironment\n</system-reminder>\n"})
        self._rows.append(view.user_row(parts, mid=self._id(), otid=otid))
        self._emit(view.loop("SENDING_API_REQUEST"))
        run = ""
        for run_number, plan in enumerate(turn.runs):
            self._run += 1
            run = f"local-run-{self._run}"
            self._emit(view.loop("PROCESSING_API_RESPONSE", run, by_run={run: [otid]}))
            self._stream(run, plan, last=run_number == len(turn.runs) - 1)
        self._emit(view.loop("WAITING_ON_INPUT"))
        self._emit(view.device(False))
        self._emit(view.finished("end_turn", run, f"turn-{number}"))

    def _stream(self, run: str, plan: RunPlan, last: bool) -> None:
        seq = plan.first_seq
        base = self._id()
        for kind, part, pieces in (
            ("reasoning_message", "reasoning:0", plan.reasoning),
            ("assistant_message", "assistant:1", plan.text),
        ):
            row: dict[str, Any] | None = None
            for piece in pieces:
                name = f"{base}:{part}"
                if row is None:
                    row = view.text_row("", mid=name, kind=kind)
                    self._rows.append(row)
                if kind == "reasoning_message":
                    row["reasoning"] += piece
                    body: dict[str, Any] = {"reasoning": piece}
                else:
                    row["content"] = [{"type": "text", "text": row["content"][0]["text"] + piece}]
                    body = {"content": [{"type": "text", "text": piece}]}
                self._emit(view.delta(kind, id=name, run_id=run, seq_id=seq, **body))
                seq += 1
        tools = () if last else plan.tools
        calls = [f"call-{self._run}-{n}" for n in range(len(tools))]
        for call, tool in zip(calls, tools, strict=True):
            self._letta += 1
            self._rows.append(view.call_row(call, mid=base, name=tool.name, arguments=tool.arguments))
            self._emit(
                view.delta(
                    "approval_request_message",
                    id=f"letta-msg-{self._letta}",
                    run_id=run,
                    seq_id=seq,
                    tool_call={"tool_call_id": call, "name": tool.name, "arguments": tool.arguments},
                )
            )
            seq += 1
        stop = "requires_approval" if tools else "end_turn"
        self._emit(view.delta("stop_reason", stop_reason=stop, run_id=run, seq_id=seq))
        self._tools(run, calls, tools, plan.interleaved)

    def _tools(self, run: str, calls: list[str], tools: Sequence[ToolPlan], interleaved: bool) -> None:
        plays = [self._tool(run, call, tool) for call, tool in zip(calls, tools, strict=True)]
        while plays:
            for play in list(plays):
                for step in play:
                    step()
                    if interleaved:
                        break
                else:
                    plays.remove(play)

    def _tool(self, run: str, call: str, tool: ToolPlan) -> Any:
        def emit(message_type: str, **body: Any) -> Any:
            return lambda: self._emit(view.delta(message_type, run_id=run, tool_call_id=call, **body))

        status = "success" if tool.ok else "error"
        yield emit("client_tool_start", id="letta", tool_name=tool.name, tool_args=tool.arguments)
        so_far = ""
        for piece in tool.outputs:
            so_far += piece
            yield emit(
                "tool_return_message",
                id=f"synthetic-tool-return-stream-{call}",
                status="success",
                tool_return=so_far,
                tool_returns=[{"tool_call_id": call, "status": "success", "tool_return": so_far}],
            )
        yield emit("client_tool_end", id="letta", status=status)
        result = so_far + "\n"

        def end() -> None:
            self._rows.append(view.result_row(call, result, mid=self._id(), status=status))
            emit(
                "tool_return_message",
                id=f"synthetic-tool-return-{call}-final",
                status=status,
                tool_return=result,
                tool_returns=[{"tool_call_id": call, "status": status, "tool_return": result}],
            )()

        yield end


def tokens(alphabet: str) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.text(alphabet, min_size=1, max_size=5), max_size=6).map(tuple)


def numbered(prefix: str) -> st.SearchStrategy[tuple[str, ...]]:
    """Fragments that cannot be mistaken for each other."""
    return st.integers(0, 7).map(lambda n: tuple(f"{prefix}{i} " for i in range(n)))


def turns(fragments: Any = None) -> st.SearchStrategy[list[TurnPlan]]:
    words = fragments or (lambda prefix: st.one_of(numbered(prefix), tokens("ab \n")))
    tool = st.builds(
        ToolPlan,
        name=st.sampled_from(["Bash", "Write"]),
        arguments=st.sampled_from(['{"command":"ls"}', "{}", '{"a":{"b":1}}']),
        outputs=tokens("xy\n"),
        ok=st.booleans(),
    )
    run = st.builds(
        RunPlan,
        reasoning=words("t"),
        text=words("w"),
        tools=st.lists(tool, max_size=3).map(tuple),
        interleaved=st.booleans(),
        first_seq=st.sampled_from([0, 1]),
    )
    turn = st.builds(
        TurnPlan,
        prompt=st.sampled_from(["hello", "again", "[[x]]"]),
        queued=st.booleans(),
        reminder=st.booleans(),
        runs=st.lists(run, min_size=1, max_size=3).map(tuple),
    )
    return st.lists(turn, min_size=1, max_size=3)
