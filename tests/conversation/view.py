"""A view that does nothing but apply updates, and helpers to build frames."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from letta_tui.protocol.frames import Frame, frame_of
from letta_tui.seam.state import Row
from letta_tui.seam.updates import TextAppended, TranscriptChanged

AGENT, CONVERSATION = "agent-local-1", "local-conv-1"
RUNTIME = {"agent_id": AGENT, "conversation_id": CONVERSATION}
_count = itertools.count(1)


class View:
    def __init__(self) -> None:
        self.rows: list[Row] = []

    def apply(self, updates: Iterable[TranscriptChanged | TextAppended]) -> View:
        for update in updates:
            if isinstance(update, TextAppended):
                at = next(n for n, row in enumerate(self.rows) if row.key == update.key)
                row = self.rows[at]
                if row.tool is not None:
                    row = replace(row, tool=replace(row.tool, result=row.tool.result + update.text))
                else:
                    row = replace(row, text=row.text + update.text)
                self.rows[at] = row
                continue
            if update.reset:
                self.rows.clear()
            for splice in update.splices:
                assert 0 <= splice.start <= len(self.rows)
                assert splice.start + splice.delete <= len(self.rows)
                self.rows[splice.start : splice.start + splice.delete] = splice.rows
        keys = [row.key for row in self.rows]
        assert len(keys) == len(set(keys)), "a key is on the screen twice"
        return self


def event(kind: str, body: Mapping[str, Any], runtime: Mapping[str, Any] | None = None) -> Frame:
    number = next(_count)
    return frame_of(
        {
            "type": kind,
            **body,
            "runtime": runtime or RUNTIME,
            "event_seq": number,
            "idempotency_key": f"{kind}:{number}",
        }
    )


def delta(message_type: str, **body: Any) -> Frame:
    outer = {"subagent_id": body.pop("subagent_id")} if "subagent_id" in body else {}
    return event("stream_delta", {"delta": {"message_type": message_type, **body}, **outer})


def assistant(text: str, *, mid: str = "m1", run: str = "r1", seq: int | None = None, **body: Any) -> Frame:
    return delta(
        "assistant_message", content=[{"type": "text", "text": text}], id=mid, run_id=run, seq_id=seq, **body
    )


def loop(
    status: str, *runs: str, by_run: Mapping[str, list[str]] | None = None, tools: tuple[str, ...] = ()
) -> Frame:
    return event(
        "update_loop_status",
        {
            "loop_status": {
                "status": status,
                "active_run_ids": list(runs),
                "client_message_ids_by_run_id": dict(by_run or {}),
                "executing_tool_call_ids": list(tools),
            }
        },
    )


def device(processing: bool, *pending: Mapping[str, Any], runtime: Mapping[str, Any] | None = None) -> Frame:
    return event(
        "update_device_status",
        {"device_status": {"is_processing": processing, "pending_control_requests": list(pending)}},
        runtime,
    )


def finished(stop: str = "end_turn", run: str = "r1", turn: str = "t1", **body: Any) -> Frame:
    return event("turn_finished", {"turn_id": turn, "stop_reason": stop, "run_id": run, **body})


def user_row(text: Any, *, mid: str, otid: str = "", date: str = "") -> dict[str, Any]:
    row = {"id": mid, "message_type": "user_message", "content": text, "date": date}
    return {**row, "otid": otid} if otid else row


def text_row(text: str, *, mid: str, kind: str = "assistant_message", **body: Any) -> dict[str, Any]:
    if kind == "reasoning_message":
        return {"id": mid, "message_type": kind, "reasoning": text, **body}
    return {"id": mid, "message_type": kind, "content": [{"type": "text", "text": text}], **body}


def call_row(call: str, *, mid: str, name: str = "Bash", arguments: str = "{}") -> dict[str, Any]:
    return {
        "id": f"{mid}:tool:{call}:request",
        "message_type": "approval_request_message",
        "tool_call": {"tool_call_id": call, "name": name, "arguments": arguments},
    }


def result_row(call: str, text: str, *, mid: str, status: str = "success") -> dict[str, Any]:
    return {
        "id": mid,
        "message_type": "tool_return_message",
        "tool_call_id": call,
        "status": status,
        "tool_return": text,
    }
