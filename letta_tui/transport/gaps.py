"""What is done about missing events: at most one ``sync`` under way, and never a storm.

A jump in ``event_seq`` may be spurious: the counter is shared between runtimes, and over two sockets an
event can overtake another. So a jump is first given time to be filled; what stays missing is answered by
one ``sync`` for each runtime in use, never with approval recovery, which would stage denials. A ``sync``
replays state but no text: whoever draws text reads history afresh when ``on_sync`` tells it to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from letta_tui.protocol import Runtime, commands
from letta_tui.transport.client import Client
from letta_tui.transport.connection import TransportError
from letta_tui.transport.plane import Gap


class GapSync:
    """Attaches itself to a client. All times are seconds.

    A jump has ``settle`` to be filled. After a ``sync`` the next one is at least ``quiet`` away, and twice
    as far after each further one, up to ``longest``; a quiet time without a gap starts over.
    """

    def __init__(
        self,
        client: Client,
        runtimes: Callable[[], Iterable[Runtime]],
        *,
        on_sync: Callable[[int], None] | None = None,
        settle: float = 0.5,
        quiet: float = 5.0,
        longest: float = 80.0,
    ) -> None:
        self._client = client
        self._runtimes = runtimes
        self._on_sync = on_sync
        self._settle = settle
        self._quiet = quiet
        self._longest = longest
        self._task: asyncio.Task[None] | None = None
        self.syncs = 0
        self.healed = 0  # jumps that were filled in time
        client.on_gap = self.note

    def note(self, gap: Gap) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._settle_gaps(), name=f"sync {self._client.connection_id}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _settle_gaps(self) -> None:
        sequence = self._client.sequence
        wait = self._quiet
        try:
            while True:
                await asyncio.sleep(self._settle)
                missing = sequence.missing
                if missing == 0:
                    self.healed += 1
                    return
                sequence.forgive()
                for runtime in tuple(self._runtimes()):
                    await self._client.request(commands.sync(runtime, recover_approvals=False))
                self.syncs += 1
                if self._on_sync is not None:
                    self._on_sync(missing)
                await asyncio.sleep(wait)
                wait = min(self._longest, wait * 2)
                if sequence.missing == 0:
                    return
        except TransportError:
            return  # the connection is gone, or so slow that whoever probes it will say so
