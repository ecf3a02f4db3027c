"""The agent's answer to one message, out of the rows of a transcript: pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from letta_tui.seam.state import Row


@dataclass(slots=True)
class Answer:
    """``text``: what the agent said after its last tool call. ``whole``: none of it may still grow.
    ``acted``: it said or did anything at all."""

    text: str = ""
    whole: bool = True
    acted: bool = False


def answer_to(message_id: str, rows: Sequence[Row], together: Iterable[str] = ()) -> Answer:
    """The answer to ``message_id``. ``together``: other inputs that ran in the same turn.

    A server that restarts in a turn runs the message again under the same id (0.34.12), which gives it
    another row and perhaps another answer: the last whole one counts.
    """
    found: list[Answer] = []
    current: Answer | None = None
    same_turn = frozenset(together)
    for row in rows:
        if row.kind == "user":
            if is_row_of(message_id, row):
                current = Answer()
                found.append(current)
            elif current is not None and not any(is_row_of(other, row) for other in same_turn):
                current = None
        elif current is not None and row.kind == "tool":
            current.text, current.acted = "", True
            current.whole = current.whole and not row.live
        elif current is not None and row.kind == "assistant" and row.text:
            current.text = f"{current.text}\n\n{row.text}" if current.text else row.text
            current.acted = True
            current.whole = current.whole and not row.live
    with_text = [answer for answer in found if answer.text]
    whole = [answer for answer in with_text if answer.whole]
    return (whole or with_text or found or [Answer()])[-1]


def is_row_of(message_id: str, row: Row) -> bool:
    """Rows of messages that came to rest long ago have only their key, made of the otid; the row of a
    second run has the row's own id behind it."""
    if row.client_message_id is not None:
        return row.client_message_id == message_id
    return row.key == f"user:{message_id}" or row.key.startswith(f"user:{message_id}:")
