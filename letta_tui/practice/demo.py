"""Everything ``letta-tui demo`` needs: a real server in folders of its own, behind the practice model.

The server's HOME, its data and the folder its tools work in are all below the profile's data folder, so
nothing of the person's own agents is seen or touched. The model is a companion of the server: the keeper
starts and ends both, and so a closed window interrupts neither.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from letta_tui.keeper.errors import KeeperError
from letta_tui.keeper.options import DEFAULT_IDLE_SECONDS, KeeperOptions, KeeperPaths
from letta_tui.paths import Paths
from letta_tui.practice.names import MODEL_NAME

if TYPE_CHECKING:
    from letta_tui.keeper.client import KeeperHandle

# The window is drawn while the server is furnished, so what only that needs is loaded by it.

MODEL_HANDLE = f"openai-compatible/{MODEL_NAME}"
AGENT_NAME = "Practice"
_PROVIDER = "openai-compatible"
_WELCOME = """\
This is the folder in which the practice agent's tools run. Everything in it may be deleted.
"""


@dataclass(frozen=True, slots=True)
class DemoSetup:
    """``scratch`` is the working folder for conversations; ``options`` and ``paths`` are the keeper's."""

    paths: KeeperPaths
    options: KeeperOptions
    scratch: Path
    model_url: str
    memory: Path  # a file that remembers port and agent

    @property
    def agent_id(self) -> str | None:
        """The practice agent of last time."""
        known = _remembered(self.memory).get("agent_id")
        return known if isinstance(known, str) else None


def prepare(paths: Paths, idle_seconds: float = DEFAULT_IDLE_SECONDS) -> DemoSetup:
    """Make the folders and choose a port. ``PathsError`` or ``KeeperError`` say in a sentence what failed.

    ``paths`` are those of the demo's own profile.
    """
    paths.create()
    root = paths.data / "demo"
    scratch = root / "scratch"
    keeper = KeeperPaths(paths.state, paths.runtime)
    memory = root / "demo.json"
    try:
        for folder in (root / "home", scratch):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        readme = scratch / "README.txt"
        if not readme.exists():
            readme.write_text(_WELCOME)
        port = _port(keeper, _remembered(memory))
        if _remembered(memory).get("port") != port:
            _remember(memory, port=port)
    except OSError as error:
        raise KeeperError(f"The demo cannot use {root}: {error.strerror or error}.", lasting=True) from None
    model = (
        sys.executable,
        "-m",
        "letta_tui.practice",
        "--port",
        str(port),
        "--log",
        str(root / "model.jsonl"),
    )
    options = KeeperOptions(
        server_env={
            "HOME": str(root / "home"),
            "LETTA_LOCAL_BACKEND_DIR": str(root / "backend"),
            # The model is on this machine, and keys of real services have no business here.
            "LETTA_API_KEY": None,
            "LETTA_BASE_URL": None,
        },
        cwd=scratch,
        companions=(model,),
        idle_seconds=idle_seconds,
    )
    return DemoSetup(keeper, options, scratch, f"http://127.0.0.1:{port}/v1", memory)


async def furnish(setup: DemoSetup) -> str:
    """Start keeper, model and server if they do not run, and return the id of the practice agent.

    Raises ``KeeperError`` with one sentence.
    """
    from letta_tui.keeper.client import ensure_keeper
    from letta_tui.transport import TransportError

    handle = await ensure_keeper(setup.paths, setup.options)
    try:
        return await _furnish(setup, handle)
    except TransportError as error:
        raise KeeperError(f"The demo's server cannot be used: {error.words}") from None
    finally:
        await handle.close()


async def _furnish(setup: DemoSetup, handle: KeeperHandle) -> str:
    from letta_tui.protocol import commands
    from letta_tui.transport import Client, embedded, open_connection

    where = await handle.endpoint()
    endpoint = embedded(where.url, identity="demo", token_file=where.token_file)
    client = Client(await open_connection(endpoint))
    try:
        providers = (await client.ask(commands.list_connect_providers())).raw.get("providers")
        if _base_url(providers) != setup.model_url:
            fields = {"baseUrl": setup.model_url, "apiKey": "practice"}
            await client.ask(commands.connect_provider(_PROVIDER, fields))
        known = setup.agent_id
        if known is not None:
            found = await client.request(commands.agent_retrieve(known))
            if found.answer is not None and found.answer.success:
                return known
        body = {"name": AGENT_NAME, "model": MODEL_HANDLE}
        agent = (await client.ask(commands.agent_create(body))).raw.get("agent")
        agent_id = str(agent["id"]) if isinstance(agent, Mapping) and agent.get("id") else ""
        if not agent_id:
            raise KeeperError("The demo's server made no agent.")
        await asyncio.to_thread(_remember, setup.memory, agent_id=agent_id)
        return agent_id
    finally:
        await client.close()


def _base_url(providers: object) -> str | None:
    """Where the server thinks the model is."""
    for provider in providers if isinstance(providers, list) else ():
        if isinstance(provider, Mapping) and provider.get("id") == _PROVIDER:
            connected = provider.get("connected")
            return connected.get("base_url") if isinstance(connected, Mapping) else None
    return None


def _port(keeper: KeeperPaths, memory: Mapping[str, Any]) -> int:
    """The port of last time if the model is still there or it is free; else another one.

    It should stay the same, because the server has it among its settings.
    """
    port = memory.get("port")
    if isinstance(port, int):
        from letta_tui.keeper.files import read_state

        saved = read_state(keeper.state_file).server
        # In this order: a model that is ending right now may still have the port when it is asked for.
        if saved is not None and any(companion.alive() for companion in saved.companions):
            return port
        if _free(port):
            return port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the model itself will
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            return False
    return True


def _remembered(memory: Path) -> dict[str, Any]:
    try:
        raw = json.loads(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return raw if isinstance(raw, dict) else {}


def _remember(memory: Path, **values: object) -> None:
    from letta_tui.keeper.files import write_private

    write_private(memory, json.dumps({**_remembered(memory), **values}))
