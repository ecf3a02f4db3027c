"""``letta-tui demo``: the whole program with a scripted practice model, in folders of its own."""

from __future__ import annotations

import argparse
import asyncio

from letta_tui import __version__
from letta_tui.commands.chat import need_terminal, show
from letta_tui.commands.errors import FAILED, CommandError
from letta_tui.commands.keeper_port import KeeperAdapter
from letta_tui.commands.wiring import need_program, new_window_id
from letta_tui.config import Profile
from letta_tui.keeper.client import KeeperError
from letta_tui.paths import DEMO_PROFILE, resolve
from letta_tui.practice.demo import furnish, prepare
from letta_tui.worker.config import Target, WorkerConfig

HINTS = (
    "show me markdown",
    "think aloud",
    "talk slowly",
    "run a command",
    "write a file",
    "two tools at once",
)


def run(args: argparse.Namespace) -> int:
    need_terminal()
    paths = resolve(DEMO_PROFILE)
    try:
        setup = prepare(paths)
        need_program(setup.options, setup.paths)
        print("Starting the practice server …", flush=True)
        agent = asyncio.run(furnish(setup))
    except KeeperError as error:
        raise CommandError(str(error), FAILED) from None
    config = WorkerConfig(
        ledger_path=paths.ledger,
        cache_path=paths.cache_db,
        keeper=KeeperAdapter(setup.paths, setup.options, Profile(DEMO_PROFILE).name),
        target=Target(agent_id=agent, new=args.new),
        cwd=str(setup.scratch),
        window_id=new_window_id(),
        client_version=__version__,
    )
    return show(config, paths, HINTS)
