"""The conversation on the screen, as the worker knows it: reducers, open sends, and how far recovery is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from letta_tui.conversation.approvals import Approvals
from letta_tui.conversation.places import SendState
from letta_tui.conversation.queue import Queue
from letta_tui.conversation.reconcile import EndNote, LoopRead, QueueRead, Verdict
from letta_tui.conversation.transcript import Transcript
from letta_tui.conversation.turn import Turn
from letta_tui.ledger.values import Anchor, Place, Send
from letta_tui.protocol import DeviceStatus, LoopStatus, Runtime
from letta_tui.seam.state import ApprovalView


@dataclass
class Room:
    """Kept over a reconnect to the same conversation; made anew for another one.

    ``released``: prepared sends that may be written without asking, since the person submitted them here
    and has been here since. ``behind``: sends written while a turn was active. ``sends``: ledger rows that
    are not at rest, in the order prepared, by client message id.
    """

    place: Place
    runtime: Runtime
    transcript: Transcript
    queue: Queue
    approvals: Approvals
    turn: Turn
    relaunched: bool = False  # it was stored before this worker began
    connection_id: str = ""
    device: DeviceStatus | None = None
    loop: LoopStatus | None = None
    queue_read: QueueRead | None = None
    loop_read: LoopRead | None = None
    sends: dict[str, Send] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    released: set[str] = field(default_factory=set)
    behind: set[str] = field(default_factory=set)
    checking: set[str] = field(default_factory=set)
    cancel_asked: set[str] = field(
        default_factory=set
    )  # client message ids whose cancel this window asked for
    ends: list[EndNote] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    shown: dict[str, SendState] = field(default_factory=dict)
    runs_seen: set[tuple[str, str]] = field(default_factory=set)  # (run, client message id), this connection
    history_known: bool = False
    ready: bool = False  # recovery has ended on this connection
    blocked: str = ""  # why nothing may be sent here, in words
    held: bool = False  # the keeper has confirmed that it holds the conversation
    hold_given_up: bool = False
    settled_once: bool = False
    missed_since: float | None = None  # wall clock: what came later may not have been heard
    twice: int = 0  # sends found to have been run twice, not yet told
    unseen: int = 0  # turns found to have ended unseen, not yet told
    forgotten: bool = False  # the person erased what is stored of it, perhaps in another window: it is not
    # kept again while it is open
    told_away: bool = False  # what the keeper saw of them is in the notes
    asks: list[ApprovalView] = field(default_factory=list)  # calls of the person's own tools that wait
    auto: set[str] = field(default_factory=set)  # approvals that the config file answers
    own_tools: frozenset[str] = frozenset()  # names of the person's own, as registered on this connection
    old_cards: frozenset[str] = frozenset()  # approvals of such tools that were asked for on an earlier one
    restored: list[str] = field(default_factory=list)  # what was rebuilt on this connection, and what not
    toolset: Mapping[str, Any] | None = None  # goes with each input

    def missed(self, since: float) -> None:
        """Nothing was heard from ``since`` on, until recovery has ended again."""
        self.missed_since = since if self.missed_since is None else min(since, self.missed_since)

    @classmethod
    def of(cls, place: Place, *, relaunched: bool) -> Room:
        agent, conversation = place.agent_id, place.conversation_id
        return cls(
            place=place,
            runtime=Runtime(agent or None, conversation),
            transcript=Transcript(agent, conversation),
            queue=Queue(agent, conversation),
            approvals=Approvals(agent, conversation),
            turn=Turn(agent, conversation),
            relaunched=relaunched,
        )

    def is_about(self, runtime: Runtime | None) -> bool:
        return (
            runtime is not None
            and runtime.conversation_id == self.runtime.conversation_id
            and (runtime.agent_id or "") == (self.runtime.agent_id or "")
        )

    def verdict(self, send: Send) -> Verdict | None:
        """The verdict on a send while it is about what the send is now: events move it on meanwhile."""
        found = self.verdicts.get(send.client_message_id)
        return found if found is not None and found.delivery == send.delivery else None

    def anchor(self) -> Anchor | None:
        """The last row of history now; None while the history is not known."""
        if not self.history_known:
            return None
        return Anchor(self.transcript.newest_id or "")

    @property
    def idle(self) -> bool:
        return self.turn.idle_known and not self.approvals.pending

    def loop_now(self, arrival: int) -> LoopRead | None:
        """A loop reading as of frame ``arrival``; None while neither loop nor device status is known."""
        if self.loop is None:
            return None
        return LoopRead(
            order=arrival,
            waiting_for_input=self.loop.status == "WAITING_ON_INPUT",
            active_run_ids=self.loop.active_run_ids,
            # The server also names the inputs of runs that are over; those say nothing about now.
            by_run={
                run: keys
                for run, keys in self.loop.client_message_ids_by_run_id.items()
                if run in self.loop.active_run_ids
            },
            processing=None if self.device is None else self.device.is_processing,
            approvals_pending=len(self.approvals.pending),
        )
