"""Negative controls: each rule left out must break a promise, or the check could not see it break."""

from __future__ import annotations

from typing import Final

from tests.model.world import Rules

_READ = ("read queue", "read loop", "read history")
_WRITTEN = ("prepare", "connect", "begin m1", "write")

# A restarted server that takes up its journal only after the settle delay.
_LATE_JOURNAL = frozenset({"server crash", "late", "sleep an hour"})
_RESTARTED = (*_WRITTEN, "take (started)", "server crash", "connect", *_READ, "late")

# Bytes of a broken connection that arrive only after the settle delay.
_LATE_BYTES = frozenset({"cut", "late", "refuse (reserved)"})
_BROKEN = (*_WRITTEN, "cut: a", "connect", *_READ, "late")

ABLATIONS: Final[dict[str, tuple[Rules, str]]] = {
    name: (rules, promise)
    for name, rules, promise in (
        (
            "rule 2: queue, loop, history in this order",
            Rules(0, without="queue, loop, history in this order"),
            "P4",
        ),
        ("rule 2: only of an idle runtime", Rules(0, without="idle"), "P4"),
        ("rule 3: the fence", Rules(0, without="fence"), "P4"),
        ("rule 3: the settle delay after a break", Rules(1, without="settle"), "P4"),
        (
            "rule 4: fifty minutes",
            Rules(3, without="fifty minutes", only=_LATE_JOURNAL, start=(*_RESTARTED, *_READ)),
            "P2",
        ),
        (
            "rule 4: sleep counts",
            Rules(3, without="sleep counts", only=_LATE_JOURNAL, start=(*_RESTARTED, *_READ)),
            "P2",
        ),
        (
            "rule 4: a server whose journal is tested",
            Rules(2, deduplicates=False, only=_LATE_BYTES, start=_BROKEN),
            "P2",
        ),
        (
            "rule 5: repeated answers prove nothing",
            Rules(
                3,
                without="repeated answers prove nothing",
                only=_LATE_BYTES,
                start=(*_BROKEN, *_READ),
            ),
            "P2",
        ),
        ("rule 7: later ones are held", Rules(0, messages=2, without="later ones are held"), "order"),
        (
            "a verdict is about the row it was made from",
            Rules(
                1, windows=2, without="a verdict is about the row it was made from", only=frozenset({"cut"})
            ),
            "P",
        ),
        ("delivered needs history", Rules(0, without="delivered needs history"), "P4"),
        (
            "no judgement after a compaction",
            Rules(2, without="compaction", only=frozenset({"compaction", "cut"})),
            "P4",
        ),
    )
}
