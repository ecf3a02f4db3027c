"""``letta-tui keeper status|stop``: the background process that keeps turns alive."""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import asdict
from typing import Any

from letta_tui.commands.context import load_context
from letta_tui.commands.errors import FAILED, OK, CommandError
from letta_tui.commands.output import iso, show_json
from letta_tui.commands.wiring import keeper_paths, keepers_beside
from letta_tui.keeper.client import KeeperError, KeeperPaths, KeeperStatus, find_keeper, stop_keeper


def run(args: argparse.Namespace) -> int:
    context = load_context(args)
    paths = keeper_paths(context.paths)
    try:
        if args.action == "stop":
            return _stopped(*asyncio.run(_stop_all(paths)), as_json=args.json)
        return _status(*asyncio.run(_ask_all(paths)), as_json=args.json)
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


async def _ask_all(paths: KeeperPaths) -> tuple[KeeperStatus | None, list[KeeperStatus]]:
    """The embedded server's keeper, and those in front of direct servers."""
    others = [await ask_status(each) for each in keepers_beside(paths)]
    return await ask_status(paths), [status for status in others if status is not None]


async def _stop_all(paths: KeeperPaths) -> tuple[bool, bool, int]:
    """Whether the embedded server's keeper was stopped, and any in front of a direct server; how many windows
    were attached."""
    others = keepers_beside(paths)
    windows = sum([await _windows(each) for each in (paths, *others)])
    beside = [await stop_keeper(each) for each in others]
    return await stop_keeper(paths), any(beside), windows


async def _windows(paths: KeeperPaths) -> int:
    try:
        status = await ask_status(paths)
    except KeeperError:  # it is ended all the same
        return 0
    return status.windows if status is not None else 0


def _stopped(own: bool, beside: bool, windows: int, *, as_json: bool) -> int:
    if as_json:
        show_json({"stopped": own or beside, "windows": windows})
        return OK
    if own:
        words = "The keeper and its server have ended."
    else:
        words = "The keeper has ended; its server goes on." if beside else "No keeper was running."
    if windows:
        one = "A window is open, and starts what it needs again: close it first to end all of it."
        more = (
            f"{windows} windows are open, and start what they need again: close them first to end all of it."
        )
        words += f" {one if windows == 1 else more}"
    print(words)
    return OK


def _data(status: KeeperStatus | None) -> dict[str, Any]:
    if status is None:
        return {"running": False}
    return {"running": True, **asdict(status), "started": iso(status.started)}


def _status(status: KeeperStatus | None, others: list[KeeperStatus], *, as_json: bool) -> int:
    if as_json:
        show_json({**_data(status), "direct": [_data(other) for other in others]})
        return OK
    known = [each for each in (status, *others) if each is not None]
    if not known:
        print("No keeper is running.")
    for number, each in enumerate(known):
        if number:
            print()
        for line in status_lines(each):
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
