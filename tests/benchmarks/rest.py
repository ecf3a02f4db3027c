"""What the program costs while nothing happens: memory and wake-ups of keeper, server and window.

``python -m tests.benchmarks.rest [SECONDS]`` (20 unless told) starts the demo in a terminal nobody types in,
lets it settle, and counts. A wake-up is a voluntary context switch of any thread (Linux: ``/proc``);
processor time is in milliseconds a minute. An empty Textual app in the same run is what they are compared to.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.terminal.conftest import Demo
from tests.terminal.screen import Terminal

SETTLE_SECONDS = 8.0

EMPTY = "from textual.app import App; App().run()"


@dataclass(frozen=True, slots=True)
class Cost:
    """``megabytes``: proportional set size where known, else resident. Rates are per second and minute."""

    name: str
    megabytes: float
    wakeups: float
    milliseconds: float

    def __str__(self) -> str:
        return (
            f"{self.name:<22} {self.megabytes:7.1f} MB {self.wakeups:7.1f} wake-ups/s"
            f" {self.milliseconds:8.0f} ms/min"
        )


def wakeups(pid: int) -> int:
    """Voluntary context switches of all threads so far."""
    total = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        try:
            lines = status.read_text().splitlines()
        except OSError:
            continue  # the thread has ended
        total += sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
    return total


def memory(process: psutil.Process) -> float:
    try:
        info = process.memory_full_info()
    except psutil.Error:
        return process.memory_info().rss / 1e6
    return float(getattr(info, "pss", 0) or info.uss) / 1e6


def measure(named: dict[str, int], seconds: float) -> list[Cost]:
    processes = {name: psutil.Process(pid) for name, pid in named.items()}

    def reading() -> dict[str, tuple[int, float]]:
        times = {name: process.cpu_times() for name, process in processes.items()}
        return {name: (wakeups(named[name]), t.user + t.system) for name, t in times.items()}

    begun, before = time.monotonic(), reading()
    time.sleep(seconds)
    took, after = time.monotonic() - begun, reading()
    return [
        Cost(
            name,
            memory(process),
            (after[name][0] - before[name][0]) / took,
            (after[name][1] - before[name][1]) * 60_000 / took,
        )
        for name, process in processes.items()
    ]


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    if not Path("/proc/self/task").exists():
        print("Wake-ups are counted on Linux only.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="lt-rest-") as name:
        demo = Demo(Path(name))
        try:
            with (
                demo.ready() as window,
                Terminal([sys.executable, "-c", EMPTY], demo.env, Path(name)) as empty,
            ):
                time.sleep(SETTLE_SECONDS)
                status = demo.keeper()
                named = {
                    "keeper": int(status["pid"]),
                    "letta server": int(status["server_pid"]),
                    "window": window.process.pid,
                    "empty Textual app": empty.process.pid,
                }
                costs = measure(named, seconds)
                window.kill()
                time.sleep(1.0)
                alone = measure({"keeper, no window": named["keeper"]}, seconds)
        finally:
            demo.command("keeper", "stop")
    print(f"At rest for {seconds:.0f} s, {os.cpu_count()} processors:")
    for cost in [*costs, *alone]:
        print(f"  {cost}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
