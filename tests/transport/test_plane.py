"""What the event plane remembers, and how order is put back."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from letta_tui.transport.backoff import Backoff
from letta_tui.transport.order import Reorder
from letta_tui.transport.plane import Gap, Seen, Sequence


@settings(deadline=None)
@given(st.lists(st.integers(0, 30)), st.integers(1, 8))
def test_the_last_keys_are_remembered_and_no_more(keys: list[int], limit: int) -> None:
    seen = Seen(limit)
    order: list[int] = []  # the model: most recent last
    for key in keys:
        assert seen.again(str(key)) == (key in order)
        if key in order:
            order.remove(key)
        order.append(key)
        del order[:-limit]
        assert len(seen) == len(order)


def test_a_gap_is_named_once_and_can_be_filled() -> None:
    sequence = Sequence()
    assert sequence.note(0) is None
    assert sequence.note(1) is None
    assert sequence.note(5) == Gap(2, 4)
    assert sequence.missing == 3
    assert sequence.note(3) is None
    assert sequence.note(3) is None
    assert sequence.missing == 2
    assert sequence.note(6) is None
    sequence.forgive()
    assert sequence.missing == 0


def test_zero_counts_as_a_number() -> None:
    sequence = Sequence()
    sequence.note(0)
    assert sequence.note(2) == Gap(1, 1)


def test_a_counter_that_starts_anew_is_followed() -> None:
    sequence = Sequence()
    for seq in range(1000):
        sequence.note(seq)
    assert sequence.note(1) is None
    assert sequence.note(2) is None
    assert sequence.note(4) == Gap(3, 3)


def test_a_jump_beyond_measure_stays_bounded() -> None:
    sequence = Sequence()
    sequence.note(1)
    gap = sequence.note(10**12)
    assert gap is not None
    assert gap.size == 10**12 - 2
    assert sequence.missing <= 10_000


@settings(deadline=None)
@given(st.permutations(list(range(12))), st.integers(0, 5))
def test_every_number_seen_in_any_order_leaves_nothing_missing(numbers: list[int], first: int) -> None:
    sequence = Sequence()
    sequence.note(-1)
    gaps = [gap for gap in map(sequence.note, numbers) if gap is not None]
    assert sequence.missing == 0
    assert sequence.highest == 11
    assert len({gap.first for gap in gaps}) == len(gaps)


@settings(deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=60), st.randoms(use_true_random=False))
def test_what_is_not_too_early_comes_out_in_order(jitter: list[int], chance: random.Random) -> None:
    """Each number is late by up to 6 places: all are put in order, each comes out once."""
    numbers = sorted(range(len(jitter)), key=lambda n: (n + jitter[n], chance.random()))
    order: Reorder[int] = Reorder(wait=10.0)
    order.push(-1, -1, 0.0)
    out = [item for n in numbers for item in order.push(n, n, 0.0)]
    assert out == list(range(len(jitter)))
    assert order.deadline is None


@settings(deadline=None)
@given(st.lists(st.integers(0, 40), unique=True), st.lists(st.floats(0, 0.2), min_size=41, max_size=41))
def test_nothing_is_kept_for_ever_nor_lost_nor_doubled(numbers: list[int], steps: list[float]) -> None:
    order: Reorder[int] = Reorder(wait=0.25)
    now = 0.0
    out: list[int] = []
    for n, step in zip(numbers, steps, strict=False):
        now += step
        out += order.overdue(now)
        out += order.push(n, n, now)
    while order.deadline is not None:
        out += order.overdue(order.deadline)
    assert sorted(out) == sorted(numbers)


def test_a_hole_that_is_never_filled_costs_less_each_time() -> None:
    order: Reorder[int] = Reorder(wait=0.2, shortest=0.01)
    order.push(0, 0, 0.0)
    waits = []
    for n in range(2, 20, 2):
        assert order.push(n, n, float(n)) == []
        assert order.deadline is not None
        waits.append(order.deadline - n)
        assert order.overdue(order.deadline - 0.001) == []
        assert order.overdue(order.deadline) == [n]
    assert waits[0] > 0.19
    assert waits[-1] < 0.011
    order.push(20, 20, 30.0)
    order.push(19, 19, 30.0)


def test_a_filled_hole_restores_the_wait() -> None:
    order: Reorder[int] = Reorder(wait=0.2)
    order.push(0, 0, 0.0)
    order.push(2, 2, 0.0)
    assert order.overdue(1.0) == [2]
    order.push(4, 4, 1.0)
    assert order.push(3, 3, 1.0) == [3, 4]
    order.push(6, 6, 2.0)
    assert order.deadline is not None
    assert order.deadline - 2.0 > 0.19


def test_many_holes_do_not_add_up() -> None:
    """Each event is held back from when it came, not from when the one before it went out."""
    order: Reorder[int] = Reorder(wait=0.2, shortest=0.01)
    order.push(0, 0, 0.0)
    held: dict[int, float] = {}
    now = 0.0
    for n in range(2, 2000, 2):
        now += 0.001
        held[n] = now
        for item in [*order.overdue(now), *order.push(n, n, now)]:
            assert now - held.pop(item) <= 0.201
    assert len(held) <= 11


def test_what_has_no_number_follows_every_event_known_before_it() -> None:
    order: Reorder[str] = Reorder()
    assert order.follow("early answer", 0.0) == ["early answer"]
    order.push(1, "1", 0.0)
    assert order.follow("nothing owed", 0.0) == ["nothing owed"]
    order.expect(3)
    assert order.follow("answer", 0.0) == []
    assert order.push(4, "4", 0.0) == []
    assert order.follow("later answer", 0.0) == []
    assert order.push(2, "2", 0.0) == ["2"]
    assert order.push(3, "3", 0.0) == ["3", "answer", "4", "later answer"]
    order.expect(5)
    order.follow("impatient", 1.0)
    assert order.deadline is not None
    assert order.overdue(order.deadline) == ["impatient"]
    assert order.push(5, "5", 2.0) == ["5"]
    assert order.push(6, "6", 2.0) == ["6"]


def test_what_is_held_back_is_bounded() -> None:
    order: Reorder[int] = Reorder(most=10)
    order.push(0, 0, 0.0)
    out = [item for n in range(2, 40) for item in order.push(n, n, 0.0)]
    assert out == list(range(2, 40))


def test_waiting_grows_has_jitter_and_a_limit() -> None:
    waits = Backoff(lambda: 1.0, first=1.0, longest=8.0)
    assert [waits.next(0) for _ in range(5)] == [1.0, 2.0, 4.0, 8.0, 8.0]
    assert Backoff(lambda: 0.0, first=1.0).next(0) == 0.5


def test_only_a_connection_that_lasts_starts_over() -> None:
    waits = Backoff(lambda: 1.0, first=1.0, stable=30.0)
    waits.next(0)
    waits.next(0)
    waits.opened(10)
    assert waits.next(15) == 4.0
    waits.opened(20)
    assert waits.next(51) == 1.0
    waits.next(51)
    waits.at_once()
    assert waits.next(52) == 1.0
