"""The ways to one real server, as a person would have them: each yields what a worker is started with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from letta_tui.transport.endpoint import Endpoint, direct, embedded, hosted
from letta_tui.worker.config import Target, WorkerConfig
from tests.real.seat_anywhere import Held
from tests.support.seat import config_for
from tests.support.server import RealServer
from tests.transport.relay_double import TOKEN, RelayDouble, Trouble
from tests.transport.tls_front import certificate, tls_front

WAYS = ("embedded", "token", "tls", "relay")


@dataclass
class Way:
    name: str
    server: RealServer
    config: Callable[..., WorkerConfig]
    endpoint: Endpoint
    double: RelayDouble | None = None


@asynccontextmanager
async def way_to(
    name: str, server: RealServer, folder: Path, trouble: Trouble | None = None
) -> AsyncIterator[Way]:
    """``name`` is one of :data:`WAYS`; ``folder`` has the ledger and what the way itself needs."""
    async with AsyncExitStack() as stack:
        double: RelayDouble | None = None
        keeper: Held | None = None
        endpoint = direct(server.url, token_file=server.token_file)
        if name == "embedded":
            endpoint = embedded(server.url, identity="tests", token_file=server.token_file)
            keeper = Held(endpoint)
        elif name == "tls":
            context, cert = certificate(folder.parent)
            url = await stack.enter_async_context(tls_front(server.url, context, "/letta"))
            endpoint = direct(url, token_file=server.token_file, ca_file=cert)
        elif name == "relay":
            double = await stack.enter_async_context(RelayDouble(trouble))
            await double.attach(server.url, server.token)
            double.make_conversation = server.conversation
            double.agents = [{"id": server.agent_id, "name": "Practice"}]
            endpoint = hosted(double.base, device_id="device-1", token=TOKEN)

        def config(**changes: Any) -> WorkerConfig:
            values: dict[str, Any] = {"endpoint": None if keeper else endpoint, "keeper": keeper}
            values["target"] = Target(agent_id=server.agent_id, new=True)
            return config_for(server, folder, **{**values, **changes})

        yield Way(name, server, config, endpoint, double)
