"""Calling a person who looks elsewhere: by the window, or by the keeper where nobody can see the window."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Mapping

from letta_tui.seam.updates import Attention
from letta_tui.worker.desk import Desk
from letta_tui.worker.ports import KeeperTrouble

_TMUX_SECONDS = 2.0


def in_detached_tmux(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this window is in a tmux session that no terminal shows: it rings there for nobody. Blocks."""
    pane = environ.get("TMUX_PANE")
    if not environ.get("TMUX") or not pane:
        return False
    try:
        done = subprocess.run(
            ["tmux", "display-message", "-p", "-t", pane, "#{session_attached}"],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TMUX_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.stdout.strip() == "0"


class Caller:
    """``focused``: whether the window has the focus, as far as its terminal tells."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.focused = True

    def call(self, attention: Attention) -> None:
        desk = self._desk
        desk.put(attention)
        if not self.focused and desk.config.keeper is not None and desk.config.notifications == "on":
            desk.tasks.spawn(self._by_keeper(attention), "call")

    async def _by_keeper(self, attention: Attention) -> None:
        place, keeper = self._desk.place, self._desk.config.keeper
        if place is None or keeper is None or not await asyncio.to_thread(in_detached_tmux):
            return
        with contextlib.suppress(KeeperTrouble):  # an older one does not know how, and the window has rung
            await keeper.call(place.agent_id, place.conversation_id, attention.what)
