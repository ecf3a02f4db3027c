"""Noticing that this process did not run for a while: the machine slept, or it was stopped.

A socket that was open before is then suspect at once; waiting for a time-out would show a lie meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """Seconds of the three clocks. ``mono`` stands still in sleep on Linux, ``boot`` does not."""

    wall: float
    mono: float
    boot: float


@dataclass(frozen=True, slots=True)
class Gap:
    """``away``: seconds in which nothing ran here. ``slept``: the machine itself slept for most of it."""

    away: float
    slept: bool


def gap_between(before: Reading, now: Reading, interval: float, tolerance: float = 5.0) -> Gap | None:
    """Compare two readings that should lie ``interval`` seconds apart.

    The largest step of the three clocks counts: after a sleep the wall and boot clocks have run ahead of
    the monotonic one; after SIGSTOP all three have. A wall clock that was set back is no gap. One that was
    set forward looks like sleep; the answer to it is a harmless probe.
    """
    mono = now.mono - before.mono
    boot = now.boot - before.boot
    wall = now.wall - before.wall
    longest = max(mono, boot, wall)
    if longest <= interval + tolerance:
        return None
    return Gap(away=longest - interval, slept=max(boot, wall) - mono > tolerance)
