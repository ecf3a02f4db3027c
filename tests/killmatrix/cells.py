"""Every cell of the matrix: a step, what the conversation did, who dies there, what the person does then.

Steps that begin with ``return:`` are those of a window that comes back to a message which an earlier kill
left unconfirmed.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

STATES: Final = ("idle", "busy", "queued", "approval")

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "send": (
        "submit.before_prepare", "submit.after_prepare", "send.before_attempt", "send.after_attempt",
        "send.after_write",
    ),
    "acknowledge": ("send.after_accept", "send.after_accept_recorded"),
    "queue": ("queue.seen", "queue.before_cancel", "queue.after_cancel"),
    "dequeue": ("queue.dequeued",),
    "turn": ("turn.started", "turn.finished", "turn.delivered"),
    "approve": (
        "approval.seen", "approval.before_record", "approval.after_record", "approval.after_write",
        "approval.after_answer",
    ),
    "reconcile": (
        "reconcile.before_read", "reconcile.after_read", "reconcile.after_verdicts",
        "return:reconcile.before_read", "return:reconcile.after_read", "return:reconcile.after_verdicts",
    ),
    "choose": (
        "return:resend.after_attempt", "return:resend_new.after_supersede", "return:edit.after_draft",
    ),
}  # fmt: skip

STEPS: Final = tuple(step for steps in GROUPS.values() for step in steps)

ELSEWHERE: Final = frozenset({"tool", "conversation"})
"""Steps of other stories: a call of the person's own tool (``tests/real/test_tools.py`` kills at each), and
the making of a conversation, before which there is nothing to lose."""

VICTIMS: Final[tuple[tuple[str, ...], ...]] = (("window",), ("keeper",), ("server",))
"""Without "window" the window lives on and has to notice by itself."""

TOGETHER: Final = (("keeper", "window"), ("server", "window"), ("keeper", "server", "window"))
"""Of these a step meets another one in each state."""

RETURNS: Final = ("command", "again", "new", "edit", "discard", "keep")
"""What the person does with what is offered afterwards.

``command``: no window; ``letta-tui send --id`` is run again until it reports an end, as a script would.
``again``: sends it, or sends it again, without a risk where that is offered. ``new``: sends it as a new
message. ``edit``: edits it first. ``discard``: forgets it. ``keep``: decides nothing, leaves, comes back,
then forgets it.
"""

_IDLE: Final[Mapping[str, str]] = {
    "queue": "an idle conversation queues nothing",
    "dequeue": "an idle conversation queues nothing",
    "approve": "a call that waits for a decision is a turn under way: see approval, queued",
}


@dataclass(frozen=True, slots=True)
class Cell:
    step: str
    state: str
    victims: tuple[str, ...]
    back: str

    def __str__(self) -> str:
        return f"{self.step} / {self.state} / {', '.join(self.victims)} / {self.back}"

    @property
    def point(self) -> str:
        """The step's name among ``crashpoints.POINTS``."""
        return self.step.removeprefix("return:")

    @property
    def returning(self) -> bool:
        return self.step.startswith("return:")

    @property
    def group(self) -> str:
        return group_of(self.step)


def group_of(step: str) -> str:
    return next(name for name, steps in GROUPS.items() if step in steps)


def cannot_be(step: str, state: str) -> str:
    """Why a step and a state exclude each other; "" when they do not."""
    group = group_of(step)
    if state == "idle":
        return _IDLE.get(group, "")
    if state == "busy" and group == "approve":
        return "the turn that waits for the decision is the busy one: see approval"
    return ""


def returns_of(step: str) -> tuple[str, ...]:
    """A command neither cancels, decides nor chooses, and ends before a later reading: a window does."""
    command = group_of(step) in ("send", "acknowledge", "turn", "dequeue") or step == "queue.seen"
    return RETURNS if command else RETURNS[1:]


def every() -> list[Cell]:
    """Each step with each state it can meet and all victims, once; the returns take turns. What a kill before
    the first byte leaves is always offered, so there every return comes with every state."""
    cells: list[Cell] = []
    for row, step in enumerate(STEPS):
        backs = returns_of(step)
        for column, state in enumerate(STATES):
            if cannot_be(step, state):
                continue
            for n, victims in enumerate((*VICTIMS, TOGETHER[(row + column) % len(TOGETHER)])):
                cells.append(Cell(step, state, victims, backs[(2 * n + row + column) % len(backs)]))
    known = set(cells)
    for step in ("submit.after_prepare", "send.after_attempt"):
        for state in STATES:
            whole = [Cell(step, state, ("window",), back) for back in RETURNS]
            cells += [cell for cell in whole if cell not in known]
    return cells


def sample(seed: int, count: int) -> list[Cell]:
    """``count`` cells in an order that the seed decides; every one once before any comes twice."""
    cells, rng = every(), random.Random(seed)
    chosen: list[Cell] = []
    while len(chosen) < count:
        rng.shuffle(cells)
        chosen += cells
    return chosen[:count]
