"""The larger run: ``python -m tests.model [FAULTS] [MOST_STATES]``."""

from __future__ import annotations

import sys
import time

from tests.model.ablations import ABLATIONS
from tests.model.explorer import explore
from tests.model.world import Rules


def main(arguments: list[str]) -> int:
    faults = int(arguments[0]) if arguments else 2
    most = int(arguments[1]) if len(arguments) > 1 else 2_000_000
    failures = 0
    for title, rules in (
        ("a server that deduplicates", Rules(faults)),
        ("a server of unknown habits that does not", Rules(faults, deduplicates=False, tested=False)),
    ):
        began = time.monotonic()
        result = explore(rules, most)
        failures += bool(result.broken)
        print(
            f"{title}: {faults} faults, {result.states:,} states, {result.moves:,} moves, "
            f"{'complete' if result.complete else 'cut off'}, {1 if result.broken else 0} violations, "
            f"{time.monotonic() - began:.0f} s",
            flush=True,
        )
        if result.broken:
            print(f"  {result.broken}\n  " + " > ".join(result.trace))
        print("  deliveries seen:", dict(sorted(result.deliveries.items())), flush=True)
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
