"""Words for people: what is known of a send, why, and what can be done about it. No glyphs.

Honest and short, for somebody who has never read a manual: what happened, then what it means. "Delivered"
is only said with the history row in hand; "not delivered" never without a complete reading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from letta_tui.seam.state import Action, Choice, Delivery, RecoveryView, SendView, TurnOutcome


@dataclass(frozen=True, slots=True)
class SendFacts:
    """Plain values of a ledger send.

    ``offers``: what may be done now, as the verdict says, each with the key of what it risks. ``sentence``:
    the verdict's sentence key. ``reason``: the server's own words for a refusal or failure.
    """

    client_message_id: str
    text: str
    delivery: Delivery
    outcome: TurnOutcome = "none"
    when: float = 0.0
    offers: tuple[tuple[Action, str], ...] = ()
    reason: str = ""
    sentence: str = ""
    twice: bool = False  # history has it twice
    held: bool = False
    checking: bool = False  # it is being looked for: nothing is offered
    no_reply: bool = False  # its turn ended and nothing answered it


WORDS: Mapping[Delivery, str] = {
    "prepared": "not sent",
    "unconfirmed": "sending",
    "accepted": "server has it",
    "queued": "queued",
    "started": "started",
    "delivered": "delivered",
    "rejected": "refused",
    "cancelled": "taken back",
    "failed": "failed",
    "vanished": "lost",
    "unknown": "not known",
    "superseded": "replaced",
    "discarded": "discarded",
    "redacted": "erased",
}

_BY_DELIVERY: Mapping[Delivery, str] = {
    "prepared": "It is saved on this computer. Nothing of it was sent yet.",
    "unconfirmed": "It was sent, but the server has not answered yet.",
    "accepted": "The server took it. It is not in the conversation's history yet.",
    "queued": "It waits in the server's queue until the current turn is over.",
    "started": "The agent is working on it. It is not in the conversation's history yet.",
    "delivered": "It is in the conversation's history.",
    "rejected": "The server refused it, so it did not run and will not.",
    "cancelled": "It was taken out of the queue before it ran.",
    "failed": "The server took it but could not start it. It is not in the history and will not run.",
    "vanished": (
        "The server had it, but has it no more: it is not running, not queued and not in the history."
        " Nothing will answer it."
    ),
    "unknown": "It may or may not have arrived: it is not in the part of the history that can be read.",
    "superseded": "You replaced it by a new message.",
    "discarded": "You discarded it.",
    "redacted": "You erased its text here.",
}

_BY_SENTENCE: Mapping[str, str] = {
    "not_sent": "It is saved on this computer. The program ended before anything of it was sent.",
    "held": "It is saved on this computer and waits for an earlier message.",
    "checking": "Checking with the server what became of it.",
    "busy": "The agent is busy. It will be checked again when the turn is over.",
    "offline": "It will be checked as soon as the server can be reached.",
    "delivered_no_reply": "It is in the conversation's history, but its turn ended without an answer.",
    "delivered_next": (
        "It is in the conversation's history, right before another message."
        " Whether the answer after that is to both cannot be seen."
    ),
    "delivered_twice": "The server restarted and ran this twice. Both runs are in the history.",
    "delivered_again": "The server restarted and ran this again. The history has one of the two runs.",
    "lost_safe": (
        "The server does not have it: it is not running, not queued and not in the history."
        " Sent again it runs once: the server knows a repeated message by its number."
    ),
    "unknown_old": (
        "It may or may not have arrived. It is not in the history, but it was sent so long ago that the"
        " server would no longer know its number."
    ),
    "unknown_clock": (
        "It may or may not have arrived. It is not in the history, but this computer restarted or its clock"
        " was set since, so it is not certain how old it is."
    ),
    "unknown_history": (
        "It may or may not have arrived. The server's history no longer reaches back to where it was sent."
    ),
    "unknown_server": (
        "It may or may not have arrived. It is not in the history, but this program has not been tested with"
        " this server, so that proves nothing."
    ),
    "unknown_burnt": (
        "The server took it and did not keep it: it is not running, not queued and not in the history."
        " Only as a new message can it still run."
    ),
    "unknown_salvaged": (
        "It was rescued from a damaged file, so what became of it is not certain. It is never sent by itself."
    ),
}

_OUTCOMES: Mapping[TurnOutcome, tuple[str, str]] = {
    # outcome → (word in place of the delivery's, sentence)
    "none": ("", ""),
    "running": ("running", "The agent is working on it."),
    "awaiting_approval": ("waits for you", "The agent waits for your decision about a tool."),
    "done": ("", ""),
    "cancelled": ("stopped", "Its turn was stopped."),
    "failed": ("turn failed", "Its turn failed."),
    "ended_unseen": ("ended unseen", "Its turn ended while nobody was watching."),
}

_CHOICES: Mapping[Action, tuple[str, str]] = {
    "send": ("s", "Send it"),
    "resend": ("s", "Send again"),
    "send_new": ("n", "Send as a new message"),
    "edit": ("e", "Edit first"),
    "copy": ("c", "Copy the text"),
    "discard": ("d", "Discard"),
    "check": ("k", "Check again"),
    "restart": ("r", "Restart the server"),
    "fork": ("f", "Go on in a copy of the conversation"),
    "new": ("n", "Start a new conversation"),
    "open_other": ("o", "Open another conversation"),
    "keep": ("l", "Leave it as it is"),
    "stop": ("s", "Stop it"),
    "cancel": ("x", "Take it out of the queue"),
    "reconnect": ("r", "Connect again"),
}

_RISKS: Mapping[str, str] = {
    "": "",
    "safe_same_id": "",
    "may_run_twice": "If the first one arrived after all, both run.",
    "both_if_late": "If the first one turns up late, both run.",
    "server_may_rerun": "If a restart of the server brings the first one back, both run.",
    "text_gone": "The text is gone from here.",
    "text_gone_may_run": "The text is gone from here. It may still run if the server has it.",
}

_ACTION_RISKS: Mapping[Action, str] = {
    "discard": "The text is gone from here. It may still run if the server has it.",
    "restart": "Anything that is running there is stopped.",
}


def choice(action: Action, risk: str | None = None) -> Choice:
    """A choice with its key and label. ``risk`` is a verdict's risk key; ``None``: what the action always
    risks."""
    key, label = _CHOICES[action]
    words = _ACTION_RISKS.get(action, "") if risk is None else _RISKS[risk]
    return Choice(action, key, label, words)


def choices(facts: SendFacts) -> tuple[Choice, ...]:
    """What is offered now, each with a key of its own; nothing while it is being checked."""
    if facts.checking:
        return ()
    made: list[Choice] = []
    taken: set[str] = set()
    for action, risk in dict(facts.offers).items():
        one = choice(action, risk)
        key = one.key
        if key in taken:
            key = next((c for c in one.label.lower() if c.isalpha() and c not in taken), "")
            key = key or next(c for c in "abcdefghijklmnopqrstuvwxyz" if c not in taken)
        taken.add(key)
        made.append(Choice(one.action, key, one.label, one.risk))
    return tuple(made)


def explanation(facts: SendFacts) -> str:
    """One or two sentences: what is known and why; the server's reason when it gave one."""
    if facts.checking:
        return _BY_SENTENCE["checking"]
    words = _BY_SENTENCE.get(facts.sentence, "")
    if facts.twice:
        return words if words and facts.sentence == "delivered_again" else _BY_SENTENCE["delivered_twice"]
    if facts.no_reply and facts.delivery == "delivered":
        words = words or _BY_SENTENCE["delivered_no_reply"]
    if facts.held and facts.delivery == "prepared" and not words:
        words = _BY_SENTENCE["held"]
    words = words or _BY_DELIVERY[facts.delivery]
    outcome = _OUTCOMES[facts.outcome][1]
    if outcome and facts.delivery in ("delivered", "started"):
        words = (
            outcome if facts.delivery == "started" and facts.outcome == "running" else f"{words} {outcome}"
        )
    reason = " ".join(facts.reason.split())
    if reason and (facts.delivery in ("rejected", "failed", "unknown") or facts.outcome == "failed"):
        reason = reason if reason.endswith((".", "!", "?")) else f"{reason}."
        words = f"{words} The server said: {reason}"
    return words


def word(facts: SendFacts) -> str:
    """The short word beside the sign."""
    if facts.checking:
        return "checking"
    if facts.twice or facts.sentence == "delivered_again":
        return "ran twice"
    if facts.delivery == "prepared" and facts.held:
        return "waiting"
    if facts.delivery == "unknown" and facts.sentence == "lost_safe":
        return "did not arrive"
    if facts.delivery == "unconfirmed" and facts.sentence == "lost_safe":
        return "did not arrive"
    if facts.delivery in ("delivered", "started"):
        other = _OUTCOMES[facts.outcome][0]
        if other:
            return other
        if facts.no_reply or facts.sentence == "delivered_no_reply":
            return "no reply"
    return WORDS[facts.delivery]


def send_view(facts: SendFacts) -> SendView:
    """A ledger row as a person sees it."""
    return SendView(
        client_message_id=facts.client_message_id,
        text=facts.text,
        delivery=facts.delivery,
        outcome=facts.outcome,
        word=word(facts),
        explanation=explanation(facts),
        when=facts.when,
        choices=choices(facts),
    )


def recovery_view(
    sends: Sequence[SendView], *, checking: bool, relaunched: bool, notes: Sequence[str] = ()
) -> RecoveryView | None:
    """The recovery card; None when there is nothing to tell."""
    deciding = [s for s in sends if s.choices]
    if checking:
        if not sends and not notes:
            return None
        count = len(sends)
        what = {0: "the conversation", 1: "one message"}.get(count, f"{count} messages")
        return RecoveryView(True, f"Checking what became of {what}", tuple(notes), tuple(sends))
    if not deciding and not notes:
        return None
    since = "since the last time" if relaunched else "after the connection was lost"
    if len(deciding) == 1:
        title = "One message needs your decision"
    elif deciding:
        title = f"{len(deciding)} messages need your decision"
    else:
        title = f"What happened {since}"
    return RecoveryView(False, title, tuple(notes), tuple(sends))


def twice_note(count: int) -> str:
    """The note about messages that the server ran again by itself."""
    if count == 1:
        return "The server restarted and ran one message twice."
    return f"The server restarted and ran {count} messages twice."


def unseen_note(count: int = 1) -> str:
    """The note about turns that ended while nobody watched."""
    if count == 1:
        return "A turn ended while nobody watched. What came of it is in the conversation."
    return f"{count} turns ended while nobody watched. What came of them is in the conversation."


def busy_note(*, approval: bool) -> str:
    """What the agent is doing as the person comes back."""
    return "The agent waits for your decision about a tool." if approval else "The agent is still working."
