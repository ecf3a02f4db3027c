"""The embedded server behind a keeper: first run, being away, and a window that dies."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from letta_tui.commands.keeper_port import KeeperAdapter
from letta_tui.keeper.client import KeeperOptions, KeeperPaths, find_keeper
from letta_tui.practice.model import ModelThread
from letta_tui.seam.intents import ConnectProvider, CreateAgent, Decide, ListModels, ListProviders
from letta_tui.seam.updates import ModelsListed, NeedsSetup, ProviderConnected, ProvidersListed
from letta_tui.worker.config import WorkerConfig
from tests.support.seat import Seat
from tests.support.server import LETTA

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not LETTA.exists(), reason="the real server is not installed"),
]


@dataclass
class Home:
    """A profile with nothing in it, and a model nobody has connected yet."""

    folder: Path
    model: ModelThread
    paths: KeeperPaths
    options: KeeperOptions

    def config(self, window: str, **changes: Any) -> WorkerConfig:
        values: dict[str, Any] = {
            "ledger_path": self.folder / "data" / "ledger.sqlite3",
            "keeper": KeeperAdapter(self.paths, self.options, "test"),
            "cwd": str(self.folder / "work"),
            "window_id": window,
        }
        return WorkerConfig(**{**values, **changes})


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    for name in ("home", "work", "data", "state", "run"):
        (tmp_path / name).mkdir(0o700)
    model = ModelThread(tmp_path / "model.jsonl")
    model.start()
    environment = {
        "HOME": str(tmp_path / "home"),
        "LETTA_LOCAL_BACKEND_DIR": str(tmp_path / "backend"),
        "LETTA_CODE_TELEM": "0",
        "DISABLE_AUTOUPDATER": "1",
    }
    options = KeeperOptions(letta=LETTA, server_env=environment, cwd=tmp_path / "work")
    home = Home(tmp_path, model, KeeperPaths(tmp_path / "state", tmp_path / "run"), options)
    try:
        yield home
    finally:
        handle = await find_keeper(home.paths)
        if handle is not None:
            with contextlib.suppress(Exception):
                await handle.stop()
        model.stop()


async def set_up(seat: Seat, home: Home) -> None:
    """The first run, as a person does it: provider, model, agent."""
    await seat.until(lambda: any(isinstance(u, NeedsSetup) for u in seat.seen), 40, "the first-run screen")
    seat.send(ListProviders())
    listed = await seat.until(lambda: next((u for u in seat.seen if isinstance(u, ProvidersListed)), None))
    form = next(p for p in listed.items if p.provider_id == "openai-compatible")
    names = {field.name for field in form.fields}
    values = {
        "baseUrl": home.model.url,
        "base_url": home.model.url,
        "apiKey": "practice",
        "api_key": "practice",
    }
    fields = tuple((name, values[name]) for name in names if name in values)
    seat.send(ConnectProvider(form.provider_id, form.auth_method_id, fields))
    connected = await seat.until(
        lambda: next((u for u in seat.seen if isinstance(u, ProviderConnected)), None)
    )
    assert connected.ok, connected.error
    seat.send(ListModels(force=True))
    models = await seat.until(lambda: next((u for u in seat.seen if isinstance(u, ModelsListed)), None))
    seat.send(CreateAgent("Ada", models.items[0].handle))
    await seat.ready()


@pytest.mark.long
async def test_from_nothing_to_a_reply_and_back_after_the_window_died(home: Home) -> None:
    first = Seat.start(home.config("one"))
    await set_up(first, home)
    await first.until(lambda: first.connection is not None and first.connection.held, what="the keeper holds")
    key = await first.said("[[words 60 rate=20]]")
    await first.until(lambda: first.texts("assistant"), what="the first words")
    conversation = first.status.conversation_id
    assert first.connection is not None
    assert first.connection.embedded
    # The window dies in mid-reply: its sockets close without a word, nothing is said to the keeper.
    await kill_window(first)

    second = await Seat.start(home.config("two")).ready()
    try:
        assert second.status.conversation_id == conversation
        reply = await second.reply("w0059")
        await second.rest()
        assert reply.text.split() == [f"w{n:04}" for n in range(60)]
        row = second.row_of(key)
        assert row is not None
        assert (row.delivery, row.outcome) == ("delivered", "done")
        assert second.texts("user") == ["[[words 60 rate=20]]"]
        assert second.recovery is None or not second.recovery.sends
    finally:
        await second.quit()


@pytest.mark.long  # the same is shown with the whole program in tests/terminal
async def test_an_approval_waits_for_the_next_window(home: Home) -> None:
    first = Seat.start(home.config("one"))
    await set_up(first, home)
    await first.said("[[run touch kept ==> say after]]")
    asked = (await first.until(lambda: first.approvals, what="an approval"))[0]
    await kill_window(first)

    second = await Seat.start(home.config("two")).ready()
    try:
        again = (await second.until(lambda: second.approvals, what="the approval"))[0]
        assert again.request_id == asked.request_id
        second.send(Decide(again.request_id, "allow"))
        await second.reply("after")
        await second.rest()
        assert (home.folder / "work" / "kept").exists()
    finally:
        await second.quit()


async def kill_window(seat: Seat) -> None:
    """End the worker's thread without letting it say goodbye to anybody."""
    worker: Any = seat.worker
    loop = worker._loop
    loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(loop)])
    assert await asyncio.to_thread(worker.join, 20)
