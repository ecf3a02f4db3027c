"""A small world: messages, windows that crash, sockets that break, a server that crashes, forgets and drops.

The judging, the moves, what is held and what may be repeated are the production code; everything else is the
least that can go wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.client import Step, steps_of
from tests.model.promises import check
from tests.model.server import faults, server
from tests.model.state import Rules, Window, World

__all__ = ["Rules", "World", "begin", "steps"]


def begin(rules: Rules) -> World:
    return World(windows=tuple(Window(name) for name in "ab"[: rules.windows]))


def steps(world: World, rules: Rules) -> Iterator[Step]:
    """Every next state, with the name of what happened; with two windows, in which of them."""
    if world.broken:
        return
    w = world.later()
    for window in w.windows:
        tag = f"{window.name}: " if rules.windows > 1 else ""
        for name, after in steps_of(w, window, rules):
            yield tag + name, check(w, after)
    for step in (server, faults):
        for name, after in step(w, rules):
            yield name, check(w, after)
