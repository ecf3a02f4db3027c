"""Breadth first through every state of the world; the shortest way to a broken promise, if there is one."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from tests.model.world import Rules, World, begin, steps


@dataclass
class Result:
    """``complete``: every reachable state was seen. ``trace`` leads to the broken promise."""

    states: int = 0
    moves: int = 0
    complete: bool = True
    broken: str = ""
    trace: tuple[str, ...] = ()
    deliveries: Counter[str] = field(default_factory=Counter)
    sentences: Counter[str] = field(default_factory=Counter)


def explore(rules: Rules, most_states: int = 10**9) -> Result:
    start = begin(rules)
    for wanted in rules.start:
        start = next(after for name, after in steps(start, rules) if name == wanted)
    result = Result(states=1)
    seen: dict[object, tuple[object, str]] = {start.key(): (None, "")}
    waiting: deque[tuple[object, World]] = deque([(start.key(), start)])
    while waiting:
        key, world = waiting.popleft()
        for name, after in steps(world, rules):
            result.moves += 1
            new = after.key()
            if new in seen:
                continue
            seen[new] = (key, name)
            result.states += 1
            for send in after.sends:
                result.deliveries[send.delivery] += 1
                result.sentences[send.sentence] += 1
            if after.broken:
                result.broken = after.broken
                result.trace = _trace(seen, new)
                return result
            if result.states >= most_states:
                result.complete = False
                return result
            waiting.append((new, after))
    return result


def _trace(seen: dict[object, tuple[object, str]], key: object) -> tuple[str, ...]:
    names: list[str] = []
    while key is not None:
        key, name = seen[key]
        names.append(name)
    return tuple(reversed(names[:-1]))
