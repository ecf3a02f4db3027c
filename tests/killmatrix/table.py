"""The matrix as text, and its totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.killmatrix.cells import GROUPS, STATES, cannot_be
from tests.killmatrix.outcome import Outcome


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each step: in each state the kills, and what was wrong."""
    width = max(len(step) for steps in GROUPS.values() for step in steps)
    lines = [" " * (width + 13) + "".join(f"{state:>10}" for state in STATES)]
    reasons: dict[str, None] = {}
    for group, steps in GROUPS.items():
        for step in steps:
            fields = []
            for state in STATES:
                why = cannot_be(step, state)
                if why:
                    reasons[f"{group} x {state}: {why}"] = None
                found = [o for o in outcomes if (o.cell.step, o.cell.state) == (step, state)]
                fields.append(f"{'-' if why else _counted(found):>10}")
            lines.append(f"{group:12} {step:{width}}{''.join(fields)}")
    return [*lines, "cells that cannot be:", *(f"  {reason}" for reason in reasons)]


def _counted(outcomes: Sequence[Outcome]) -> str:
    kills, wrong = sum(o.reached for o in outcomes), sum(bool(o.violations) for o in outcomes)
    missed = len(outcomes) - kills
    return f"{kills}{f'+{missed}?' if missed else ''}{f' !{wrong}' if wrong else ''}"


def totals(outcomes: Sequence[Outcome]) -> list[str]:
    violations = sum(len(o.violations) for o in outcomes)
    victims = Counter(", ".join(o.killed) for o in outcomes if o.reached)
    dead = Counter(name for o in outcomes for name in o.killed)
    chosen = Counter(words for o in outcomes for words in o.chosen)
    back = Counter(o.cell.back for o in outcomes)
    return [
        f"{len(outcomes)} runs, {sum(o.reached for o in outcomes)} killed at their step, "
        f"{violations} violations",
        f"killed: window {dead['window']}, keeper {dead['keeper']}, server {dead['server']} "
        f"({'; '.join(f'{who}: {n}' for who, n in sorted(victims.items()))})",
        f"in history once: {sum(o.delivered for o in outcomes)} messages; allowed tools that ran once: "
        f"{sum(o.tools for o in outcomes)}",
        f"run again by the server, and said: {sum(o.reran for o in outcomes)}; "
        f"run twice after the person took the risk: {sum(o.unlucky for o in outcomes)}",
        f"wedged conversations, restarted by the person: {sum(o.restarts for o in outcomes)}; "
        f"conversations whose file the server emptied as it was killed, which is said: "
        f"{sum(o.gone for o in outcomes)}",
        f"offered, and taken by the person: {sum(chosen.values())}",
        *(f"  {words}: {n}" for words, n in sorted(chosen.items())),
        f"came back as: {', '.join(f'{name} {n}' for name, n in sorted(back.items()))}",
    ]
