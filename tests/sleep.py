"""``python -m tests.sleep --seconds 120``: the program is stopped in mid-turn, and goes on much later.

SIGSTOP is what a laptop's lid looks like from outside. Once the window alone is stopped, once window, keeper
and server together; each with a second message in the queue, and with an approval pending. After SIGCONT the
screen has to become the truth without a key being pressed: replies whole, each message run once and
"delivered", the approval there and answered once, nothing left "sending", the next message answered.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.terminal.conftest import Demo
from tests.terminal.screen import Terminal

WHO = ("window", "window, keeper and server")
DURING = ("queue", "approval")
AWAKE_SECONDS = 60  # for the screen to become true


@dataclass
class Told:
    """What was seen of one stop."""

    name: str
    seconds_to_truth: float = 0.0
    first: str = ""  # the lines about connection and activity half a second after SIGCONT
    wrong: list[str] = field(default_factory=list)


def stopped(demo: Demo, terminal: Terminal, who: str, seconds: float) -> None:
    pids = [terminal.process.pid]
    if who != "window":
        status = demo.keeper()
        pids += [status["pid"], status["server_pid"]]
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
    finally:
        for pid in reversed(pids):
            os.kill(pid, signal.SIGCONT)


def bar(screen: str) -> str:
    """The parts of the screen that say how things stand."""
    words = re.compile(r"Connect|Ready|Working|Wait|Check|asleep|slept|Queue|queued|sending|allow", re.I)
    return " / ".join(line.strip() for line in screen.splitlines() if words.search(line))[:300]


def play(demo: Demo, who: str, during: str, seconds: float) -> Told:
    told = Told(f"{who} / {during}")
    mark = f"z{uuid.uuid4().hex[:9]}"
    with demo.ready("--new") as terminal:
        part = queue if during == "queue" else approval
        then = part(demo, terminal, mark)
        stopped(demo, terminal, who, seconds)
        woken = time.monotonic()
        time.sleep(0.5)
        told.first = bar(terminal.text)
        try:
            then(told)
            terminal.wait("Ready", AWAKE_SECONDS)
            told.seconds_to_truth = time.monotonic() - woken
            terminal.say(f"[[say usable-{mark}]]")
            terminal.wait_for(rf"^ *usable-{mark} *$", 30)
            terminal.wait_for(rf"usable-{mark}\]\]  ✓", 30)
            terminal.leave()
        except AssertionError as error:
            told.wrong.append(str(error))
    rows = [row for row in demo.ledger() if mark in row["text"]]
    told.wrong += [f"{row['state']}: {row['text']}" for row in rows if row["state"] != "delivered"]
    # While the window alone stood still, the keeper saw how they ended.
    told.wrong += [f"{row['turn']}: {row['text']}" for row in rows if row["turn"] != "done"]
    if len(rows) != (3 if during == "queue" else 2):
        told.wrong.append(f"{len(rows)} messages in the ledger")
    for word in (f"one-{mark}", f"two-{mark}", f"usable-{mark}", f"{mark}.txt"):
        if demo.runs(word) > 1:
            told.wrong.append(f"{word} ran {demo.runs(word)} times")
    return told


def queue(demo: Demo, terminal: Terminal, mark: str) -> Callable[[Told], None]:
    tag = mark[:4]
    terminal.say(f"one-{mark} [[words 150 rate=5 tag={tag}]]")
    terminal.wait(f"{tag}0004")
    terminal.say(f"two-{mark} [[say second-{mark}]]")
    terminal.wait("1 message waits")

    def then(told: Told) -> None:
        terminal.wait_for(rf"^ *second-{mark} *$", AWAKE_SECONDS)
        screen = terminal.wait(f"{tag}0149")
        if screen.count(f"{tag}0149") != 1:
            told.wrong.append("the reply is on the screen twice")

    return then


def approval(demo: Demo, terminal: Terminal, mark: str) -> Callable[[Told], None]:
    file = demo.scratch / f"{mark}.txt"
    terminal.say(f"[[run echo x >> {file.name}]]")
    terminal.wait("F8 allow")

    def then(told: Told) -> None:
        terminal.wait("F8 allow", AWAKE_SECONDS)
        if file.exists():
            told.wrong.append("the tool ran without an answer")
        terminal.press("f8")
        again = time.monotonic() + AWAKE_SECONDS
        while time.monotonic() < again:
            screen = terminal.wait(lambda text: "TOOLDONE" in text or "F8 allow" in text, AWAKE_SECONDS)
            if "TOOLDONE" in screen:
                break
            # Pressed while the connection was made anew, it is given back with words that say so.
            time.sleep(1)
            terminal.press("x", "backspace", "f8")
        lines = file.read_text().count("x\n") if file.exists() else 0
        if lines != 1:
            told.wrong.append(f"the tool ran {lines} times; the screen: {bar(terminal.text)}")

    return then


def alone(who: str, during: str, seconds: float) -> Told:
    """One stop in a demo of its own."""
    # Short, so that sockets are below it as well.
    folder = Path(tempfile.mkdtemp(prefix="letta-tui-sleep-"))
    demo = Demo(folder)
    try:
        return play(demo, who, during, seconds)
    except AssertionError as error:
        return Told(f"{who} / {during}", wrong=[str(error)])
    finally:
        demo.command("keeper", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sleep", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    given = parser.parse_args()
    with ThreadPoolExecutor() as pool:  # they mostly do nothing
        runs = [pool.submit(alone, who, during, given.seconds) for who in WHO for during in DURING]
        found = [run.result() for run in runs]
    for told in found:
        print(f"{told.name}: true {told.seconds_to_truth:.1f} s after {given.seconds:g} s of standing still")
        print(f"    half a second after: {told.first}")
        for words in told.wrong:
            print(f"    WRONG: {words}")
    wrong = sum(len(told.wrong) for told in found)
    print(f"{len(found)} stops, {wrong} violations")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
