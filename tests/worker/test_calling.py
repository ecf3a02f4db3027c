"""A window in a terminal that nobody sees: the keeper calls in its place, and only then."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from letta_tui.seam.intents import FocusChanged
from letta_tui.seam.updates import Attention
from letta_tui.worker import calling
from letta_tui.worker.calling import in_detached_tmux
from tests.worker.fake import AGENT
from tests.worker.world import Keeper, World


@pytest.mark.parametrize(
    ("focused", "unseen", "notifications", "called"),
    [
        (False, True, "on", True),
        (False, False, "on", False),  # the terminal is there: the window rings in it
        (True, True, "on", False),
        (False, True, "bell", False),
    ],
)
async def test_the_keeper_calls_for_a_window_that_nobody_sees(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    focused: bool,
    unseen: bool,
    notifications: str,
    called: bool,
) -> None:
    monkeypatch.setattr(calling, "in_detached_tmux", lambda: unseen)
    keeper = Keeper(world.server)
    seat = await world.window(
        endpoint=None, keeper=keeper, long_turn=0.0, notifications=notifications, hold_wait=0.0
    )
    seat.send(FocusChanged(focused))
    await seat.said("hello")
    await seat.until(lambda: any(isinstance(update, Attention) for update in seat.seen), what="a call")
    await seat.rest()
    assert keeper.called == ([(AGENT, "conv-1", "turn_ended")] if called else [])


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
async def test_a_detached_session_is_known(tmp_path: Path) -> None:
    def tmux(*words: str) -> str:
        argv = ["tmux", "-S", str(tmp_path / "s"), "-f", "/dev/null", *words]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()

    tmux("new-session", "-d", "sleep 60")
    try:
        pane = tmux("display-message", "-p", "#{pane_id}")
        inside = {"PATH": os.environ["PATH"], "TMUX": f"{tmp_path / 's'},1,0", "TMUX_PANE": pane}
        assert in_detached_tmux(inside)
        assert not in_detached_tmux({**inside, "TMUX": f"{tmp_path / 'gone'},1,0"})
        assert not in_detached_tmux({"PATH": inside["PATH"]})
    finally:
        tmux("kill-server")
