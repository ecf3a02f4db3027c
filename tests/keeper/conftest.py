"""A keeper of the test's own, in folders of its own, in front of the practice model."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
import pytest

from letta_tui.keeper.client import KeeperHandle, KeeperOptions, KeeperPaths, ensure_keeper, stop_keeper
from letta_tui.practice.model import ModelThread
from tests.support.server import LETTA, MODEL_HANDLE, PlainSocket, isolated_env


@dataclass
class Household:
    """Folders, options and handles; ``ensure`` opens a window."""

    folder: Path
    paths: KeeperPaths
    options: KeeperOptions
    model: ModelThread
    agent_id: str = ""
    handles: list[KeeperHandle] = field(default_factory=list)

    async def ensure(self, **changed: object) -> KeeperHandle:
        handle = await ensure_keeper(self.paths, replace(self.options, **changed))  # type: ignore[arg-type]
        self.handles.append(handle)
        return handle

    async def socket(self, handle: KeeperHandle) -> PlainSocket:
        where = await handle.endpoint()
        return PlainSocket(where.url, where.token() or "")

    async def conversation(self, handle: KeeperHandle) -> tuple[str, str]:
        async with await self.socket(handle) as socket:
            if not self.agent_id:
                await socket.connect_model(self.model.url)
                made = await socket.ask("agent_create", body={"name": "Kept", "model": MODEL_HANDLE})
                self.agent_id = str(made["agent"]["id"])
            made = await socket.ask("conversation_create", body={"agent_id": self.agent_id})
        return self.agent_id, str(made["conversation"]["id"])

    def ours(self) -> list[psutil.Process]:
        """Every process that was started for these folders."""
        found = []
        for process in psutil.process_iter():
            try:
                words = " ".join(process.cmdline())
                if str(self.folder) in words and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found


@pytest.fixture
async def household(tmp_path: Path) -> AsyncIterator[Household]:
    if not LETTA.exists():
        pytest.skip("the real server is not installed (pip install 'letta-tui[server]')")
    model = ModelThread(tmp_path / "model.jsonl")
    model.start()
    for name in ("home", "work", "state", "run"):
        (tmp_path / name).mkdir()
    env = isolated_env(tmp_path)
    home = Household(
        folder=tmp_path,
        paths=KeeperPaths(tmp_path / "state", tmp_path / "run"),
        options=KeeperOptions(
            letta=LETTA,
            server_env={k: env[k] for k in ("HOME", "LETTA_LOCAL_BACKEND_DIR")},
            cwd=tmp_path / "work",
        ),
        model=model,
    )
    try:
        yield home
    finally:
        await stop_keeper(home.paths)
        for handle in home.handles:
            await handle.close()
        for process in home.ours():
            os.kill(process.pid, signal.SIGKILL)
        model.stop()
