"""From a ledger row and the verdict on it to what a person sees: on the recovery card, and by ``explain``."""

from __future__ import annotations

from letta_tui.conversation.reconcile_offers import offers, standing
from letta_tui.conversation.reconcile_values import Offer, SentenceKey, Verdict
from letta_tui.conversation.words import SendFacts, send_view
from letta_tui.ledger.transitions import IN_FLIGHT
from letta_tui.ledger.values import EvidenceKind, Send
from letta_tui.seam.state import SendView

RAN_AGAIN: tuple[SentenceKey, ...] = ("delivered_twice", "delivered_again")
_REASONS: tuple[EvidenceKind, ...] = ("loop_error", "refused", "write_failed")


def card(
    send: Send,
    verdict: Verdict | None,
    *,
    checking: bool = False,
    released: bool = False,
    going: bool = False,
) -> SendView:
    """``verdict``: the last one, while it is about what the send is now. ``checking``: it is being looked
    for. ``released``: this window sends it by itself as soon as it may; ``going``: that is now."""
    offered: tuple[Offer, ...] = () if verdict is None or checking or released else verdict.offers
    sentence = "" if send.delivery in IN_FLIGHT else send.sentence
    if verdict is not None:
        sentence = verdict.sentence
    reason = next(
        (str(send.last[kind].payload.get("words", "")) for kind in _REASONS if kind in send.last), ""
    )
    return send_view(
        SendFacts(
            client_message_id=send.client_message_id,
            text=send.text,
            delivery="unconfirmed" if going else send.delivery,
            outcome=send.outcome,
            when=send.created.wall,
            offers=tuple((offer.action, offer.risk) for offer in offered),
            reason=reason,
            sentence=sentence,
            no_reply=sentence == "delivered_no_reply",
            twice="history_twice" in send.last,
            held=released,
            checking=checking,
        )
    )


def ran_again(send: Send) -> bool:
    """Whether the server ran it more than once by itself, which is to be said on its row."""
    return "history_twice" in send.last or send.sentence in RAN_AGAIN


def remark(send: Send) -> str:
    """What the sign of a message does not say; "" when that is everything."""
    if send.delivery == "unconfirmed" and last_told(send).sentence == "lost_safe":
        return "did not arrive"
    if send.delivery != "delivered":
        return ""
    if ran_again(send):
        return "the server restarted and ran this twice"
    if send.sentence == "delivered_next":
        return "answered together with the next message, if at all"
    return "its turn ended without an answer" if send.sentence == "delivered_no_reply" else ""


def last_told(send: Send) -> Verdict:
    """The verdict that was last stored with it, as long as nothing has happened to it since.

    It holds for the time at which it was made: a window that is open may know more by now.
    """
    sentence: SentenceKey = standing(send)
    absent, attempt = send.last.get("absent"), send.last.get("attempt")
    if (
        send.delivery == "unconfirmed"
        and send.sentence == "lost_safe"
        and absent is not None
        and (attempt is None or absent.seq > attempt.seq)
    ):
        sentence = "lost_safe"
    return Verdict(
        send.client_message_id,
        send.delivery,
        send.outcome,
        sentence,
        offers=offers(send.delivery, sentence, send),
    )
