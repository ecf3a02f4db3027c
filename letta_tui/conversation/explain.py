"""``explain``: what happened to a message, from recorded evidence, as lines or plain data."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from letta_tui.conversation.card import card, last_told
from letta_tui.conversation.reconcile_values import KEEPER
from letta_tui.ledger.values import (
    Approval,
    ApprovalState,
    CallState,
    Evidence,
    EvidenceKind,
    Send,
    Stamp,
    ToolCall,
)

WORDS: Final[Mapping[EvidenceKind, str]] = {
    "prepared": "Saved on this disk, before anything was sent.",
    "attempt": "About to be written to the connection.",
    "written": "The connection took the bytes (which says nothing about the server).",
    "write_failed": "The connection did not take the bytes.",
    "connection_lost": "The connection ended.",
    "ack": "The server answered that it took it.",
    "ack_repeat": "The server answered yes to the repeated write, which proves nothing new.",
    "refused": "The server refused it.",
    "refused_repeat": "The server refused the repeated write, which says nothing about the first.",
    "queue_seen": "Seen in the server's queue.",
    "dequeued": "It left the queue for a turn.",
    "removed": "It was removed from the queue before it ran.",
    "removed_late": "It was found removed from the queue after the connection had been lost.",
    "run_seen": "Seen as the input of a run.",
    "echo": "The server sent it back as the input of a turn.",
    "loop_error": "An error of the server named it.",
    "history_row": "Found in the conversation's history.",
    "history_twice": "Found in the history more than once: the server ran it again.",
    "turn_running": "Its turn was running.",
    "approval_asked": "Its turn asked for an approval.",
    "approval_settled": "The approval was settled.",
    "turn_done": "Its turn ended.",
    "turn_cancelled": "Its turn was stopped.",
    "turn_failed": "Its turn failed.",
    "server_reran": "The server started it again by itself.",
    "absent": "Found in none of queue, turn and history, read in this order while the agent was idle.",
    "undecidable": "It could not be found out what became of it.",
    "idle": "Its turn was over; nobody had seen the end.",
    "person": "You decided.",
    "salvaged": "Rescued from a damaged ledger; never sent by itself.",
    "redacted": "Its text was erased here.",
    "note": "Noted.",
}

_IDENTITIES: Final = ("connection_id", "server_life", "request_id", "run_id", "idempotency_key")
_ENDS: Final[frozenset[EvidenceKind]] = frozenset({"turn_done", "turn_cancelled", "turn_failed", "idle"})

APPROVALS: Final[Mapping[ApprovalState, str]] = {
    "decided": "It is on this disk, and not known to be written.",
    "written": "The connection took it; the server has not answered.",
    "acknowledged": "The server took it.",
    "refused": "The server refused it: nothing waited for it any more.",
    "settled_elsewhere": "Somebody else had answered first.",
    "closed_by_server": "The server had closed the call before the decision counted.",
    "lost": "It did not arrive; you were asked again.",
}

CALLS: Final[Mapping[CallState, str]] = {
    "asked": "Nobody has decided about it yet.",
    "running": "It was begun; how it ended is not recorded.",
    "finished": "It ended; its result is not known to have been sent.",
    "written": "It ended, and the connection took its result.",
    "confirmed": "It ended, and the conversation shows its result.",
    "declined": "It was not run.",
    "lost": "It may have run, and the server never got its answer. It is not run again.",
}


@dataclass(frozen=True, slots=True)
class Case:
    """Everything that is recorded about a message. ``approvals`` and ``calls``: those of its conversation."""

    send: Send
    evidence: tuple[Evidence, ...] = ()
    approvals: tuple[Approval, ...] = ()
    calls: tuple[ToolCall, ...] = ()


def explain(case: Case) -> tuple[str, ...]:
    """Lines of plain text in time order, with every identity. Free of glyphs and colours."""
    data, send = explain_data(case), case.send
    lines = [
        f"Message {send.client_message_id}",
        f"  text: {_excerpt(send)}",
        f"  known: {data['card']['word']}. {data['card']['explanation']}",
        *(f"    {_offer(choice)}" for choice in data["card"]["choices"]),
        f"  state: {send.delivery}; turn: {send.outcome.replace('_', ' ')}",
        f"  otid: {send.otid}",
        f"  conversation: {send.place.conversation_id} of agent {send.place.agent_id}",
        f"  server: {send.place.server_key}",
    ]
    if send.anchor is not None:
        lines.append(f"  prepared after the history row: {send.anchor.row_id or '(none, it was empty)'}")
    if send.supersedes:
        lines.append(f"  replaces: {send.supersedes}")
    if send.superseded_by:
        lines.append(f"  replaced by: {send.superseded_by}")
    if send.run_ids:
        lines.append(f"  runs: {', '.join(send.run_ids)} (each means something in one life of the server)")
    if send.salvaged:
        lines.append("  rescued from a damaged ledger")
    if send.terminal is not None:
        lines.append(f"  end of its turn: {_json(send.terminal)}")
    for item in data["attempts"]:
        written = "written" if item["written"] else "not known to be written"
        version = f", server version {item['server_version']}" if item["server_version"] else ""
        lines.append(
            f"  attempt {item['number']}: request {item['request_id']} on connection "
            f"{item['connection_id']}, {written}{version}"
        )
    lines.append("")
    lines.append("What is recorded, in order:")
    for item in data["events"]:
        number = item["seq"] or ""
        lines.append(f"  {number:>5}  {item['when']}  {item['words']}")
        details = [f"{name.removesuffix('_id')} {item[name]}" for name in _IDENTITIES if item.get(name)]
        if item.get("event_seq") is not None:
            details.append(f"event {item['event_seq']}")
        if item["payload"]:
            details.append(_json(item["payload"]))
        lines.extend(f"         {detail}" for detail in details)
        if item.get("rests_here"):
            lines.append(f"         this is what the state {send.delivery} rests on")
    return tuple(lines)


def explain_data(case: Case) -> dict[str, Any]:
    """The same as plain JSON data. ``events`` has evidence, decisions and calls of tools in time order;
    ``evidence`` is the log alone."""
    send = case.send
    view = card(send, last_told(send))
    log = [_evidence(send, item) for item in sorted(case.evidence, key=lambda e: e.seq)]
    return {
        "client_message_id": send.client_message_id,
        "otid": send.otid,
        "server_key": send.place.server_key,
        "agent_id": send.place.agent_id,
        "conversation_id": send.place.conversation_id,
        "text": send.text,
        "erased": send.erased,
        "delivery": send.delivery,
        "outcome": send.outcome,
        "sentence": send.sentence,
        "card": {
            "word": view.word,
            "explanation": view.explanation,
            "choices": [
                {"action": each.action, "label": each.label, "risk": each.risk} for each in view.choices
            ],
        },
        "anchor": None if send.anchor is None else send.anchor.row_id,
        "supersedes": send.supersedes,
        "superseded_by": send.superseded_by,
        "window_id": send.window_id,
        "run_ids": list(send.run_ids),
        "terminal": None if send.terminal is None else dict(send.terminal),
        "salvaged": send.salvaged,
        "created": _stamp(send.created),
        "updated": _stamp(send.updated),
        "attempts": [
            {
                "number": attempt.number,
                "request_id": attempt.request_id,
                "connection_id": attempt.connection_id,
                "server_version": attempt.server_version,
                "server_life": attempt.server_life,
                "began": _stamp(attempt.began),
                "written": None if attempt.written is None else _stamp(attempt.written),
            }
            for attempt in send.attempts
        ],
        "evidence": log,
        "events": _in_time(log, [*_decisions(case), *_calls(case)]),
    }


def _evidence(send: Send, item: Evidence) -> dict[str, Any]:
    return {
        "seq": item.seq,
        "kind": item.kind,
        "words": WORDS[item.kind] + (" The keeper saw it." if item.payload.get("seen_by") == KEEPER else ""),
        "when": _when(item.stamp),
        "at": None if item.stamp is None else _stamp(item.stamp),
        "connection_id": item.connection_id,
        "server_life": item.server_life,
        "request_id": item.request_id,
        "run_id": item.run_id,
        "event_seq": item.event_seq,
        "idempotency_key": item.idempotency_key,
        "payload": dict(item.payload),
        "rests_here": send.rests_on is not None and item.seq == send.rests_on.seq,
    }


# --- tools -----------------------------------------------------------------------------------------


def _decisions(case: Case) -> Iterator[dict[str, Any]]:
    """Decisions about requests that its turn was seen to ask, or that fall into the time of its turn."""
    asked = {item.request_id for item in case.evidence if item.kind == "approval_asked" and item.request_id}
    for approval in case.approvals:
        if approval.request_id not in asked and not _in_turn(case, approval.decided):
            continue
        verb = {"allow": "allowed", "deny": "denied"}[approval.decision]
        payload: dict[str, Any] = {
            "approval": approval.request_id,
            "number": approval.number,
            "tool": approval.tool_name,
            "tool_call_id": approval.tool_call_id,
            "window": approval.window_id,
        }
        if approval.message:
            payload["reason"] = approval.message
        if approval.suggestion_ids:
            payload["always"] = list(approval.suggestion_ids)
        who = "The config" if approval.window_id == "the config" else "You"
        yield _event("decision", approval.decided, f"{who} {verb} {approval.tool_name}.", payload)
        if approval.state != "decided":
            after: dict[str, Any] = {"approval": approval.request_id, "number": approval.number}
            if approval.words:
                after["words"] = approval.words
            words = f"The decision about {approval.tool_name}: {APPROVALS[approval.state]}"
            yield _event(
                "decision",
                approval.updated,
                words,
                after,
                connection_id=approval.connection_id,
                request_id=approval.input_request_id,
            )


def _calls(case: Case) -> Iterator[dict[str, Any]]:
    """Calls of the person's own tools in the time of its turn."""
    for call in case.calls:
        if not _in_turn(case, call.asked):
            continue
        about: dict[str, Any] = {"tool": call.tool_name, "tool_call_id": call.tool_call_id}
        yield _event(
            "tool_call",
            call.asked,
            f"The server called your tool {call.tool_name}.",
            {**about, "input": dict(call.input), "window": call.window_id},
            connection_id=call.connection_id,
            request_id=call.request_id,
        )
        if call.state != "asked":
            ended: dict[str, Any] = dict(about)
            if call.allowed_by:
                ended["allowed_by"] = call.allowed_by
            if call.is_error:
                ended["is_error"] = True
            if call.words:
                ended["words"] = call.words
            yield _event(
                "tool_call",
                call.updated,
                f"Your tool {call.tool_name}: {CALLS[call.state]}",
                ended,
                request_id=call.request_id,
            )


def _in_turn(case: Case, stamp: Stamp) -> bool:
    """Between the first write of the message and the end of its turn. A conversation has one turn at a time,
    but a message can wait in the queue of another one: with a start that was seen, its turn begins there."""
    seen = [e for e in case.evidence if e.kind in ("run_seen", "echo", "dequeued") and e.stamp is not None]
    starts = seen or [e for e in case.evidence if e.kind == "attempt" and e.stamp is not None]
    ends = [e for e in case.evidence if e.kind in _ENDS and e.stamp is not None]
    if not starts or starts[0].stamp is None or _later(starts[0].stamp, stamp):
        return False
    return not ends or ends[-1].stamp is None or not _later(stamp, ends[-1].stamp)


def _later(stamp: Stamp, than: Stamp) -> bool:
    if stamp.boot == than.boot:
        return stamp.mono > than.mono
    return stamp.wall > than.wall


def _event(kind: str, stamp: Stamp, words: str, payload: dict[str, Any], **more: str) -> dict[str, Any]:
    found = {"seq": 0, "kind": kind, "words": words, "when": _when(stamp), "at": _stamp(stamp)}
    return {**found, **more, "payload": payload}


def _in_time(log: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The log in its own order, which no clock can change, with the others put where their time is."""
    merged = list(log)
    for item in sorted(others, key=lambda each: each["at"]["wall"]):
        place = next(
            (n for n, each in enumerate(merged) if each["at"] and each["at"]["wall"] > item["at"]["wall"]),
            len(merged),
        )
        merged.insert(place, item)
    return merged


# --- small things ----------------------------------------------------------------------------------


def _offer(choice: Mapping[str, str]) -> str:
    return f"offered: {choice['label']}" + (f". {choice['risk']}" if choice["risk"] else "")


def _stamp(stamp: Stamp) -> dict[str, Any]:
    return {"wall": stamp.wall, "mono": stamp.mono, "boot": stamp.boot}


def _when(stamp: Stamp | None) -> str:
    if stamp is None:
        return "(no time)"
    try:
        moment = datetime.datetime.fromtimestamp(stamp.wall, datetime.UTC).astimezone()
    except (OverflowError, OSError, ValueError):
        return "(no such time)"
    return moment.isoformat(sep=" ", timespec="milliseconds")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str, sort_keys=True)


def _excerpt(send: Send) -> str:
    if send.erased:
        return "(erased)"
    words = " ".join(send.text.split())
    return words if len(words) <= 200 else f"{words[:200]}… ({len(send.text)} characters)"
