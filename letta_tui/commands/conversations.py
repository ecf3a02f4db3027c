"""``letta-tui conversations``: the conversations this client had, the last used first."""

from __future__ import annotations

import argparse

from letta_tui.commands.context import age, load_context, open_ledger
from letta_tui.commands.errors import OK, USAGE, CommandError
from letta_tui.commands.output import iso, plain, show, show_json, table


def run(args: argparse.Namespace) -> int:
    if args.url or args.agent:
        raise CommandError("--url and --agent belong to an action here, such as `rename`.", USAGE)
    context = load_context(args)
    with open_ledger(context.paths, to_read=True) as ledger:
        known = ledger.conversations() if ledger is not None else ()
    # Of one that was forgotten nothing but its place is left.
    found = [item for item in known if item.title or item.agent_name or item.state or item.open_sends]
    if args.json:
        show_json(
            [
                {
                    "server": item.place.server_key,
                    "endpoint": item.endpoint_label,
                    "kind": item.endpoint_kind,
                    "agent": item.place.agent_id,
                    "agent_name": item.agent_name,
                    "conversation": item.place.conversation_id,
                    "title": item.title,
                    "open_sends": item.open_sends,
                    "created": iso(item.created.wall),
                    "used": iso(item.used.wall),
                }
                for item in found
            ]
        )
        return OK
    if not found:
        print("No conversation has been opened yet.")
        return OK
    rows = [
        (
            age(item.used.wall),
            plain(item.agent_name or item.place.agent_id, 28),
            item.place.conversation_id,
            plain(item.endpoint_label or item.place.server_key, 40),
            str(item.open_sends or ""),
            plain(item.title, 50),
        )
        for item in found
    ]
    show([table(rows, ("USED", "AGENT", "CONVERSATION", "SERVER", "OPEN", "TITLE"))])
    return OK
