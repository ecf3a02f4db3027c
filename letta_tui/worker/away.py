"""What happened while nobody looked, in words. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from letta_tui.conversation.content import error_text
from letta_tui.ledger.values import Place
from letta_tui.seam.state import Row
from letta_tui.worker.ports import EndNote

AWAY = 60.0  # seconds after which the person may no longer be there
AWAY_HEAD = "While you were away"
MEANWHILE = "Meanwhile"  # what begins a summary for somebody who may have sat there all the time
_VERBS = {
    "done": "ended",
    "ended_unseen": "ended (nobody saw how)",
    "failed": "failed",
    "cancelled": "was cancelled",
}
_MOST_NAMES = 3
_MOST_WORDS = 160


@dataclass(frozen=True, slots=True)
class Away:
    """``left``: when the last window went (wall clock seconds; ``None`` when nobody saw it go)."""

    left: float | None
    notes: tuple[EndNote, ...]


def while_away(notes: Sequence[EndNote], seen: float | None) -> Away:
    """The part of ``notes`` (oldest first) that no window showed.

    ``seen``: when this client last noted that the person was there. A keeper that saw the last window go
    knows better, and what came before that was on a screen.
    """
    left = seen
    rest: list[EndNote] = []
    for note in notes:
        if note.what == "left":
            left, rest = note.when, []
        elif seen is None or note.when > seen:
            rest.append(note)
    return Away(left, tuple(rest) if left is not None else ())


def by_history(
    before: Sequence[Row], after: Sequence[Row], place: Place, now: float, *, later: float | None = None
) -> tuple[EndNote, ...]:
    """What the rows alone tell where no keeper saw it: a turn that is over, with its tools.

    ``before``: the rows as they were last known; nothing can be told without any. ``after``: with history.
    ``later``: new rows from before that time (by the server's clock) do not count: they were seen, not kept.
    """
    known = {row.key: row for row in before}
    last = max((n for n, row in enumerate(after) if row.key in known), default=None)
    if last is None:
        return ()
    fresh = [
        row
        for row in after[last + 1 :]
        if row.kind in ("assistant", "reasoning", "tool")
        and (later is None or row.when is None or row.when > later)
    ]
    grown = [
        row
        for row in after[: last + 1]
        if (old := known.get(row.key)) is not None
        and ((old.live and not row.live) or (old.kind == "assistant" and old.text != row.text))
    ]
    if not fresh and not grown:
        return ()
    tools = [row.tool for row in (*grown, *fresh) if row.tool is not None]
    ran = tuple(tool.name for tool in tools if tool.state in ("done", "failed"))
    denied = tuple(tool.name for tool in tools if tool.state == "denied")
    here = (now, place.agent_id, place.conversation_id)
    end = EndNote(*here, "ended_unseen", "", tools=ran, denied=denied)
    closed = [tool.name for tool in tools if tool.state == "closed"]
    if not closed:
        return (end,)
    asked = any(row.tool is not None and row.tool.state == "awaiting" for row in before)
    were = "was" if len(closed) == 1 else "were"
    why = "not run: nobody answered before the turn ended" if asked else "left without a result"
    return (end, EndNote(*here, "none", f"{_some(closed)} {were} {why}", what="error"))


def summary(away: Away, *, waiting: Sequence[str] = (), now: float, head: str = AWAY_HEAD) -> str:
    """One or two sentences; empty when nothing happened. ``waiting``: tools that wait for a decision now."""
    asked = {tool for note in away.notes if note.what == "approval" for tool in note.tools}
    parts = [*_ends(away.notes), *_tools(away.notes)]
    if asked and waiting:
        parts.append(f"{_some(waiting)} asked for your decision")
    troubles = [_sentence(note.words) for note in away.notes if note.what in ("server", "error")]
    if not parts and not troubles:
        return ""
    if away.left is not None and now - away.left >= 60:
        head += f" ({duration(now - away.left)})"
    said = "; ".join(parts)
    return " ".join([f"{head}: {said}." if said else f"{head}:", *troubles[-2:]])


def mark(notes: Sequence[EndNote]) -> str:
    """A few words for a list of conversations; empty when nothing happened there."""
    for note in reversed(notes):
        if note.what == "approval":
            return "asks for your decision"
        if note.what == "end" and note.outcome == "failed":
            return "failed while you were away"
        if note.what == "end" and note.outcome == "cancelled":
            return "was cancelled while you were away"
        if note.what == "end":
            return "ended while you were away"
    return ""


def duration(seconds: float) -> str:
    """A length of time as a person says it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    if seconds < 36 * 3600:
        return f"{round(seconds / 3600)} h"
    return f"{round(seconds / 86400)} days"


def _ends(notes: Sequence[EndNote]) -> list[str]:
    ends = [note for note in notes if note.what == "end" and note.outcome != "awaiting_approval"]
    parts = []
    for outcome, verb in _VERBS.items():
        these = [note for note in ends if note.outcome == outcome]
        if not these:
            continue
        last = these[-1]
        took = f" after {duration(last.seconds)}" if last.seconds is not None else ""
        if len(these) == 1:
            who = "the turn" if len(ends) == 1 else "one turn"
            said = f"{who} {verb}{took}"
        else:
            said = f"{len(these)} turns {verb.replace('was', 'were')}"
        if outcome == "failed" and last.words:
            said += f" ({_clipped(last.words)})"
        parts.append(said)
    return parts


def _tools(notes: Sequence[EndNote]) -> list[str]:
    ran = [tool for note in notes if note.what == "end" for tool in note.tools]
    denied = [tool for note in notes if note.what == "end" for tool in note.denied]
    parts = []
    if ran:
        parts.append(f"{_some(ran)} ran")
    if denied:
        parts.append(f"{_some(denied)} {'was' if len(denied) == 1 else 'were'} denied")
    return parts


def _some(names: Sequence[str]) -> str:
    """``Bash``, ``Bash (3 times) and Read``, ``Bash, Read, Write and 2 more``."""
    counted = Counter(name or "a tool" for name in names).most_common()
    said = [name if count == 1 else f"{name} ({count} times)" for name, count in counted[:_MOST_NAMES]]
    more = sum(count for _, count in counted[_MOST_NAMES:])
    if more:
        said.append(f"{more} more")
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"


def _clipped(words: str) -> str:
    text = " ".join(error_text(words).split()).rstrip(".")
    return text if len(text) <= _MOST_WORDS else text[: _MOST_WORDS - 1] + "…"


def _sentence(words: str) -> str:
    return f"{_clipped(words)}." if words.strip() else ""
