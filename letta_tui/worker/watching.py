"""Watching the clock and the line: sleep is noticed at once, and silence is probed, never punished."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from letta_tui.worker.away import AWAY
from letta_tui.worker.connecting import Connector
from letta_tui.worker.desk import Desk
from letta_tui.worker.sleep import Gap, Reading, gap_between

log = logging.getLogger(__name__)

TICK = 1.0
SILENT = 20.0  # seconds without a frame after which the line is probed
PROBE = 10.0  # seconds a live server has to answer


class Watch:
    """``away`` is called after a gap so long that the person may be gone: what was held is only offered."""

    def __init__(self, desk: Desk, connector: Connector) -> None:
        self._desk = desk
        self._connector = connector
        self.away: Callable[[Gap], None] = lambda gap: None
        self.ticks: tuple[Callable[[], None], ...] = ()  # each second

    async def run(self) -> None:
        before = self._read()
        probed = 0.0
        while True:
            await asyncio.sleep(TICK)
            now = self._read()
            gap = gap_between(before, now, TICK)
            before = now
            for tick in self.ticks:
                tick()
            if gap is not None:
                self._woke(gap)
                await self._probe(PROBE / 2)
                before = self._read()
                continue
            silent_since = max(self._connector.last_heard, probed)
            if self._desk.link is not None and now.mono - silent_since > SILENT:
                probed = now.mono
                await self._probe(PROBE)
                before = self._read()

    def _woke(self, gap: Gap) -> None:
        log.info("nothing ran here for %.0f s (asleep: %s)", gap.away, gap.slept)
        if self._desk.room is not None:
            self._desk.room.missed(self._desk.now() - gap.away - TICK)
        if gap.away >= AWAY:
            self.away(gap)
        self._connector.reconnect_now()

    async def _probe(self, timeout: float) -> None:
        link = self._desk.link
        if link is None:
            return
        if not await link.client.probe(timeout) and self._desk.link is link:
            await link.client.close()

    def _read(self) -> Reading:
        hands = self._desk.config.hands
        return Reading(hands.wall(), hands.mono(), hands.boot())
