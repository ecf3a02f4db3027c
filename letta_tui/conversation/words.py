"""Words for people: what is known of a send, why, and what can be done about it. No glyphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from letta_tui.seam.state import Action, Choice, Delivery, RecoveryView, SendView, TurnOutcome


@dataclass(frozen=True, slots=True)
class SendFacts:
    """Plain values of a ledger send.

    ``offers``: what may be done now, as the verdict says; ``risky``: those of them that can make it run
    twice. ``reason``: the server's own words for a refusal or failure. ``sentence``: the verdict's
    sentence when it has one (it then replaces the standard explanation).
    """

    client_message_id: str
    text: str
    delivery: Delivery
    outcome: TurnOutcome = "none"
    when: float = 0.0
    offers: tuple[Action, ...] = ()
    risky: tuple[Action, ...] = ()
    reason: str = ""
    sentence: str = ""
    twice: bool = False  # history has it twice
    held: bool = False
    checking: bool = False  # it is being looked for: nothing is offered


def send_view(facts: SendFacts) -> SendView:
    raise NotImplementedError


def choice(action: Action, *, risky: bool = False, delivery: Delivery = "unknown") -> Choice:
    raise NotImplementedError


def recovery_view(
    sends: Sequence[SendView], *, checking: bool, relaunched: bool, notes: Sequence[str] = ()
) -> RecoveryView | None:
    """The recovery card; None when there is nothing to tell."""
    raise NotImplementedError
