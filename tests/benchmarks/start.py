"""From the command to the first picture, beside an empty Textual app in the same terminal. Unix only."""

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
from collections.abc import Sequence

import psutil

MARK = b"F1"
PATIENCE = 60.0  # seconds
EMPTY = f"""
from textual.app import App
from textual.widgets import Input, Static
class Empty(App):
    def compose(self):
        yield Static({MARK.decode()!r})
        yield Input()
Empty().run()
"""


def first_picture(argv: Sequence[str], folder: str) -> tuple[float, float]:
    """(CPU seconds, MiB resident) of the process when the mark is in what it has written."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", LETTA_TUI_DATA_DIR=folder)
        os.execv(argv[0], list(argv))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    process, written, end = psutil.Process(pid), b"", time.monotonic() + PATIENCE
    try:
        while MARK not in written:
            if time.monotonic() > end:
                raise TimeoutError(f"nothing drawn by {' '.join(argv)}: {written[-400:]!r}")
            if select.select([terminal], [], [], 0.01)[0]:
                written += os.read(terminal, 65536)
        used = process.cpu_times()
        return used.user + used.system, process.memory_info().rss / 2**20
    finally:
        process.kill()
        os.waitpid(pid, 0)
        os.close(terminal)


def main(runs: int = 5) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ours = [sys.executable, "-m", "letta_tui", "--url", "ws://127.0.0.1:9"]
        both = [
            (first_picture(ours, folder), first_picture([sys.executable, "-c", EMPTY], folder))
            for _ in range(runs)
        ]
    mine, empty = (statistics.median(pair[n][0] for pair in both) for n in (0, 1))
    memory = statistics.median(pair[0][1] for pair in both)
    print(
        f"start to first picture: {mine:.2f} s CPU, {memory:.0f} MiB; "
        f"an empty Textual app {empty:.2f} s; ratio {mine / empty:.2f} (median of {runs})"
    )


if __name__ == "__main__":
    main()
