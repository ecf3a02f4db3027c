"""``letta-tui demo``: the whole program with a scripted practice model, in folders of its own."""

from __future__ import annotations

import argparse

from letta_tui import __version__
from letta_tui.commands.chat import need_terminal, show
from letta_tui.commands.errors import FAILED, CommandError
from letta_tui.commands.keeper_port import KeeperAdapter
from letta_tui.commands.wiring import need_program, new_window_id
from letta_tui.config import Profile
from letta_tui.keeper.errors import KeeperError
from letta_tui.paths import DEMO_PROFILE, resolve
from letta_tui.practice.demo import DemoSetup, furnish, prepare
from letta_tui.worker.config import Target, WorkerConfig
from letta_tui.worker.ports import KeeperTrouble, Whereabouts

HINTS = (
    "show me markdown",
    "think aloud",
    "talk slowly",
    "run a command",
    "write a file",
    "two tools at once",
)


class DemoKeeper(KeeperAdapter):
    """A keeper whose server has the practice model and agent before anybody connects to it."""

    def __init__(self, setup: DemoSetup, identity: str) -> None:
        super().__init__(setup.paths, setup.options, identity)
        self._setup = setup
        self._furnished = False

    async def endpoint(self) -> Whereabouts:
        if not self._furnished:
            try:
                await furnish(self._setup)
            except KeeperError as error:
                raise KeeperTrouble(str(error), lasting=error.lasting) from None
            self._furnished = True
        return await super().endpoint()


def run(args: argparse.Namespace) -> int:
    need_terminal()
    paths = resolve(DEMO_PROFILE)
    try:
        setup = prepare(paths)
        need_program(setup.options, setup.paths)
    except KeeperError as error:
        raise CommandError(str(error), FAILED) from None
    config = WorkerConfig(
        ledger_path=paths.ledger,
        cache_path=paths.cache_db,
        keeper=DemoKeeper(setup, Profile(DEMO_PROFILE).name),
        # Not known the first time: then it is the only agent there, or the newest.
        target=Target(agent_id=setup.agent_id, new=args.new),
        cwd=str(setup.scratch),
        window_id=new_window_id(),
        client_version=__version__,
    )
    return show(config, paths, HINTS)
