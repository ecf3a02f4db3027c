"""A small sample of ``python -m tests.send_loop``: random kills, and what the exit codes say."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.send_loop import Loop
from tests.support.server import RealServer

pytestmark = pytest.mark.real


async def test_a_killed_send_is_run_again_by_its_id(letta_server: RealServer, tmp_path: Path) -> None:
    for name in ("home", "data"):
        (tmp_path / name).mkdir()
    counts = await Loop(letta_server, tmp_path, random.Random(7), kill=0.6).run(4, 2, show=False)
    assert counts.killed >= 2
    assert counts.violations == []
