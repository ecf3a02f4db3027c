"""``letta-tui keeper stop`` while windows are open: they start it again, and the person is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from letta_tui.commands.keeper import _stop_all, _stopped
from letta_tui.keeper.client import KeeperOptions, KeeperPaths, ensure_keeper, find_keeper
from tests.support.server import until


@pytest.mark.parametrize(
    ("windows", "words"),
    [
        (0, "The keeper and its server have ended."),
        (1, "A window is open, and starts what it needs again: close it first to end all of it."),
        (2, "2 windows are open, and start what they need again: close them first to end all of it."),
    ],
)
async def test_windows_that_are_open_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], windows: int, words: str
) -> None:
    paths = KeeperPaths(tmp_path / "state", tmp_path / "run")
    handles = [await ensure_keeper(paths, KeeperOptions()) for _ in range(windows + 1)]
    await handles.pop().close()

    async def counted() -> bool:
        found = await find_keeper(paths)
        assert found is not None
        handles.append(found)
        return (await found.status()).windows == windows

    await until(counted)
    stopped = await _stop_all(paths)
    _stopped(*stopped, as_json=False)
    assert words in capsys.readouterr().out
    for handle in handles:
        await handle.close()
