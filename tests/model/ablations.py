"""Negative controls: each rule left out must break a promise, or the check could not see it break."""

from __future__ import annotations

from typing import Final

from tests.model.world import Rules

_LATE_JOURNAL = frozenset({"server crash", "late", "sleep an hour"})

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
        ("rule 4: fifty minutes", Rules(3, without="fifty minutes", only=_LATE_JOURNAL), "P2"),
        ("rule 4: sleep counts", Rules(3, without="sleep counts", only=_LATE_JOURNAL), "P2"),
        (
            "rule 4: a server whose journal is tested",
            Rules(2, deduplicates=False, only=frozenset({"cut", "late"})),
            "P2",
        ),
        (
            "rule 5: repeated answers prove nothing",
            Rules(
                3,
                without="repeated answers prove nothing",
                only=frozenset({"cut", "late", "refuse (reserved)"}),
            ),
            "P2",
        ),
        ("delivered needs history", Rules(0, without="delivered needs history"), "P4"),
        (
            "no judgement after a compaction",
            Rules(2, without="compaction", only=frozenset({"compaction", "cut"})),
            "P4",
        ),
    )
}
