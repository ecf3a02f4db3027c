"""The machine of a send keeps its promises in every state, and each rule is needed for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.model.ablations import ABLATIONS
from tests.model.explorer import explore
from tests.model.world import Rules


@pytest.mark.parametrize(
    "rules",
    [Rules(1, most_connections=2), Rules(1, deduplicates=False, tested=False, most_connections=2)],
    ids=["deduplicating", "of unknown habits"],
)
def test_every_state_keeps_the_promises(rules: Rules, capsys: pytest.CaptureFixture[str]) -> None:
    result = explore(rules)
    with capsys.disabled():
        print(f"\nmodel: {result.states:,} states, {result.moves:,} moves, violations: {result.broken or 0}")
    assert result.broken == "", result.trace
    assert result.complete
    assert result.states > 3_000
    reached = {"prepared", "unconfirmed", "accepted", "started", "queued", "rejected", "unknown"}
    assert reached <= set(result.deliveries)


@pytest.mark.parametrize("known", [True, False], ids=["deduplicating", "of unknown habits"])
def test_two_messages_and_two_windows_keep_them_too(known: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """The nearest states; ``python -m tests.model`` goes further."""
    result = explore(Rules(1, deduplicates=known, tested=known, messages=2, windows=2), 2_500)
    with capsys.disabled():
        print(f"\nmodel, 2 messages, 2 windows: {result.states:,} states, violations: {result.broken or 0}")
    assert result.broken == "", result.trace
    assert {"unconfirmed", "accepted"} <= set(result.deliveries)


# Its shortest way to a broken promise is 14,000 states long.
FAR = "rule 5: repeated answers prove nothing"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name == FAR else ()) for name in ABLATIONS]
)
def test_a_rule_left_out_breaks_a_promise(name: str) -> None:
    rules, promise = ABLATIONS[name]
    result = explore(rules, 60_000)
    assert result.broken.startswith(promise), f"{name} is not needed in {result.states} states"
    if rules.start and rules.without:
        kept = explore(replace(rules, without=""), 1_500)
        assert kept.broken == "", kept.trace
