"""The larger run: ``python -m tests.model [FAULTS] [MOST_STATES]``, states of each world."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import replace

from tests.model.ablations import ABLATIONS
from tests.model.explorer import explore
from tests.model.world import Rules


def worlds(faults: int) -> Iterator[tuple[str, Rules]]:
    """One fault fewer where there is more of everything else."""
    fewer = max(0, faults - 1)
    for server, known in (
        ("a server that deduplicates", True),
        ("one of unknown habits that does not", False),
    ):
        one = Rules(faults, deduplicates=known, tested=known)
        more = replace(one, faults=fewer, most_connections=2)
        yield f"one message, {server}", one
        yield f"two messages in order, {server}", replace(more, messages=2)
        yield f"one message, two windows, {server}", replace(more, windows=2)
        yield f"two messages, two windows, {server}", replace(more, messages=2, windows=2)


def main(arguments: list[str]) -> int:
    faults = int(arguments[0]) if arguments else 2
    most = int(arguments[1]) if len(arguments) > 1 else 300_000
    failures = states = 0
    for title, rules in worlds(faults):
        began = time.monotonic()
        result = explore(rules, most)
        failures += bool(result.broken)
        states += result.states
        print(
            f"{title}: {rules.faults} faults, {result.states:,} states, {result.moves:,} moves, "
            f"{'complete' if result.complete else 'cut off'}, {1 if result.broken else 0} violations, "
            f"{time.monotonic() - began:.0f} s",
            flush=True,
        )
        if result.broken:
            print(f"  {result.broken}\n  " + " > ".join(result.trace))
        print("  deliveries seen:", dict(sorted(result.deliveries.items())), flush=True)
    print(f"{states:,} states, {failures} violations", flush=True)
    for name, (rules, promise) in ABLATIONS.items():
        result = explore(rules, most)
        found = result.broken.startswith(promise)
        failures += not found
        print(f"without {name}: {result.broken or 'nothing breaks'} ({result.states:,} states)", flush=True)
        if result.trace:
            print("  " + " > ".join(result.trace), flush=True)
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
