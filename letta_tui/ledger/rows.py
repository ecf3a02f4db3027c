"""Rows of the database to values and back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from letta_tui.ledger.values import (
    Anchor,
    Approval,
    Attempt,
    Draft,
    Evidence,
    EvidenceKind,
    Place,
    Remembered,
    Send,
    Stamp,
)

AT_PLACE = "server_key = ? AND agent_id = ? AND conversation_id = ?"


def place_of(row: sqlite3.Row) -> Place:
    return Place(row["server_key"], row["agent_id"], row["conversation_id"])


def place_values(place: Place) -> tuple[str, str, str]:
    return place.server_key, place.agent_id, place.conversation_id


def stamp_of(row: sqlite3.Row, name: str) -> Stamp:
    return Stamp(row[f"{name}_wall"], row[f"{name}_mono"], row[f"{name}_boot"])


def stamp_values(stamp: Stamp) -> tuple[float, float, str]:
    return stamp.wall, stamp.mono, stamp.boot


def clean(text: str) -> str:
    """Text as the file can hold it: half characters (lone surrogates) become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def to_json(value: Any) -> str:
    """Plain data as JSON text; what JSON cannot hold is kept as its text."""
    return clean(json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        return [_plain(v) for v in items]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return str(value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def from_json(text: str | None, default: Any) -> Any:
    """Stored JSON; ``default`` when it is damaged or of another shape."""
    try:
        value = json.loads(text) if text is not None else default
    except (ValueError, TypeError):
        return default
    return value if default is None or isinstance(value, type(default)) else default


def evidence_of(row: sqlite3.Row) -> Evidence:
    return Evidence(
        kind=row["kind"],
        stamp=stamp_of(row, "at"),
        connection_id=row["connection_id"],
        event_seq=row["event_seq"],
        idempotency_key=row["idempotency_key"],
        run_id=row["run_id"],
        request_id=row["request_id"],
        server_life=row["server_life"],
        payload=from_json(row["payload"], {}),
        client_message_id=row["client_message_id"],
        seq=row["seq"],
    )


def attempt_of(row: sqlite3.Row) -> Attempt:
    return Attempt(
        client_message_id=row["client_message_id"],
        number=row["number"],
        request_id=row["request_id"],
        connection_id=row["connection_id"],
        began=stamp_of(row, "began"),
        written=stamp_of(row, "written") if row["written_wall"] is not None else None,
        server_version=row["server_version"],
        server_life=row["server_life"],
    )


def send_of(conn: sqlite3.Connection, row: sqlite3.Row) -> Send:
    """A send with its attempts and the newest evidence of each kind."""
    key = (row["client_message_id"],)
    last: dict[EvidenceKind, Evidence] = {
        e["kind"]: evidence_of(e)
        for e in conn.execute("SELECT * FROM evidence WHERE client_message_id = ? ORDER BY seq", key)
    }
    rests_on = None
    if row["rests_on"]:
        found = conn.execute("SELECT * FROM evidence WHERE seq = ?", (row["rests_on"],)).fetchone()
        rests_on = evidence_of(found) if found is not None else None
    attempts = conn.execute("SELECT * FROM attempts WHERE client_message_id = ? ORDER BY number", key)
    anchor = None
    if row["anchor_row"] is not None:
        anchor = Anchor(row["anchor_row"], -1 if row["anchor_position"] is None else row["anchor_position"])
    return Send(
        client_message_id=row["client_message_id"],
        otid=row["otid"],
        place=place_of(row),
        text=row["text"],
        delivery=row["delivery"],
        outcome=row["outcome"],
        created=stamp_of(row, "created"),
        updated=stamp_of(row, "updated"),
        anchor=anchor,
        supersedes=row["supersedes"],
        superseded_by=row["superseded_by"],
        window_id=row["window_id"],
        run_ids=tuple(from_json(row["run_ids"], [])),
        terminal=from_json(row["terminal"], None),
        salvaged=bool(row["salvaged"]),
        erased=bool(row["erased"]),
        sentence=row["sentence"],
        attempts=tuple(attempt_of(a) for a in attempts),
        last=last,
        rests_on=rests_on,
    )


def approval_of(row: sqlite3.Row) -> Approval:
    return Approval(
        place=place_of(row),
        request_id=row["request_id"],
        number=row["number"],
        tool_call_id=row["tool_call_id"],
        tool_name=row["tool_name"],
        decision=row["decision"],
        message=row["message"],
        suggestion_ids=tuple(from_json(row["suggestion_ids"], [])),
        state=row["state"],
        decided=stamp_of(row, "decided"),
        updated=stamp_of(row, "updated"),
        window_id=row["window_id"],
        input_request_id=row["input_request_id"],
        connection_id=row["connection_id"],
        words=row["words"],
        erased=bool(row["erased"]),
    )


def remembered_of(row: sqlite3.Row) -> Remembered:
    """From a conversations row joined with label, kind and the number of open sends."""
    return Remembered(
        place=place_of(row),
        title=row["title"],
        agent_name=row["agent_name"],
        state=from_json(row["state"], {}),
        created=stamp_of(row, "created"),
        used=stamp_of(row, "used"),
        endpoint_label=row["label"],
        endpoint_kind=row["server_kind"],
        window_id=row["window_id"],
        open_sends=row["open_sends"],
    )


def draft_of(row: sqlite3.Row) -> Draft:
    return Draft(row["window_id"], place_of(row), row["text"], stamp_of(row, "saved"))
