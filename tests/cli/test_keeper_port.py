"""The keeper as the worker has it, when the keeper dies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from letta_tui.commands.keeper_port import KeeperAdapter
from letta_tui.keeper.errors import KeeperError
from letta_tui.keeper.options import KeeperOptions, KeeperPaths


class DyingHandle:
    """A connection to a keeper that has been killed after it confirmed a hold."""

    gone = False

    async def hold(self, agent_id: str, conversation_id: str) -> bool:
        return True

    async def release(self, agent_id: str, conversation_id: str) -> None:
        self.gone = True
        raise KeeperError("The keeper is gone.")

    async def close(self) -> None:
        pass


async def test_no_keeper_is_started_only_to_let_go(tmp_path: Path) -> None:
    started: list[DyingHandle] = []

    async def ensure(paths: KeeperPaths, options: KeeperOptions) -> Any:
        started.append(DyingHandle())
        return started[-1]

    port = KeeperAdapter(KeeperPaths(tmp_path, tmp_path), KeeperOptions(), "test", ensure)
    assert await port.hold("agent", "conversation")
    await port.release("agent", "conversation")
    assert len(started) == 1
    assert await port.hold("agent", "conversation"), "the next wish starts one"
    assert len(started) == 2
