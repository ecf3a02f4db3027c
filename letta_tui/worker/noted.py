"""What a keeper noted about ends of turns, as evidence about messages. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from letta_tui.conversation import reconcile
from letta_tui.conversation.reconcile_values import KEEPER
from letta_tui.ledger.values import Send
from letta_tui.worker.ports import EndNote


def noted_ends(notes: Sequence[EndNote], sends: Iterable[Send]) -> tuple[reconcile.EndNote, ...]:
    """The noted ends (oldest first) that say how the turn of one of ``sends`` ended.

    An end says nothing about a message that the server was seen to run again after it.
    """
    reran = {
        send.client_message_id: seen.stamp.wall
        for send in sends
        if (seen := send.last.get("server_reran")) is not None and seen.stamp is not None
    }
    found = []
    for note in notes:
        about = tuple(key for key in note.inputs if note.when > reran.get(key, float("-inf")))
        if note.what == "end" and about and note.outcome in ("done", "cancelled", "failed"):
            found.append(reconcile.EndNote(about, note.outcome, _terminal(note), note.run_id))
    return tuple(found)


def _terminal(note: EndNote) -> dict[str, Any]:
    """As of an end seen here, but without the final text: a keeper keeps none."""
    return {
        "seen_by": KEEPER,
        "seen_at": note.when,
        "stop_reason": note.stop_reason,
        "error": note.words if note.outcome == "failed" else "",
        "turn_id": note.turn_id,
        "run_ids": [note.run_id] if note.run_id else [],
        "duration": note.seconds,
        "inputs": list(note.inputs),
    }
