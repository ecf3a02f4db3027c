"""Whether a delivered message was answered, as far as history and what was seen of its turn can tell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from letta_tui.conversation.reconcile_values import EndNote, HistoryRead, HistoryRow
from letta_tui.ledger.values import Send

Reply = Literal[
    "own",  # the agent said or did something in answer to it
    "none",  # its turn ended and nothing answered it
    "shared",  # the next input follows it directly: an answer after that may be to both
]

_SAID = ("assistant", "tool")
_INPUTS = ("user", "notification")


def reply_of(send: Send, history: HistoryRead, ends: Iterable[EndNote] = ()) -> Reply:
    """Of a message whose turn is over.

    The rows between it and the next input are its own. Inputs that are known to have been run together with
    it are no next ones: the server merges what is queued into one run with one reply. An input can also be
    another window's, or one that a program wrote (a notification); what follows that is its answer. A message
    that is not in these rows is taken as answered: nothing is said against it.
    """
    rows = _after(send, history.rows)
    if rows is None:
        return "own"
    together = _together(send, ends)
    own = 0
    while own < len(rows) and (rows[own].kind not in _INPUTS or rows[own].otid in together):
        own += 1
    if any(row.kind in _SAID for row in rows[:own]):
        return "own"
    terminal = send.terminal or {}
    if terminal.get("final_text"):
        return "own"  # it was seen, wherever history has put it
    if terminal.get("final_text") == "" or send.outcome in ("failed", "cancelled"):
        return "none"  # its end was seen, and nothing had been said by then
    return "shared" if any(row.kind in _SAID for row in rows[own:]) else "none"


def _after(send: Send, rows: tuple[HistoryRow, ...]) -> tuple[HistoryRow, ...] | None:
    mine = [number for number, row in enumerate(rows) if row.otid and row.otid == send.otid]
    return rows[mine[-1] + 1 :] if mine else None


def _together(send: Send, ends: Iterable[EndNote]) -> frozenset[str]:
    """Ids of inputs of its turn: of the end that was seen, or that was noted when it was."""
    key = send.client_message_id
    known = {each for end in ends if key in end.client_message_ids for each in end.client_message_ids}
    noted = (send.terminal or {}).get("inputs")
    if isinstance(noted, list | tuple):
        known |= {str(each) for each in noted}
    return frozenset(known | {key, send.otid})
