"""A small sample of ``python -m tests.send_loop``: random kills, and what the exit codes say."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.send_loop import Loop
from tests.support.server import RealServer

pytestmark = pytest.mark.real


@pytest.mark.long
async def test_a_killed_send_is_run_again_by_its_id(letta_server: RealServer, tmp_path: Path) -> None:
    loop = Loop(letta_server, tmp_path, random.Random(7), kill=0.9)
    counts = await loop.run(2, 2, kinds=("answer", "approve"))
    assert counts.killed >= 1
    assert counts.violations == []
