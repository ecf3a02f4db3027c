"""Named points at which a test kills the process, to prove that a relaunch finds the truth.

Set ``LETTA_TUI_CRASH_AT=name`` (or ``name#3`` for the third time the point is reached) and the process
gets SIGKILL there: no handler, no flush, exactly what a power button leaves behind. With
``LETTA_TUI_CRASH_WHO``, process ids with commas between them, those get it in its place, once; 0 stands for
this process. Without the first variable a point costs one dictionary look-up. The names are listed in
``POINTS`` so that a kill matrix can walk them.
"""

from __future__ import annotations

import contextlib
import os
import signal

VARIABLE = "LETTA_TUI_CRASH_AT"
WHO = "LETTA_TUI_CRASH_WHO"

POINTS = (
    "submit.before_prepare",
    "submit.after_prepare",
    "send.before_attempt",
    "send.after_attempt",
    "send.after_write",
    "send.after_accept",
    "send.after_accept_recorded",
    "queue.seen",
    "queue.before_cancel",
    "queue.after_cancel",
    "queue.dequeued",
    "turn.started",
    "turn.finished",
    "turn.delivered",
    "approval.seen",
    "approval.before_record",
    "approval.after_record",
    "approval.after_write",
    "approval.after_answer",
    "tool.before_record",
    "tool.after_record",
    "tool.after_run",
    "tool.after_result",
    "tool.after_answer",
    "conversation.after_create",
    "conversation.after_remember",
    "reconcile.before_read",
    "reconcile.after_read",
    "reconcile.after_verdicts",
    "resend.after_attempt",
    "resend_new.after_supersede",
    "edit.after_draft",
)

_seen: dict[str, int] = {}


def reached(name: str) -> None:
    """Die here when the environment asks for it."""
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return
    point, _, count = wanted.partition("#")
    if point != name:
        return
    _seen[name] = _seen.get(name, 0) + 1
    if _seen[name] == (int(count) if count.isdigit() else 1):
        for pid in os.environ.get(WHO, "0").split(","):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid) or os.getpid(), signal.SIGKILL)
