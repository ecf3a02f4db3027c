"""A window that is stopped, not read, or asleep: its turn goes on, and it catches up."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.terminal.conftest import READY, Demo
from tests.terminal.screen import LASTING_MODES, Terminal

pytestmark = [pytest.mark.terminal, pytest.mark.real]


def wait(condition: Callable[[], object], what: str, timeout: float = 60.0) -> None:
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def turn_over(demo: Demo) -> bool:
    status = demo.keeper()
    return status["running"] and not status["busy"]


def last_turn(demo: Demo) -> float:
    """How long the last turn took, in seconds, as the keeper saw it."""
    notes = [json.loads(line) for line in (demo.profile / "state" / "ends.jsonl").read_text().splitlines()]
    return float([note["seconds"] for note in notes if note["kind"] == "turn"][-1])


@pytest.mark.parametrize(
    ("deltas", "seconds"),
    [pytest.param(600, 0.0, marks=pytest.mark.long), pytest.param(10_000, 30.0, marks=pytest.mark.long)],
)
def test_a_terminal_that_nobody_reads_holds_nothing_up(
    demo: Demo, mark: str, deltas: int, seconds: float
) -> None:
    tag = mark[:3]
    with demo.ready("--new") as terminal:
        terminal.say(f"{mark} [[words {deltas} rate=1000 tag={tag} para=50]]")
        terminal.wait(f"{tag}0002")
        with terminal.unread():
            time.sleep(seconds)
            wait(lambda: turn_over(demo), "the turn ends although nobody reads", 60 + 6 * seconds)
        alone = last_turn(demo)
        terminal.wait(f"{tag}{deltas - 1:04}", timeout=30)
        terminal.wait("Ready")
        _and_goes_on(terminal, mark)
        if seconds:
            terminal.say(f"[[words {deltas} rate=1000 tag=r{tag} para=50]]")
            terminal.wait(f"r{tag}{deltas - 1:04}", timeout=120)
            terminal.wait("Ready")
            print(f"\n{deltas} deltas: {alone} s while nobody reads, {last_turn(demo)} s while somebody does")
        terminal.leave()
    assert demo.runs(mark) == 1


@pytest.mark.parametrize("seconds", [0.0, pytest.param(120.0, marks=pytest.mark.long)])
def test_suspended_with_ctrl_z_it_comes_back_to_a_finished_turn(
    demo: Demo, mark: str, seconds: float
) -> None:
    tag = mark[:3]
    env = {**demo.env, "PS1": "shell> "}
    with Terminal(["bash", "--norc", "--noprofile", "-i"], env, demo.folder) as terminal:
        terminal.wait("shell>")
        terminal.say(f"{sys.executable} -m letta_tui demo --new")
        terminal.wait(READY, timeout=60)
        terminal.say(f"{mark} [[words 60 rate=20 tag={tag}]]")
        terminal.wait(f"{tag}0002")
        terminal.press("ctrl+z")
        terminal.wait("Stopped")
        left_on = terminal.modes & LASTING_MODES
        assert left_on <= {"2004"}  # the shell has its terminal back, and turns this on for itself
        time.sleep(seconds)
        wait(lambda: turn_over(demo), "the turn ends while the window is stopped")
        assert f"{tag}0059" not in terminal.text
        terminal.say("fg")
        terminal.wait(f"{tag}0059", timeout=30)
        terminal.wait("✓")  # said only with the history row in hand
        if seconds:
            terminal.wait("Meanwhile (2 min): the turn ended after")  # the keeper was there
        assert "nobody watched" not in terminal.text
        _and_goes_on(terminal, mark)
        terminal.press("ctrl+q")
        terminal.wait("shell>")
    assert demo.runs(mark) == 1
    row = next(row for row in demo.ledger() if mark in row["text"])
    assert row["state"] == "delivered"
    assert row["turn"] == "done"


def test_a_terminal_that_hangs_up_in_mid_turn_costs_nothing(demo: Demo, mark: str) -> None:
    tag = mark[:3]
    with demo.ready("--new") as terminal:
        terminal.say(f"{mark} [[words 30 rate=20 tag={tag}]]")
        terminal.wait(f"{tag}0002")
        terminal.hang_up()
        assert terminal.ended() == 128 + signal.SIGHUP
    wait(lambda: turn_over(demo), "the turn ends although nobody is there")
    with demo.open() as terminal:
        terminal.wait(f"{tag}0029", timeout=40)
        terminal.wait("✓")
        terminal.wait("While you were away: the turn ended after")
        assert "nobody watched" not in terminal.text
        assert terminal.leave() == 0
    assert demo.runs(mark) == 1
    row = next(row for row in demo.ledger() if mark in row["text"])
    assert (row["state"], row["turn"]) == ("delivered", "done")
    assert "Its turn ended. The keeper saw it." in demo.command("explain", row["client_message_id"]).stdout


@pytest.mark.long
def test_everything_asleep_at_once_goes_on_where_it_was(demo: Demo, mark: str) -> None:
    tag = mark[:3]
    with demo.ready("--new") as terminal:
        terminal.say(f"{mark} [[words 60 rate=20 tag={tag}]]")
        terminal.wait(f"{tag}0002")
        status = demo.keeper()
        asleep = [terminal.process.pid, status["pid"], status["server_pid"]]
        with ExitStack() as waking:
            for pid in asleep:
                os.kill(pid, signal.SIGSTOP)
                waking.callback(os.kill, pid, signal.SIGCONT)
            time.sleep(8.0)  # longer than the gap at which a window takes itself for having slept
        terminal.wait(f"{tag}0059", timeout=40)
        terminal.wait("Connected", timeout=40)
        _and_goes_on(terminal, mark)
        terminal.leave()
    assert demo.runs(mark) == 1


@pytest.mark.long
def test_a_window_without_the_focus_calls_and_says_nothing_of_the_conversation(demo: Demo, mark: str) -> None:
    def called() -> list[bytes]:
        return re.findall(rb"\x1b\]9;([^\x07\x1b]*)", bytes(terminal.raw))

    with demo.ready("--new") as terminal:
        terminal.press("\x1b[O")  # the terminal says that somebody looks elsewhere
        terminal.say(f"{mark} [[words 5 rate=5 tag={mark[:3]}]]")
        terminal.wait(f"{mark[:3]}0004")
        terminal.wait("Ready")
        assert called() == []  # a short turn is quiet
        terminal.say(f"{mark} [[words 44 rate=4 tag=l{mark[:3]}]]")
        terminal.wait(f"l{mark[:3]}0043", timeout=40)
        terminal.wait("Ready")
        assert called() == [b"letta-tui: The turn has ended."]
        terminal.say(f"{mark} [[run touch never]]")
        terminal.wait("F9")
        assert called()[1:] == [b"letta-tui: A tool call waits for your answer."]
        terminal.press("\x1b[I", "f9")
        _and_goes_on(terminal, mark)
        assert len(called()) == 2
        terminal.leave()


def _and_goes_on(terminal: Terminal, mark: str) -> None:
    terminal.say(f"[[words 3 tag=z{mark[:3]}]]")
    terminal.wait(f"z{mark[:3]}0002")
    terminal.wait("Ready")
