"""A direct server gets the same protection as the embedded one: a keeper that only stays subscribed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from letta_tui.commands.wiring import beside, keepers_beside
from letta_tui.keeper.options import KeeperOptions, KeeperPaths
from letta_tui.transport.endpoint import direct
from tests.support.server import RealServer, person_env, until
from tests.terminal.screen import Terminal

pytestmark = pytest.mark.real


class Program:
    """The program with everything of its own below ``folder``, in front of a server started by hand."""

    def __init__(self, folder: Path, server: RealServer) -> None:
        self.folder, self.server = folder, server
        self.env = person_env(folder, folder / "data")

    def chat(self, conversation: str) -> Terminal:
        argv = [
            sys.executable, "-m", "letta_tui", "--url", self.server.url, "--token-file",
            str(self.server.token_file), "--agent", self.server.agent_id, "--conversation", conversation,
        ]  # fmt: skip
        return Terminal(argv, self.env, self.folder)

    def keeper(self, what: str) -> dict[str, Any]:
        argv = [sys.executable, "-m", "letta_tui", "keeper", what, "--json"]
        done = subprocess.run(argv, env=self.env, capture_output=True, text=True, timeout=60, check=True)
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


@pytest.fixture
def program(tmp_path: Path, letta_server: RealServer) -> Iterator[Program]:
    one = Program(tmp_path, letta_server)
    try:
        yield one
    finally:
        one.keeper("stop")


async def test_a_turn_outlives_the_killed_window(program: Program, letta_server: RealServer) -> None:
    conversation = await letta_server.conversation()
    with program.chat(conversation) as terminal:
        terminal.wait("safe to close", timeout=40)
        terminal.say("[[words 30 rate=20; say THE VERY END]]")
        terminal.wait("Esc stops")
        terminal.kill()
    (keeper,) = program.keeper("status")["direct"]
    assert keeper["holds"] == keeper["busy"] == [[letta_server.agent_id, conversation]]
    assert (keeper["windows"], keeper["owned"], keeper["server_url"]) == (0, False, letta_server.url)

    async def ended() -> bool:
        replies = [
            m for m in await letta_server.history(conversation) if m["message_type"] == "assistant_message"
        ]
        return any("THE VERY END" in str(reply) for reply in replies)

    await until(ended, 30)
    with program.chat(conversation) as terminal:
        told = "While you were away: the turn ended"
        terminal.wait(
            lambda text: text.count(told) == 2 and "Connected" in text and "F6 put away" in text, timeout=40
        )
        terminal.press("f6")
        terminal.wait(lambda text: text.count(told) == 1)  # the line stays, the card goes
    assert program.keeper("stop") == {"stopped": True, "windows": 0}
    assert program.keeper("status")["direct"] == []
    os.kill(letta_server.pid, 0)  # it is not the keeper's to end


def test_a_token_travels_to_the_keeper_without_being_shown() -> None:
    options = KeeperOptions(url="ws://h/ws", token="s3cret", token_command=("pass", "x"), ca_file=Path("/c"))
    assert KeeperOptions.from_json(options.to_json()) == options
    assert "s3cret" not in repr(options)


def test_each_server_has_folders_of_its_own(tmp_path: Path) -> None:
    paths = KeeperPaths(tmp_path / "state", tmp_path / "run")
    assert keepers_beside(paths) == []
    one = beside(paths, direct("ws://127.0.0.1:1/ws"))
    two = beside(paths, direct("ws://127.0.0.1:2/ws"))
    for each in (one, two):
        each.state.mkdir(parents=True)
    assert set(keepers_beside(paths)) == {one, two}
    assert len({one.state, two.state, paths.state, one.runtime, two.runtime, paths.runtime}) == 6
