"""``letta-tui ledger``: every message this client was asked to send, and what became of it."""

from __future__ import annotations

import argparse
from typing import Any

from letta_tui.commands.context import load_context, open_ledger
from letta_tui.commands.errors import OK
from letta_tui.commands.output import iso, local_time, plain, show, show_json, table
from letta_tui.ledger.values import Send


def run(args: argparse.Namespace) -> int:
    context = load_context(args)
    with open_ledger(context.paths, to_read=True) as ledger:
        sends = ledger.sends() if ledger is not None else ()
    if args.json:
        show_json([as_data(send) for send in sends])
        return OK
    if not sends:
        print("Nothing has been sent yet.")
        return OK
    rows = [
        (
            local_time(send.created.wall),
            send.delivery,
            send.outcome.replace("_", " "),
            plain(send.place.conversation_id, 24),
            send.client_message_id,
            plain(send.text, 60) if not send.erased else "(erased)",
        )
        for send in sends
    ]
    show([table(rows, ("PREPARED", "DELIVERY", "TURN", "CONVERSATION", "ID", "TEXT"))])
    return OK


def as_data(send: Send) -> dict[str, Any]:
    """A send as plain JSON data; times are ISO 8601 in UTC."""
    return {
        "client_message_id": send.client_message_id,
        "otid": send.otid,
        "server": send.place.server_key,
        "agent": send.place.agent_id,
        "conversation": send.place.conversation_id,
        "text": None if send.erased else send.text,
        "erased": send.erased,
        "state": send.delivery,
        "turn": send.outcome,
        "times": {
            "prepared": iso(send.created.wall),
            "updated": iso(send.updated.wall),
        },
        "attempts": [
            {
                "number": attempt.number,
                "request_id": attempt.request_id,
                "connection": attempt.connection_id,
                "began": iso(attempt.began.wall),
                "written": iso(attempt.written.wall) if attempt.written else None,
                "server_version": attempt.server_version,
            }
            for attempt in send.attempts
        ],
        "run_ids": list(send.run_ids),
        "terminal": dict(send.terminal) if send.terminal is not None else None,
        "rests_on": send.rests_on.kind if send.rests_on is not None else None,
        "supersedes": send.supersedes or None,
        "superseded_by": send.superseded_by or None,
        "salvaged": send.salvaged,
    }
