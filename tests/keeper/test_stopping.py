"""``letta-tui keeper stop`` while windows are open: they start it again, and the person is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from letta_tui.commands.keeper import _stop_all, _stopped
from letta_tui.keeper.client import KeeperOptions, KeeperPaths, ensure_keeper


@pytest.mark.parametrize(
    ("stopped", "words"),
    [
        ((True, False, 0), "The keeper and its server have ended.\n"),
        ((True, False, 1), "A window is open, and starts what it needs again: close it first"),
        ((False, True, 2), "2 windows are open, and start what they need again: close them first"),
        ((False, False, 0), "No keeper was running.\n"),
    ],
)
def test_what_is_said(
    capsys: pytest.CaptureFixture[str], stopped: tuple[bool, bool, int], words: str
) -> None:
    _stopped(*stopped, as_json=False)
    assert words in capsys.readouterr().out


async def test_open_windows_are_counted(tmp_path: Path) -> None:
    paths = KeeperPaths(tmp_path / "state", tmp_path / "run")
    handles = [await ensure_keeper(paths, KeeperOptions()) for _ in range(2)]
    assert await _stop_all(paths) == (True, False, 2)
    assert await _stop_all(paths) == (False, False, 0)
    for handle in handles:
        await handle.close()
