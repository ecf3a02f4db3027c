"""What a person is offered for a message, with what each choice risks (rule 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, get_args

from letta_tui.conversation.reconcile_values import Offer, RiskKey, SentenceKey
from letta_tui.ledger.values import Delivery, Send

_SENTENCES: Final[frozenset[str]] = frozenset(get_args(SentenceKey))

_STANDING: Final[Mapping[Delivery, SentenceKey]] = {
    "prepared": "not_sent",
    "unconfirmed": "checking",
    "accepted": "checking",
    "queued": "checking",
    "started": "checking",
    "delivered": "delivered",
    "rejected": "rejected",
    "cancelled": "cancelled",
    "failed": "failed",
    "vanished": "vanished",
    "unknown": "unknown_server",
    "superseded": "superseded",
    "discarded": "discarded",
    "redacted": "redacted",
}

_LASTING: Final[Mapping[Delivery, tuple[str, ...]]] = {
    "unknown": ("unknown_",),
    "vanished": ("vanished", "unknown_burnt"),
    "delivered": ("delivered",),
}


def standing(send: Send) -> SentenceKey:
    """The sentence of a send nothing new is known about: that of its last verdict while it still fits."""
    for start in _LASTING.get(send.delivery, ()):
        if send.sentence.startswith(start) and send.sentence in _SENTENCES:
            for key in get_args(SentenceKey):
                if key == send.sentence:
                    found: SentenceKey = key
                    return found
    if send.delivery == "unknown" and send.salvaged:
        return "unknown_salvaged"
    return _STANDING[send.delivery]


def offers(delivery: Delivery, sentence: SentenceKey, send: Send) -> tuple[Offer, ...]:
    """The choices. A message whose text was erased can only be looked for or dropped."""
    made = _offers(delivery, sentence, send)
    if send.erased:
        return tuple(o for o in made if o.action in ("check", "discard"))
    return made


def _offers(delivery: Delivery, sentence: SentenceKey, send: Send) -> tuple[Offer, ...]:
    maybe: RiskKey = "text_gone_may_run" if delivery in ("unknown", "vanished") else "text_gone"
    discard = Offer("discard", maybe)
    copy, check = Offer("copy"), Offer("check")
    if delivery == "prepared":
        # A rescued row may be older than what really happened.
        risk: RiskKey = "may_run_twice" if send.salvaged else ""
        return Offer("send", risk), Offer("edit", risk), copy, discard
    if delivery == "unconfirmed" and sentence == "lost_safe":
        return Offer("resend", "safe_same_id"), Offer("edit", "both_if_late"), copy, check, discard
    if delivery in ("rejected", "cancelled", "failed"):
        return Offer("send_new"), Offer("edit"), copy, discard
    if delivery == "vanished":
        return check, copy, Offer("send_new", "server_may_rerun"), Offer("edit", "server_may_rerun"), discard
    if delivery == "unknown":
        return check, Offer("send_new", "may_run_twice"), Offer("edit", "may_run_twice"), copy, discard
    return ()
