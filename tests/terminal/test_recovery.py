"""kill -9 of everything we have, and what a person finds afterwards."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from tests.support.server import hold_between_writes
from tests.terminal.conftest import Demo

pytestmark = [pytest.mark.terminal, pytest.mark.real]


def replied(word: str) -> Callable[[str], bool]:
    """The reply stands in a line of its own; what was asked for is also in the composer, or in the queue."""
    return lambda screen: any(line.strip() == word for line in screen.splitlines())


def test_killed_in_mid_reply_it_comes_back_complete_with_the_draft(demo: Demo, mark: str) -> None:
    tag = mark[:3]
    with demo.ready("--new") as terminal:
        terminal.say(f"{mark} [[words 40 rate=10 tag={tag}]]")
        terminal.wait(f"{tag}0004")
        terminal.type("half a thought")
        terminal.wait(lambda _: demo.draft_saved("half a thought"), what="the draft on disk")
        terminal.kill()
        assert f"{tag}0039" not in terminal.text
    with demo.ready() as terminal:
        terminal.wait(f"{tag}0039", timeout=30)
        terminal.wait("half a thought")
        screen = terminal.wait("✓")  # said only with the history row in hand, once the turn is over
        assert screen.count(f"{tag}0020") == 1
        sent = [line for line in screen.splitlines() if line.startswith(" ▌") and mark in line]
        assert len(sent) == 1, screen
        terminal.leave()
    assert demo.runs(mark) == 1
    row = next(row for row in demo.ledger() if mark in row["text"])
    assert row["state"] == "delivered"


def test_a_pending_approval_survives_and_can_be_answered(demo: Demo, mark: str) -> None:
    file = demo.scratch / f"{mark}.txt"
    with demo.ready("--new") as terminal:
        terminal.say(f"[[run echo x >> {file.name}]]")
        terminal.wait("F8 allow")
        terminal.kill()
    with demo.ready() as terminal:
        terminal.wait("F8 allow")
        assert not file.exists()
        terminal.press("f8")
        terminal.wait("TOOLDONE")
        assert file.read_text() == "x\n"
        terminal.leave()


def test_view_and_keeper_killed_the_server_is_adopted(demo: Demo, mark: str) -> None:
    with demo.ready("--new") as terminal:
        terminal.say(f"{mark} [[say before-{mark[:4]}]]")
        terminal.wait(replied(f"before-{mark[:4]}"))  # as asked for, and as answered
        terminal.wait("Ready")
        before = demo.keeper()
        os.kill(before["pid"], signal.SIGKILL)
        terminal.kill()
    with demo.ready() as terminal:
        terminal.wait(f"before-{mark[:4]}")
        after = demo.keeper()
        assert after["pid"] != before["pid"]
        assert after["server_pid"] == before["server_pid"]
        terminal.say(f"[[say after-{mark[:4]}]]")
        terminal.wait(replied(f"after-{mark[:4]}"))
        terminal.leave()
    assert demo.runs(mark) == 1


def test_everything_killed_in_mid_reply_and_the_truth_is_told(demo: Demo, mark: str) -> None:
    tag = mark[:3]
    with demo.ready("--new") as terminal:
        terminal.say(f"{mark} [[words 60 rate=10 tag={tag}]]")
        terminal.wait(f"{tag}0004")
        status = demo.keeper()
        terminal.kill()
        os.kill(status["pid"], signal.SIGKILL)
        hold_between_writes(status["server_pid"], demo.profile / "demo" / "backend")
        os.kill(status["server_pid"], signal.SIGKILL)
    with demo.ready() as terminal:
        # The server runs journaled inputs again by itself; then that is said, and the reply is complete.
        terminal.wait(f"{tag}0059", timeout=40)
        terminal.wait("Ready", timeout=20)
        terminal.say(f"[[say usable-{mark[:4]}]]")
        terminal.wait(replied(f"usable-{mark[:4]}"))
        terminal.leave()
    runs = demo.runs(mark)
    row = next(row for row in demo.ledger() if mark in row["text"])
    assert row["state"] == "delivered"
    said = demo.command("explain", row["client_message_id"]).stdout
    assert runs == 1 or "again" in said, said


def test_stopping_the_keeper_leaves_nothing(demo: Demo) -> None:
    with demo.ready("--new") as terminal:
        terminal.leave()
    assert demo.keeper()["running"]
    done = demo.command("keeper", "stop")
    assert done.returncode == 0, done.stderr
    assert not demo.keeper()["running"]
    assert demo.leftovers() == []


@pytest.mark.parametrize("how", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.long)])
def test_a_signal_gives_the_terminal_back(demo: Demo, how: signal.Signals) -> None:
    with demo.ready("--new") as terminal:
        terminal.process.send_signal(how)
        terminal.ended()
        assert terminal.restored()
        assert b"Traceback" not in terminal.raw
