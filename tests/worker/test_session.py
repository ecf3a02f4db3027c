"""What a conversation had on this client and has no more: told by name, never by value."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from letta_tui.commands.keeper_port import KeeperAdapter
from letta_tui.keeper.options import KeeperOptions, KeeperPaths
from letta_tui.keeper.sharing import set_otherwise
from letta_tui.worker.ports import Variables
from letta_tui.worker.session import variable_notes
from tests.worker.world import Keeper, World


@pytest.mark.parametrize(
    ("had", "now", "told"),
    [
        (None, Variables(), []),
        ([], Variables(("A",)), []),
        (["A"], Variables(("A", "B")), []),
        (
            ["A"],
            Variables(("A", "B"), ("A", "B")),
            [
                "The running server does not have these environment variables as the config file says: A, B. "
                "`letta-tui keeper stop` and a new start set them."
            ],
        ),
        (["A", "B"], Variables(("B",)), ["Environment variables no longer in the config file: A."]),
        (
            ["A", "B"],
            Variables(settable=False),
            ["Environment variables that cannot be set on this server: A, B."],
        ),
    ],
)
def test_what_differs_in_the_environment_is_told(had: object, now: Variables, told: list[str]) -> None:
    assert variable_notes(had, now) == told


@pytest.fixture
async def process() -> AsyncIterator[int]:
    """One with ``SAME=1`` and ``OTHER=2`` in its environment."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "print(flush=True); input()",
        env={"SAME": "1", "OTHER": "2"}, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout is not None
    await child.stdout.readline()
    yield child.pid
    child.kill()
    await child.wait()


async def test_the_environment_of_the_running_server_is_compared_by_name(
    process: int, tmp_path: Path
) -> None:
    class Handle:
        gone = False
        server_pid = process

        async def status(self) -> Handle:
            return self

    async def ensure(paths: KeeperPaths, options: KeeperOptions) -> Any:
        return Handle()

    wanted = {"SAME": "1", "OTHER": "secret", "MISSING": ""}
    paths = KeeperPaths(tmp_path, tmp_path)
    port = KeeperAdapter(paths, KeeperOptions(), "test", ensure, variables=wanted)
    assert await port.variables() == Variables(("MISSING", "OTHER", "SAME"), ("MISSING", "OTHER"))
    assert await KeeperAdapter(paths, KeeperOptions(), "test", ensure).variables() == Variables()
    assert set_otherwise(2**22 + 1, wanted) is None


async def test_a_relaunch_tells_which_variables_the_server_does_not_have(tmp_path: Path) -> None:
    world = World(tmp_path)
    keeper = Keeper(world.server)
    keeper.named = Variables(("API_HOST", "PROXY"))
    first = await world.window(endpoint=None, keeper=keeper)
    assert first.recovery is None
    await first.quit()
    keeper.named = Variables(("API_HOST",), ("API_HOST",))
    again = await world.window(endpoint=None, keeper=keeper)
    notes = await again.until(lambda: again.recovery and again.recovery.notes, what="what differs")
    assert notes == (
        "The running server does not have these environment variables as the config file says: API_HOST. "
        "`letta-tui keeper stop` and a new start set them.",
        "Environment variables no longer in the config file: PROXY.",
    )
    await again.quit()
    ledger = world.ledger()
    known = ledger.conversation(world.place)
    assert known is not None
    assert known.state["environment"] == ["API_HOST"]
    ledger.close()
