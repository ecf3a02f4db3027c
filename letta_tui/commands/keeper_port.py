"""The keeper as the worker wants it: found or started when needed, and found again when it died."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from letta_tui.conversation.turn import outcome_of
from letta_tui.keeper.errors import KeeperError
from letta_tui.keeper.options import KeeperOptions, KeeperPaths
from letta_tui.seam.state import TurnOutcome
from letta_tui.transport.endpoint import Endpoint, embedded
from letta_tui.worker.ports import EndNote, KeeperTrouble, Variables, Whereabouts

if TYPE_CHECKING:
    from letta_tui.keeper.client import KeeperHandle
    from letta_tui.keeper.ends import End

T = TypeVar("T")

Ensure = Callable[[KeeperPaths, KeeperOptions], Awaitable["KeeperHandle"]]


async def _ensure_keeper(paths: KeeperPaths, options: KeeperOptions) -> KeeperHandle:
    from letta_tui.keeper.client import ensure_keeper  # the window is drawn by the time it is needed

    return await ensure_keeper(paths, options)


class KeeperAdapter:
    """Implements :class:`letta_tui.worker.ports.KeeperPort`. Lives in the worker's event loop only.

    ``identity`` names the embedded server in everything that is stored: its port changes at every start.
    ``server``: one that somebody else runs. It is reached without the keeper, which only stays subscribed.
    ``variables``: what the config file wants in the environment of the embedded one.
    """

    def __init__(
        self,
        paths: KeeperPaths,
        options: KeeperOptions,
        identity: str,
        ensure: Ensure = _ensure_keeper,
        *,
        server: Endpoint | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._server = server
        self._variables = variables or {}
        self._paths = paths
        self._options = options
        self._identity = identity
        self._ensure = ensure
        self._handle: KeeperHandle | None = None
        self._lock = asyncio.Lock()

    async def endpoint(self) -> Whereabouts:
        """Where the server is now; a keeper and a server are started when none lives."""
        if self._server is not None:
            return Whereabouts(self._server)
        address = await self._with(lambda handle: handle.endpoint())
        endpoint = embedded(address.url, identity=self._identity, token_file=address.token_file)
        return Whereabouts(endpoint, life=address.life, owned=address.owned, note=address.note)

    async def variables(self) -> Variables | None:
        if self._server is not None:
            return Variables(settable=False)
        if not self._variables:
            return Variables()
        from letta_tui.keeper.sharing import set_otherwise

        pid = (await self._with(lambda handle: handle.status())).server_pid
        wanted = tuple(sorted(self._variables))
        different = await asyncio.to_thread(set_otherwise, pid, self._variables) if pid is not None else None
        return None if different is None else Variables(wanted, different)

    async def hold(self, agent_id: str, conversation_id: str) -> bool:
        return await self._with(lambda handle: handle.hold(agent_id, conversation_id))

    async def release(self, agent_id: str, conversation_id: str) -> None:
        known = self._handle
        if known is None:
            return
        try:
            await known.release(agent_id, conversation_id)
        except KeeperError as error:
            if not known.gone:
                raise _trouble(error) from None
            await self._drop(known)  # no keeper is started only to let go: one that has died holds nothing

    async def call(self, agent_id: str, conversation_id: str, what: str) -> None:
        await self._with(lambda handle: handle.call(agent_id, conversation_id, what))

    async def restart_server(self) -> None:
        await self._with(lambda handle: handle.restart_server())

    async def ends_since(self, agent_id: str, conversation_id: str, since: float) -> Sequence[EndNote]:
        ends = await self._with(
            lambda handle: handle.ends_since(since, agent_id or None, conversation_id or None)
        )
        return tuple(note_of(end) for end in ends)

    async def _with(self, ask: Callable[[KeeperHandle], Awaitable[T]]) -> T:
        """Ask the keeper; once more with a fresh one when the one we knew is gone."""
        known = self._handle
        if known is not None:
            try:
                return await ask(known)
            except KeeperError as error:
                if not known.gone:
                    raise _trouble(error) from None
                await self._drop(known)
        handle = await self._fresh()
        try:
            return await ask(handle)
        except KeeperError as error:
            if handle.gone:
                await self._drop(handle)
            raise _trouble(error) from None

    async def _fresh(self) -> KeeperHandle:
        async with self._lock:
            if self._handle is None:
                try:
                    self._handle = await self._ensure(self._paths, self._options)
                except KeeperError as error:
                    raise _trouble(error) from None
            return self._handle

    async def _drop(self, handle: KeeperHandle) -> None:
        if self._handle is handle:
            self._handle = None
        with contextlib.suppress(Exception):  # it may be gone already, in any state
            await handle.close()


def _trouble(error: KeeperError) -> KeeperTrouble:
    return KeeperTrouble(str(error), lasting=error.lasting)


def note_of(end: End) -> EndNote:
    """A keeper's record in the worker's words."""
    outcome: TurnOutcome
    if end.kind == "approval" or end.stop_reason == "requires_approval":
        outcome = "awaiting_approval"
    elif end.kind == "error":
        outcome = "failed"
    elif end.kind == "turn":
        outcome = outcome_of(end.stop_reason)
    else:
        outcome = "none"
    return EndNote(
        when=end.at,
        agent_id=end.agent_id,
        conversation_id=end.conversation_id,
        outcome=outcome,
        words=end.words,
        what="end" if end.kind == "turn" else end.kind,
        tools=end.tools,
        denied=end.denied,
        seconds=end.seconds,
        inputs=end.inputs,
        stop_reason=end.stop_reason,
        turn_id=end.turn_id,
        run_id=end.run_id,
    )
