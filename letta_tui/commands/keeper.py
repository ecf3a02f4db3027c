"""``letta-tui keeper status|stop``: the background process that keeps turns alive."""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import asdict

from letta_tui.commands.context import load_context
from letta_tui.commands.errors import FAILED, OK, CommandError
from letta_tui.commands.output import iso, show_json
from letta_tui.commands.wiring import keeper_paths
from letta_tui.keeper.client import KeeperError, KeeperPaths, KeeperStatus, find_keeper, stop_keeper


def run(args: argparse.Namespace) -> int:
    context = load_context(args)
    paths = keeper_paths(context.paths)
    try:
        if args.action == "stop":
            return _stopped(asyncio.run(stop_keeper(paths)), args.json)
        return _status(asyncio.run(ask_status(paths)), args.json)
    except KeeperError as error:
        raise CommandError(str(error), FAILED) from None


async def ask_status(paths: KeeperPaths) -> KeeperStatus | None:
    """What the running keeper says of itself; ``None`` when none runs. Starts nothing."""
    handle = await find_keeper(paths)
    if handle is None:
        return None
    try:
        return await handle.status()
    finally:
        await handle.close()


def _stopped(was_running: bool, as_json: bool) -> int:
    if as_json:
        show_json({"stopped": was_running})
    else:
        print("The keeper and its server have ended." if was_running else "No keeper was running.")
    return OK


def _status(status: KeeperStatus | None, as_json: bool) -> int:
    if as_json:
        if status is None:
            show_json({"running": False})
        else:
            show_json({"running": True, **asdict(status), "started": iso(status.started)})
        return OK
    if status is None:
        print("No keeper is running.")
        return OK
    for line in status_lines(status):
        print(line)
    return OK


def status_lines(status: KeeperStatus) -> list[str]:
    """The status for a person."""
    minutes = (time.time() - status.started) / 60
    server = f"{status.server}, {status.server_url}" if status.server_url else status.server
    if status.server_pid:
        server += f" (process {status.server_pid})"
    lines = [
        f"Keeper: process {status.pid}, version {status.version}, up {minutes:.0f} min",
        f"Server: {server}",
        f"Windows: {status.windows}",
    ]
    lines += [f"Holds: {agent} {conversation}" for agent, conversation in status.holds]
    lines += [f"Busy: {agent} {conversation}" for agent, conversation in status.busy]
    if status.words:
        lines.append(status.words)
    if status.leaves_in is not None:
        lines.append(f"Leaves in {status.leaves_in / 60:.0f} min if nothing happens.")
    return lines
