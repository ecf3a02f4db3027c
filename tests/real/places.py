"""The ways to one real server, as a person would have them: each yields what a worker is started with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from letta_tui.transport.endpoint import Endpoint, direct, embedded, hosted
from letta_tui.worker.config import Target, WorkerConfig
from letta_tui.worker.ports import Whereabouts
from tests.support.seat import config_for
from tests.support.server import RealServer
from tests.transport.relay_double import TOKEN, RelayDouble, Trouble
from tests.transport.tls_front import certificate, tls_front

WAYS = ("embedded", "token", "tls", "relay")


class StandIn:
    """A keeper's place, for a server that runs already: knows where it is and holds by a client of its own."""

    def __init__(self, server: RealServer, stack: AsyncExitStack) -> None:
        self._server = server
        self._stack = stack
        self._socket: Any = None

    async def endpoint(self) -> Whereabouts:
        there = embedded(self._server.url, identity="tests", token_file=self._server.token_file)
        return Whereabouts(there, life="1", owned=False)

    async def hold(self, agent_id: str, conversation_id: str) -> bool:
        return True

    async def release(self, agent_id: str, conversation_id: str) -> None:
        return None

    async def restart_server(self) -> None:
        raise AssertionError("nobody asked for that")

    async def ends_since(self, agent_id: str, conversation_id: str, since: float) -> tuple[Any, ...]:
        return ()


@dataclass
class Way:
    name: str
    server: RealServer
    config: Callable[..., WorkerConfig]
    endpoint: Endpoint
    double: RelayDouble | None = None
    token: str = ""
    more: dict[str, Any] = field(default_factory=dict)


@asynccontextmanager
async def way_to(name: str, server: RealServer, folder: Path, trouble: Trouble | None = None) -> AsyncIterator[Way]:
    """``name`` is one of :data:`WAYS`; ``folder`` has the ledger and what the way itself needs."""
    async with AsyncExitStack() as stack:
        double: RelayDouble | None = None
        keeper: StandIn | None = None
        endpoint = direct(server.url, token_file=server.token_file)
        if name == "embedded":
            keeper = StandIn(server, stack)
            endpoint = (await keeper.endpoint()).endpoint
        elif name == "tls":
            folder.mkdir(parents=True, exist_ok=True)
            context, cert = certificate(folder)
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
