"""Which process a process id means: ids are used again, start times are not."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

_POLL = 0.03  # seconds


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """``started`` is seconds since the epoch and moves when the clock is set; ``ticks`` (since boot, on
    Linux) do not, and decide together with ``boot`` where there are any."""

    pid: int
    started: float
    ticks: int | None = None
    boot: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, raw: object) -> ProcessIdentity | None:
        """``None`` for anything that is no identity."""
        if not isinstance(raw, Mapping):
            return None
        pid, started, ticks = raw.get("pid"), raw.get("started"), raw.get("ticks")
        if not isinstance(pid, int) or pid <= 1 or not isinstance(started, int | float):
            return None
        return cls(pid, float(started), ticks if isinstance(ticks, int) else None, str(raw.get("boot", "")))

    @property
    def life(self) -> str:
        """A short name for this process that no other process has."""
        return f"{self.pid}-{self.ticks if self.ticks is not None else int(self.started * 1000)}"

    def alive(self) -> bool:
        """Whether this very process still runs (a zombie does not)."""
        now = identify(self.pid)
        if now is None:
            return False
        if self.ticks is not None and now.ticks is not None:
            return self.ticks == now.ticks and self.boot == now.boot
        return abs(self.started - now.started) < 2.0

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal to it; ``False`` when it is gone."""
        if not self.alive():
            return False
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, number)
            return True
        return False


def identify(pid: int) -> ProcessIdentity | None:
    """The process that has this id now; ``None`` when there is none."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            if process.status() == psutil.STATUS_ZOMBIE:
                return None
            started = process.create_time()
    except psutil.Error:
        return None
    return ProcessIdentity(pid, started, _ticks(pid), _boot())


def _ticks(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        # The name in parentheses may hold anything, so fields are counted from the last one.
        return int(stat.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def children(identity: ProcessIdentity) -> list[ProcessIdentity]:
    """Every process below it, parents first."""
    if not identity.alive():
        return []
    try:
        below = psutil.Process(identity.pid).children(recursive=True)
    except psutil.Error:
        return []
    return [found for process in below if (found := identify(process.pid)) is not None]


def wait_gone(identity: ProcessIdentity, patience: float) -> bool:
    """Wait up to ``patience`` seconds for its end."""
    deadline = time.monotonic() + patience
    while identity.alive():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL)
    return True


def end_process(identity: ProcessIdentity, patience: float = 5.0) -> None:
    """SIGTERM, then SIGKILL after ``patience`` seconds; returns when the process is gone."""
    if identity.signal(signal.SIGTERM) and not wait_gone(identity, patience):
        identity.signal(signal.SIGKILL)
        wait_gone(identity, 60.0)
