"""The default conversation: opened when it is asked for by name, and told about what it shares."""

from __future__ import annotations

from pathlib import Path

import pytest

from letta_tui.worker.config import Target
from tests.support.seat import Seat, config_for
from tests.support.server import RealServer

pytestmark = pytest.mark.real


async def test_the_default_conversation_is_opened_with_a_warning(
    own_server: RealServer, tmp_path: Path
) -> None:
    target = Target(agent_id=own_server.agent_id, default=True)
    seat = Seat.start(config_for(own_server, tmp_path / "ours", target=target))
    try:
        await seat.ready()
        assert seat.status.conversation_id == "default"
        await seat.said("[[say by default]]")
        await seat.reply("by default")
        await seat.rest()
        assert sum("share one lock" in notice for notice in seat.notices) == 1
    finally:
        await seat.quit()
