"""What goes wrong before a conversation is open: one clear sentence on the screen."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server import RealServer, person_env
from tests.terminal.screen import Terminal

pytestmark = [pytest.mark.terminal]


def environment(folder: Path) -> dict[str, str]:
    return person_env(folder / "home", folder / "data")


def start(folder: Path, *arguments: str, **extra: str) -> Terminal:
    argv = [sys.executable, "-m", "letta_tui", *arguments]
    return Terminal(argv, {**environment(folder), **extra}, folder, (110, 30))


@pytest.fixture(autouse=True)
def no_keeper_is_left(tmp_path: Path) -> Iterator[None]:
    yield
    argv = [sys.executable, "-m", "letta_tui", "keeper", "stop"]
    subprocess.run(argv, env=environment(tmp_path), cwd=tmp_path, check=True, capture_output=True, timeout=60)


def leave(terminal: Terminal) -> None:
    terminal.press("ctrl+q")
    terminal.ended()
    assert terminal.restored()
    assert b"Traceback" not in terminal.raw


def test_a_port_nobody_listens_on(tmp_path: Path) -> None:
    with start(tmp_path, "--url", "ws://127.0.0.1:9/ws") as terminal:
        terminal.wait("Nothing listens at 127.0.0.1:9")
        leave(terminal)


def test_a_wrong_token(tmp_path: Path, letta_server: RealServer) -> None:
    wrong = tmp_path / "token"
    wrong.write_text("not-the-token")
    with start(tmp_path, "--url", letta_server.url, "--token-file", str(wrong)) as terminal:
        terminal.wait_for("(?i)token")
        leave(terminal)
        assert b"not-the-token" not in terminal.raw


def test_an_unknown_conversation_is_a_question_and_nothing_is_made(
    tmp_path: Path, letta_server: RealServer
) -> None:
    arguments = ["--url", letta_server.url, "--token-file", str(letta_server.token_file)]
    arguments += ["--agent", letta_server.agent_id, "--conversation", "local-conv-98765"]
    with start(tmp_path, *arguments) as terminal:
        terminal.wait_for(r"(?i)conversation.*(exist|gone|not found|no longer)")
        leave(terminal)


def test_no_letta_is_told_before_the_screen_is_taken(tmp_path: Path) -> None:
    with start(tmp_path, LETTA_CLI_PATH=str(tmp_path / "nothing")) as terminal:
        assert terminal.ended() == 1
        terminal.wait("no letta program at")
        assert "1049" not in terminal.modes


def test_a_server_started_by_hand_is_come_back_to(tmp_path: Path, letta_server: RealServer) -> None:
    arguments = ["--url", letta_server.url, "--token-file", str(letta_server.token_file)]
    with start(tmp_path, *arguments, "--agent", letta_server.agent_id) as terminal:
        # Before that, Enter keeps the text and says that the conversation is not open yet.
        terminal.wait("Ready", timeout=30)
        terminal.say("[[say over the wire]]")
        # The composer shows the words too: only the row and its reply say that they were sent.
        terminal.wait(lambda s: s.count("over the wire") > 1 and "Message Practice" in s and "Ready" in s)
        terminal.kill()
    with start(tmp_path) as terminal:  # nothing is named: the last conversation, on the server it was on
        terminal.wait("over the wire", timeout=30)
        leave(terminal)


def test_a_data_folder_that_takes_nothing_ends_with_one_sentence(tmp_path: Path) -> None:
    data = tmp_path / "data" / "profiles" / "default"
    data.mkdir(parents=True)
    (data / "ledger.sqlite3.lock").mkdir()  # root may write anywhere, but not into this
    with start(tmp_path, "--url", "ws://127.0.0.1:9/ws") as terminal:
        assert terminal.ended() == 1
        terminal.wait("ledger")
        assert b"Traceback" not in terminal.raw
        assert terminal.restored()
