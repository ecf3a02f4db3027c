"""``letta-tui devices``: the machines of a hosted account."""

from __future__ import annotations

import argparse
import time

from letta_tui.commands.context import age, load_context
from letta_tui.commands.errors import OK, USAGE, CommandError
from letta_tui.commands.output import iso, plain, show, show_json, table
from letta_tui.commands.server import ask_hosted, endpoint_of
from letta_tui.transport.environments import Environments


def run(args: argparse.Namespace) -> int:
    context = load_context(args)
    endpoint = endpoint_of(args, context)
    if endpoint is None or endpoint.kind != "hosted":
        raise CommandError(f"Profile {context.profile.name!r} is not a hosted one: it has no devices.", USAGE)
    now = time.time()
    found = ask_hosted(endpoint, Environments.list)
    rows = [(row, row.online(now), row.last_heartbeat or row.last_seen) for row in found]
    if args.json:
        show_json(
            [
                {
                    "device": row.device_id,
                    "name": row.name,
                    "online": online,
                    "seen": iso(seen) if seen is not None else None,
                    "folder": row.working_directory,
                    "branch": row.git_branch,
                }
                for row, online, seen in rows
            ]
        )
        return OK
    if not rows:
        print("This account has no machines.")
        return OK
    cells = [
        (
            row.device_id,
            plain(row.name, 24),
            "online" if online else "offline",
            age(seen) if seen is not None else "",
            plain(row.working_directory or "", 50),
        )
        for row, online, seen in rows
    ]
    show([table(cells, ("DEVICE", "NAME", "STATE", "SEEN", "FOLDER"))])
    return OK
