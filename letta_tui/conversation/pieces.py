"""One reading of messages for stream deltas and history rows alike.

A message becomes ``Piece`` values: text, user, call, result, summary. What joins a piece of the stream to
one of history is decided by the names it carries here (kind and otid, else kind and id; a tool's call id).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from letta_tui.conversation import content

STREAMED_RESULT = "synthetic-tool-return-stream-"


@dataclass(frozen=True, slots=True)
class Piece:
    """``text`` is the text, a result, or argument text; ``failed`` belongs to a result.

    ``partial`` marks a result that is the output so far (cumulative). ``visible`` is false for user
    messages that no person wrote.
    """

    what: Literal["text", "user", "call", "result", "summary"]
    kind: Literal["assistant", "reasoning", "user", "tool", "summary", "notice"]
    id: str = ""
    otid: str = ""
    text: str = ""
    when: float | None = None
    call_id: str = ""
    name: str = ""
    failed: bool = False
    partial: bool = False
    visible: bool = True


_TEXT = frozenset({"assistant_message", "reasoning_message"})


def read(message: Mapping[str, Any]) -> Iterator[Piece]:
    """The pieces of one message; none for kinds that have no row."""
    what = message.get("message_type")
    mid, otid = _str(message.get("id")), _str(message.get("otid"))
    when = content.seconds(message.get("date"))
    if what in _TEXT:
        raw = message.get("reasoning") if what == "reasoning_message" else None
        text = raw if isinstance(raw, str) else content.text_of(message.get("content"))
        kind: Literal["assistant", "reasoning"] = "assistant" if what == "assistant_message" else "reasoning"
        yield Piece("text", kind, mid, otid, text, when)
    elif what == "user_message":
        yield _user(message, mid, otid, when)
    elif what in ("tool_call_message", "approval_request_message"):
        for call in _calls(message):
            call_id = _str(call.get("tool_call_id"))
            if call_id:
                yield Piece(
                    "call",
                    "tool",
                    mid,
                    text=_arguments(call.get("arguments")),
                    when=when,
                    call_id=call_id,
                    name=_name(call.get("name")),
                )
    elif what == "tool_return_message":
        yield from _results(message, mid, when)
    elif what == "summary_message":
        text = content.text_of(message.get("summary")) or content.text_of(message.get("content"))
        yield Piece("summary", "summary", mid, otid, text, when)
    elif what == "event_message" and message.get("event_type") == "compaction":
        yield Piece("summary", "notice", mid, otid, "Older messages are being summarised.", when)


def _user(message: Mapping[str, Any], mid: str, otid: str, when: float | None) -> Piece:
    text = content.user_text(message.get("content"))
    is_note, words = content.notification(text)
    if is_note:
        return Piece("user", "notice", mid, otid, words, when, visible=bool(words))
    return Piece("user", "user", mid, otid, text, when, visible=bool(text))


def _calls(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Each call once: a message has ``tool_call``, or ``tool_calls``, or both."""
    seen: set[str] = set()
    for name in ("tool_calls", "tool_call"):
        value = message.get(name)
        for call in value if isinstance(value, list) else [value]:
            if isinstance(call, Mapping) and (call_id := _str(call.get("tool_call_id"))) not in seen:
                seen.add(call_id)
                yield call


def _results(message: Mapping[str, Any], mid: str, when: float | None) -> Iterator[Piece]:
    several = message.get("tool_returns")
    items = [r for r in several if isinstance(r, Mapping)] if isinstance(several, list) else []
    for item in items or [message]:
        call_id = _str(item.get("tool_call_id"))
        if not call_id:
            continue
        value = next((item[n] for n in ("tool_return", "func_response") if item.get(n) is not None), None)
        text = content.result_text(value)
        if not text:
            text = "".join(content.text_of(item.get(n), "\n") for n in ("stdout", "stderr"))
        yield Piece(
            "result",
            "tool",
            mid,
            text=text,
            when=when,
            call_id=call_id,
            name=_name(item.get("name")),
            failed=item.get("status", message.get("status")) == "error",
            partial=mid.startswith(STREAMED_RESULT),
        )


def _arguments(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    return ""


def _name(value: object) -> str:
    # "?" is a placeholder of a fragment whose name has not come yet.
    return value if isinstance(value, str) and value != "?" else ""


def _str(value: object) -> str:
    return value if isinstance(value, str) else ""
