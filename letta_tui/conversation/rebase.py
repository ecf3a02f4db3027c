"""The order of rows after a stretch of history was read: history's order, with nothing lost.

History's stretch is without gaps. Rows it does not hold keep their place behind the row they followed:
a notice stays below the message it is about. What may still come into history (a message just sent, a
reply that grows) stays below everything that is already there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from letta_tui.conversation.entries import Entry


def order(
    shown: Sequence[Entry],
    history: Sequence[Entry],
    *,
    newest: bool,
    was_in_history: Callable[[Entry], bool],
    pending: Callable[[Entry], bool],
) -> list[Entry]:
    """The merged list.

    ``newest``: the stretch reaches to the head. ``was_in_history``: history had the row before this
    stretch came. ``pending``: the row may come into history later.
    """
    inside = {id(e) for e in history}
    common = [n for n, e in enumerate(shown) if id(e) in inside]
    if not common:
        if not newest:
            return [*history, *shown]
        cut = 1 + max((n for n, e in enumerate(shown) if was_in_history(e)), default=-1)
        return [*shown[:cut], *history, *shown[cut:]]
    above = list(shown[: common[0]])
    followers: dict[int, list[Entry]] = {}
    anchor = id(shown[common[0]])
    for entry in shown[common[0] : common[-1] + 1]:
        if id(entry) in inside:
            anchor = id(entry)
        else:
            followers.setdefault(anchor, []).append(entry)
    trailing = list(shown[common[-1] + 1 :])
    bottom: list[Entry] = []
    if newest:
        cut = next((n for n, e in enumerate(trailing) if pending(e)), len(trailing))
        trailing, bottom = trailing[:cut], trailing[cut:]
    followers.setdefault(id(shown[common[-1]]), []).extend(trailing)
    known = {id(e) for e in shown}
    merged, waiting = above, list[Entry]()
    for entry in history:
        if id(entry) in known:
            merged.extend(waiting)
            waiting = list(followers.get(id(entry), ()))
            merged.append(entry)
            continue
        # A row that was never shown: what was streamed after it stays after it.
        while waiting and not _later(waiting[0], entry):
            merged.append(waiting.pop(0))
        merged.append(entry)
    merged.extend(waiting)
    merged.extend(bottom)
    return merged


def _later(entry: Entry, history: Entry) -> bool:
    """Whether a streamed row is later than a history row, by the server's clock."""
    if entry.send is not None or entry.when is None or history.when is None:
        return False
    return entry.when >= history.when
