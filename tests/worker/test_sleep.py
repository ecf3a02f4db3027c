"""Sleep and stops are noticed from the clocks; corrections of the clock are not sleep."""

from __future__ import annotations

from letta_tui.worker.sleep import Reading, gap_between

START = Reading(wall=1_000_000.0, mono=500.0, boot=700.0)


def later(wall: float, mono: float, boot: float) -> Reading:
    return Reading(START.wall + wall, START.mono + mono, START.boot + boot)


def test_an_ordinary_tick_is_no_gap() -> None:
    assert gap_between(START, later(1.0, 1.0, 1.0), 1.0) is None
    assert gap_between(START, later(4.0, 4.0, 4.0), 1.0) is None  # a busy machine


def test_a_sleep_shows_on_wall_and_boot_but_not_on_the_monotonic_clock() -> None:
    gap = gap_between(START, later(3600.0, 1.2, 3600.0), 1.0)
    assert gap is not None
    assert gap.slept
    assert gap.away == 3599.0


def test_a_stopped_process_shows_on_every_clock() -> None:
    gap = gap_between(START, later(120.0, 120.0, 120.0), 1.0)
    assert gap is not None
    assert not gap.slept


def test_a_clock_that_was_set_back_is_no_gap() -> None:
    assert gap_between(START, later(-3600.0, 1.0, 1.0), 1.0) is None
