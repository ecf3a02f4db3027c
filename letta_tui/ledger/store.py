"""The send ledger's file.

Every public method of :class:`Ledger` is one transaction, safe from any thread and beside other
processes, and raises only :class:`letta_tui.ledger.errors.LedgerError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from letta_tui.ledger.values import (
    Anchor,
    Approval,
    ApprovalState,
    Attempt,
    Clock,
    Delivery,
    Draft,
    Evidence,
    Opening,
    Place,
    Remembered,
    Send,
    TurnOutcome,
)


class Ledger:
    """An open ledger. Use :meth:`open`."""

    opening: Opening

    @classmethod
    def open(cls, path: Path, clock: Clock) -> Ledger:
        """Open or create the file (0600 in a 0700 folder), migrate it, salvage it when damaged.

        What happened is in ``.opening``; a salvage must be said to the person.
        Raises ``LedgerTooNew``, ``LedgerUnwritable``.
        """
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    # --- servers and conversations -------------------------------------------------------------

    def remember_server(self, server_key: str, *, label: str, kind: str) -> None:
        """Store or refresh an endpoint's label and kind (embedded, direct, hosted)."""
        raise NotImplementedError

    def remember_conversation(
        self,
        place: Place,
        *,
        title: str = "",
        agent_name: str = "",
        state: Mapping[str, Any] | None = None,
        window_id: str = "",
        used: bool = True,
    ) -> Remembered:
        """Store a conversation, before anything is sent in it. Empty values never overwrite stored ones;
        ``state`` is merged key by key and a value of ``None`` or "" in it is ignored. ``used`` marks it as
        the one last used (by ``window_id`` too, when given)."""
        raise NotImplementedError

    def forget_state(self, place: Place, *keys: str) -> None:
        """Remove keys from a conversation's stored state (all keys when none is named)."""
        raise NotImplementedError

    def conversation(self, place: Place) -> Remembered | None:
        raise NotImplementedError

    def conversations(
        self, server_key: str | None = None, agent_id: str | None = None
    ) -> tuple[Remembered, ...]:
        """Last used first."""
        raise NotImplementedError

    def last_used(
        self, server_key: str | None = None, agent_id: str | None = None, window_id: str = ""
    ) -> Remembered | None:
        """The conversation to come back to: of this window if it has one, else of any."""
        raise NotImplementedError

    # --- sends ---------------------------------------------------------------------------------

    def prepare(
        self,
        place: Place,
        text: str,
        client_message_id: str,
        *,
        anchor: Anchor | None,
        otid: str = "",
        window_id: str = "",
        supersedes: str = "",
        consent: Evidence | None = None,
    ) -> Send:
        """First commit: the text is on disk, the composer may clear.

        ``otid`` defaults to the client message id. With ``supersedes`` the older row is moved to
        "superseded" in the same transaction; ``consent`` (kind "person", the choice and the risk that was
        told in its payload) is then required.
        """
        raise NotImplementedError

    def begin_attempt(
        self,
        client_message_id: str,
        *,
        request_id: str,
        connection_id: str,
        expected_attempts: int = 0,
        server_version: str = "",
        server_life: str = "",
        consent: Evidence | None = None,
    ) -> Attempt:
        """Second commit, before the write: prepared → unconfirmed, or one more attempt of an unconfirmed.

        ``expected_attempts`` is the number of attempts the caller knows of; another number raises
        ``StaleAttempt``, so two processes never write one attempt each. A repeat, and anything on a salvaged
        row, needs ``consent`` (kind "person").
        """
        raise NotImplementedError

    def attempt_stands(self, attempt: Attempt) -> bool:
        """Whether the message may still be written: the attempt is the last one and the message is still
        unconfirmed. Ask again when time passed between ``begin_attempt`` and the write."""
        raise NotImplementedError

    def written(self, attempt: Attempt) -> None:
        """The socket took the bytes. Without it a fence on that connection counts for nothing."""
        raise NotImplementedError

    def observe(self, client_message_id: str, evidence: Evidence) -> Send | None:
        """Record live evidence and follow where ``transitions.implied`` takes delivery and outcome.

        The everyday call: never illegal, keeps what it cannot use. The same event on the same connection
        (idempotency key) is recorded once. ``None`` when the id is not ours.
        """
        raise NotImplementedError

    def move(self, client_message_id: str, to: Delivery, evidence: Evidence) -> Send:
        """Record ``evidence`` and move the delivery. Raises ``IllegalMove``."""
        raise NotImplementedError

    def move_outcome(
        self,
        client_message_id: str,
        to: TurnOutcome,
        evidence: Evidence,
        *,
        terminal: Mapping[str, Any] | None = None,
    ) -> Send:
        """Record ``evidence`` and move the turn outcome; ``terminal`` is how the turn ended."""
        raise NotImplementedError

    def judge(
        self,
        client_message_id: str,
        *,
        delivery: Delivery,
        outcome: TurnOutcome,
        evidence: Iterable[Evidence],
        sentence: str = "",
        terminal: Mapping[str, Any] | None = None,
    ) -> Send:
        """Commit a verdict of ``conversation.reconcile``: its evidence and its moves in one transaction.
        A verdict that changes nothing and whose evidence is already recorded writes nothing."""
        raise NotImplementedError

    def discard(self, client_message_id: str, consent: Evidence) -> Send:
        """The person dropped it."""
        raise NotImplementedError

    def send(self, client_message_id: str) -> Send | None:
        raise NotImplementedError

    def newest(self) -> Send | None:
        raise NotImplementedError

    def sends(self, place: Place | None = None, *, limit: int | None = None) -> tuple[Send, ...]:
        """In the order they were prepared; with ``limit`` the newest ones."""
        raise NotImplementedError

    def open_sends(self, place: Place | None = None) -> tuple[Send, ...]:
        """Every send that is not at rest, or whose turn has not ended, in the order prepared: the input of
        ``conversation.reconcile``."""
        raise NotImplementedError

    def attempts(self, client_message_id: str) -> tuple[Attempt, ...]:
        raise NotImplementedError

    def evidence(self, client_message_id: str) -> tuple[Evidence, ...]:
        """In the order recorded."""
        raise NotImplementedError

    # --- approval decisions ----------------------------------------------------------------------

    def decide(
        self,
        place: Place,
        request_id: str,
        *,
        tool_call_id: str,
        tool_name: str,
        decision: str,
        message: str = "",
        suggestion_ids: tuple[str, ...] = (),
        window_id: str = "",
    ) -> Approval:
        """Record a decision before it is written. Raises ``IllegalMove`` when this request already has one
        that may have been written (rule 8: never twice)."""
        raise NotImplementedError

    def approval_moved(
        self,
        place: Place,
        request_id: str,
        state: ApprovalState,
        *,
        input_request_id: str = "",
        connection_id: str = "",
        words: str = "",
    ) -> Approval:
        """Raises ``IllegalMove`` for a state that cannot follow."""
        raise NotImplementedError

    def approval(self, place: Place, request_id: str) -> Approval | None:
        raise NotImplementedError

    def approvals(self, place: Place, *, open_only: bool = False) -> tuple[Approval, ...]:
        """``open_only``: decided or written, not yet answered by the server."""
        raise NotImplementedError

    # --- drafts ----------------------------------------------------------------------------------

    def save_draft(self, window_id: str, place: Place, text: str) -> None:
        """Per window and conversation; an empty text removes it."""
        raise NotImplementedError

    def draft(self, window_id: str, place: Place) -> Draft | None:
        raise NotImplementedError

    def drafts(self, place: Place) -> tuple[Draft, ...]:
        """Of every window, newest first (a relaunched window adopts one of a window that is gone)."""
        raise NotImplementedError

    def adopt_draft(self, old_window_id: str, window_id: str, place: Place) -> Draft | None:
        """Take over the draft of a window that is gone; ``None`` when it is no longer there."""
        raise NotImplementedError

    # --- erasing ---------------------------------------------------------------------------------

    def redact(self, client_message_id: str) -> Send:
        """Erase the body everywhere in this file; the row stays and says so. A message that has not been
        sent, or was judged, becomes "redacted"; one under way or delivered keeps its state."""
        raise NotImplementedError

    def forget(self, place: Place) -> int:
        """Erase bodies, drafts, title and state of a conversation; returns the number of sends erased."""
        raise NotImplementedError

    def retain(self, days: float | None) -> int:
        """Erase bodies of sends at rest that are older than ``days`` (``None``: keep all); how many."""
        raise NotImplementedError

    # --- reports ---------------------------------------------------------------------------------

    def export(self, *, bodies: bool = False) -> dict[str, Any]:
        """Everything as plain JSON data, for a bug report; bodies are left out unless asked for."""
        raise NotImplementedError

    # --- settings --------------------------------------------------------------------------------

    def setting(self, name: str) -> Any:
        """A stored value (plain JSON data), ``None`` when not set."""
        raise NotImplementedError

    def set_setting(self, name: str, value: Any) -> None:
        raise NotImplementedError
