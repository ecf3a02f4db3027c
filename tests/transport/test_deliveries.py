"""The relay's numbers and keys, without sockets."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from letta_tui.transport.deliveries import Deliveries, Numbers


@settings(deadline=None)
@given(st.lists(st.integers(0, 60), max_size=200))
def test_a_number_is_known_when_it_has_come_in_whatever_order(seqs: list[int]) -> None:
    numbers, come = Numbers(), set[int]()
    for seq in seqs:
        assert numbers.again(seq) == (seq in come)
        come.add(seq)


def test_what_is_remembered_is_little_however_much_has_come() -> None:
    numbers = Numbers()
    for seq in range(200_000):
        assert not numbers.again(seq)
    assert not numbers._missing
    assert numbers.again(0)


def test_a_jump_beyond_measure_costs_no_memory() -> None:
    numbers = Numbers(most_missing=10)
    numbers.again(0)
    assert not numbers.again(10**12)
    assert len(numbers._missing) == 10
    assert not numbers.again(10**12 - 10)
    assert numbers.again(10**12 - 10)


def take(deliveries: Deliveries, channel: str, seq: int, event: int, *, delta: bool = False) -> bool:
    """Whether the pair passes the event on."""
    if deliveries.number(channel, seq, event):
        return False
    if delta and channel == "control":
        return False  # dropped there, but counted
    return not deliveries.event(channel, f"key:{event}", one_socket=delta, numbered=True)


@settings(deadline=None, max_examples=30)
@given(st.integers())
def test_each_event_is_passed_on_once_however_late_it_is_repeated(seed: int) -> None:
    """Both sockets bring each event; some deliveries are lost at first, any may be repeated at any time."""
    chance = random.Random(seed)
    deliveries = Deliveries(most_unpaired=30)
    passed: list[int] = []
    sent: list[tuple[str, int, int]] = []
    waiting: list[tuple[str, int, int]] = []
    for event in range(120):
        for channel in ("control", "stream"):
            one = (channel, event + 1, event)
            lost = chance.random() < 0.1
            (waiting if lost else sent).append(one)
            if not lost and take(deliveries, *one, delta=event % 3 == 0):
                passed.append(event)
        while waiting and (len(waiting) > 8 or chance.random() < 0.3):
            one = waiting.pop(chance.randrange(len(waiting)))
            sent.append(one)
            if take(deliveries, *one, delta=one[2] % 3 == 0):
                passed.append(one[2])
        if sent and chance.random() < 0.3:
            one = chance.choice(sent[-3:] if chance.random() < 0.5 else sent)
            assert not take(deliveries, *one, delta=one[2] % 3 == 0)  # a repetition, of any age
    assert len(passed) == len(set(passed))
    assert len(passed) >= 120 - len(waiting)


def test_a_key_is_forgotten_once_both_sockets_have_brought_it() -> None:
    deliveries = Deliveries()
    for event in range(5_000):
        assert take(deliveries, "control", event, event)
        assert not take(deliveries, "stream", event, event)
    assert not deliveries._unpaired
    assert not take(deliveries, "control", 3, 3)  # seconds and thousands of events later
    assert not take(deliveries, "stream", 3, 3)


def test_a_relay_that_counts_anew_is_believed() -> None:
    deliveries = Deliveries()
    for event in range(100):
        assert take(deliveries, "stream", event + 1, event, delta=True)
    assert take(deliveries, "stream", 1, 100, delta=True)
    assert take(deliveries, "stream", 2, 101, delta=True)
    assert not take(deliveries, "stream", 1, 100, delta=True)
