"""``explain``: what happened to a message, from recorded evidence, as lines or plain data."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from letta_tui.ledger.values import Attempt, Evidence, EvidenceKind, Send, Stamp

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


def explain(send: Send, attempts: Iterable[Attempt], evidence: Iterable[Evidence]) -> tuple[str, ...]:
    """Lines of plain text in time order, with every identity. Free of glyphs and colours."""
    data = explain_data(send, attempts, evidence)
    lines = [
        f"Message {send.client_message_id}",
        f"  state: {send.delivery}; turn: {send.outcome.replace('_', ' ')}",
        f"  otid: {send.otid}",
        f"  conversation: {send.place.conversation_id} of agent {send.place.agent_id}",
        f"  server: {send.place.server_key}",
        f"  text: {_excerpt(send)}",
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
    for item in data["evidence"]:
        lines.append(f"  {item['seq']:>5}  {item['when']}  {item['words']}")
        details = [f"{name.removesuffix('_id')} {item[name]}" for name in _IDENTITIES if item[name]]
        if item["event_seq"] is not None:
            details.append(f"event {item['event_seq']}")
        if item["payload"]:
            details.append(_json(item["payload"]))
        lines.extend(f"         {detail}" for detail in details)
        if item["rests_here"]:
            lines.append(f"         this is what the state {send.delivery} rests on")
    return tuple(lines)


def explain_data(send: Send, attempts: Iterable[Attempt], evidence: Iterable[Evidence]) -> dict[str, Any]:
    """The same as plain JSON data."""
    rests_on = send.rests_on.seq if send.rests_on is not None else 0
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
            for attempt in attempts
        ],
        "evidence": [
            {
                "seq": item.seq,
                "kind": item.kind,
                "words": WORDS[item.kind],
                "when": _when(item.stamp),
                "at": None if item.stamp is None else _stamp(item.stamp),
                "connection_id": item.connection_id,
                "server_life": item.server_life,
                "request_id": item.request_id,
                "run_id": item.run_id,
                "event_seq": item.event_seq,
                "idempotency_key": item.idempotency_key,
                "payload": dict(item.payload),
                "rests_here": bool(rests_on) and item.seq == rests_on,
            }
            for item in sorted(evidence, key=lambda e: e.seq)
        ],
    }


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
