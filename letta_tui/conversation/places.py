"""Where a send is shown: in the transcript, in the queue strip, or nowhere. One rule for both reducers.

* The transcript shows what runs, ran, or was meant to run at once and did not (so a failed message keeps
  its place and its sign).
* The queue strip shows what waits: held here, or in the server's queue, or written while a turn was
  active (``behind``), since such an input will be queued.
* A message that was taken back, thrown away or replaced is shown nowhere.
* A message that the server's history contains is always in the transcript, whatever else is said of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from letta_tui.seam.state import Delivery, TurnOutcome

Place = Literal["transcript", "strip", "nowhere"]

_STRIP = frozenset({"prepared", "queued"})
_NOWHERE = frozenset({"cancelled", "superseded", "discarded", "redacted"})


@dataclass(frozen=True, slots=True)
class SendState:
    """What the reducers need to know of a ledger row; the worker fills it after every change.

    ``behind``: it was written while a turn was active, so until the server has said otherwise it waits.
    ``held``: not written: an earlier message has to be settled first. ``note``, in words: why it is held;
    of a delivered one, what its row has to say besides.
    ``when``: wall clock, seconds. ``otid`` equals the client message id unless given.
    """

    client_message_id: str
    text: str
    delivery: Delivery
    outcome: TurnOutcome = "none"
    when: float | None = None
    otid: str = ""
    behind: bool = False
    held: bool = False
    note: str = ""


def place_of(send: SendState) -> Place:
    """Where ``send`` is shown while history does not contain it."""
    if send.delivery in _NOWHERE:
        return "nowhere"
    if send.delivery in _STRIP:
        return "strip"
    if send.behind and send.delivery in ("unconfirmed", "accepted"):
        return "strip"
    return "transcript"
