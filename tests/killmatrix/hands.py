"""What a person at a window does: lets things end, answers what waits, takes what is offered."""

from __future__ import annotations

import time

from letta_tui.seam.intents import AnswerQuestion, Decide
from letta_tui.seam.state import Action, QuestionView, SendView
from tests.support.seat import Seat

PATIENCE = 120.0
PRESS_AGAIN = 2.0  # seconds after which an approval that was given back is answered again
UNDER_WAY = ("unconfirmed", "accepted", "queued", "started")
CALM = 0.4  # seconds without anything going on, after which nothing more is expected


async def through(seat: Seat, patience: float = PATIENCE) -> int:
    """Allow what waits, and restart a wedged server, until everything has come to its end or is offered; how
    many restarts that took."""
    restarts = 0
    answered: QuestionView | None = None
    pressed: dict[str, float] = {}
    calm_since = 0.0

    def over() -> bool:
        nonlocal calm_since, restarts, answered
        now = time.monotonic()
        ready = seat.connection is not None and seat.connection.phase == "ready"
        for approval in seat.approvals if ready else ():
            if approval.state != "deciding" and now - pressed.get(approval.request_id, 0.0) > PRESS_AGAIN:
                pressed[approval.request_id] = now
                seat.send(Decide(approval.request_id, "allow"))
        question = seat.question
        if is_gone(seat):
            return True
        if question is not None and question is not answered:
            restarts, answered = restarts + 1, question
            assert "restart" in [each.action for each in question.choices], question
            seat.send(AnswerQuestion(question.id, "restart"))
        if question is None and ready and not seat.approvals and not going_on(seat):
            calm_since = calm_since or now
            return now - calm_since > CALM
        calm_since = 0.0
        return False

    await seat.until(over, patience, "everything comes to its end")
    return restarts


def is_gone(seat: Seat) -> bool:
    """The server says that it has no such conversation; nothing goes on before the person has chosen."""
    return seat.question is not None and seat.question.id == "gone"


async def opened(seat: Seat) -> None:
    """Until the conversation is there, or the server says that it has it no more."""

    def there() -> bool:
        known = seat.connection is not None and seat.connection.phase == "ready" and seat.connection.can_send
        return known or is_gone(seat)

    await seat.until(there, PATIENCE, "connected and recovered")


def going_on(seat: Seat) -> bool:
    checking = seat.recovery is not None and seat.recovery.checking
    moving = any(send.delivery in UNDER_WAY and not send.choices for send in seat.sends)
    waits = any(item.item_id != item.client_message_id for item in seat.queue)
    return seat.status.activity != "idle" or checking or moving or waits


WANTED: dict[str, tuple[Action, ...]] = {
    "command": ("send", "resend", "send_new"),
    "again": ("send", "resend", "send_new"),
    "new": ("send_new", "send", "resend"),
    "edit": ("edit",),
    "discard": ("discard",),
    "keep": ("discard",),
}


def choice(send: SendView, back: str) -> Action | None:
    """What the person of ``back`` takes of what is offered."""
    offered = [each.action for each in send.choices]
    return next((action for action in WANTED[back] if action in offered), None)
