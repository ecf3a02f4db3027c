"""From the command to a conversation on the screen, beside an empty Textual app in the same terminal. Unix.

``python -m tests.benchmarks.start [RUNS]`` (7 unless told). In turns: an empty app; the program while its
keeper runs; the program with neither keeper nor server. *Painted*: the last words of the conversation stand
on the screen, from the local cache. *Settled*: the server has been asked, and "Connected" is said. Medians
of one run, and ratios to the empty app.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import statistics
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from tests.terminal.conftest import Demo

EMPTY = """
from textual.app import App
from textual.widgets import Input, Static
class Empty(App):
    def compose(self):
        yield Static('F1 help')
        yield Input()
Empty().run()
"""
FIRST, LAST_WORDS, CONNECTED = b"F1", b"zeb0079", b"Connected"
PATIENCE = 60.0  # seconds
OURS = [sys.executable, "-m", "letta_tui", "demo"]

Moment = tuple[float, float]  # seconds since the command: of the clock, of the processor (this process alone)


def moments(argv: Sequence[str], env: Mapping[str, str], marks: Sequence[bytes]) -> list[Moment]:
    """When each of ``marks`` was in what the program has written, in any order. It is killed then."""
    began = time.monotonic()
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(argv[0], list(argv), dict(env))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    process, written, found = psutil.Process(pid), b"", dict[bytes, Moment]()
    try:
        while len(found) < len(marks):
            if time.monotonic() - began > PATIENCE:
                raise TimeoutError(f"nothing drawn by {' '.join(argv)}: {written[-400:]!r}")
            if not select.select([terminal], [], [], 0.01)[0]:
                continue
            written += os.read(terminal, 65536)
            for mark in marks:
                if mark not in found and mark in written:
                    used = process.cpu_times()
                    found[mark] = time.monotonic() - began, used.user + used.system
        return [found[mark] for mark in marks]
    finally:
        process.kill()
        os.waitpid(pid, 0)
        os.close(terminal)


def prepare(demo: Demo) -> None:
    """A conversation to come back to."""
    with demo.ready("--new", size=(120, 40)) as terminal:
        terminal.say("[[words 80 rate=1000 tag=zeb]]")
        terminal.wait("zeb0079")
        terminal.wait("✓")
        terminal.leave()


def main(runs: int = 7) -> None:
    seen: dict[str, list[Moment]] = {}

    def note(names: Sequence[str], found: Sequence[Moment]) -> None:
        for name, moment in zip(names, found, strict=True):
            seen.setdefault(name, []).append(moment)

    with tempfile.TemporaryDirectory(prefix="lt-start-") as name:
        demo = Demo(Path(name))
        ours = (FIRST, LAST_WORDS, CONNECTED)
        try:
            prepare(demo)
            for _ in range(runs):
                note(["an empty Textual app"], moments([sys.executable, "-c", EMPTY], demo.env, [FIRST]))
                steps = ["first picture", "conversation painted", "settled"]
                note([f"keeper runs: {step}" for step in steps], moments(OURS, demo.env, ours))
                demo.command("keeper", "stop")
                note([f"cold: {step}" for step in steps], moments(OURS, demo.env, ours))
        finally:
            demo.command("keeper", "stop")
    empty = seen["an empty Textual app"]
    print(f"From the command on, median of {runs}: seconds, and as a ratio to the empty app")
    for name, found in seen.items():
        clock, cpu = (statistics.median(m[n] for m in found) for n in (0, 1))
        times = [clock / statistics.median(m[0] for m in empty), cpu / statistics.median(m[1] for m in empty)]
        print(f"  {name:<34} {clock:6.2f} s {times[0]:6.2f} ×   processor {cpu:5.2f} s {times[1]:6.2f} ×")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
