"""Evidence and moves of sends, inside a transaction: what every writing method of the ledger rests on."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from letta_tui.ledger import transitions
from letta_tui.ledger.errors import IllegalMove, LedgerError, NoSuchSend
from letta_tui.ledger.rows import send_of, stamp_values, to_json
from letta_tui.ledger.values import Clock, Delivery, Evidence, EvidenceKind, Send, TurnOutcome

_ENDS: Final[frozenset[EvidenceKind]] = frozenset({"turn_done", "turn_cancelled", "turn_failed"})
_RUNS: Final[frozenset[EvidenceKind]] = _ENDS | {"run_seen", "turn_running", "server_reran", "approval_asked"}
_ON_SERVER: Final[tuple[EvidenceKind, ...]] = ("attempt", "ack", "queue_seen")
_REPEATS: Final[Mapping[EvidenceKind, EvidenceKind]] = {"ack": "ack_repeat", "refused": "refused_repeat"}


class Moves:
    """Mixed into the ledger. Each method works on the connection of an open transaction."""

    _clock: Clock

    @staticmethod
    def _row(conn: sqlite3.Connection, client_message_id: str) -> sqlite3.Row | None:
        row: sqlite3.Row | None = conn.execute(
            "SELECT * FROM sends WHERE client_message_id = ?", (client_message_id,)
        ).fetchone()
        return row

    def _get(self, conn: sqlite3.Connection, client_message_id: str) -> Send:
        row = self._row(conn, client_message_id)
        if row is None:
            raise NoSuchSend(f"There is no message {client_message_id} in the ledger.")
        return send_of(conn, row)

    def _record(self, conn: sqlite3.Connection, client_message_id: str, evidence: Evidence) -> int | None:
        """Append; the sequence number, or ``None`` when this event is already there."""
        done = conn.execute(
            """INSERT INTO evidence (client_message_id, kind, connection_id, event_seq,
            idempotency_key, run_id, request_id, server_life, payload, at_wall, at_mono, at_boot)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING""",
            (
                client_message_id,
                evidence.kind,
                evidence.connection_id,
                evidence.event_seq,
                evidence.idempotency_key,
                evidence.run_id,
                evidence.request_id,
                evidence.server_life,
                to_json(evidence.payload),
                *stamp_values(evidence.stamp or self._clock()),
            ),
        )
        return done.lastrowid if done.rowcount else None

    def _observe(self, conn: sqlite3.Connection, send: Send, evidence: Evidence) -> None:
        evidence = as_it_counts(send, evidence)
        seq = self._record(conn, send.client_message_id, evidence)
        if seq is None:
            return
        delivery = transitions.implied(send.delivery, evidence.kind)
        outcome = transitions.implied_outcome(send.outcome, evidence.kind)
        if delivery != send.delivery:
            self._set(conn, send.client_message_id, "delivery", delivery, seq)
        terminal = evidence.payload if evidence.kind in _ENDS and outcome != send.outcome else None
        if outcome != send.outcome:
            self._set(conn, send.client_message_id, "outcome", outcome, seq)
        self._note_run(conn, send, evidence, terminal)

    def _move(
        self, conn: sqlite3.Connection, client_message_id: str, to: Delivery, evidence: Evidence
    ) -> None:
        send = self._get(conn, client_message_id)
        if not transitions.can_move(send.delivery, to, evidence.kind):
            raise IllegalMove(
                f"A message that is {send.delivery} cannot become {to} on evidence of kind {evidence.kind}.",
                old=send.delivery,
                new=to,
                kind=evidence.kind,
            )
        seq = self._record(conn, client_message_id, evidence)
        if seq is None:
            raise IllegalMove(f"This evidence ({evidence.kind}) was already used.", old=send.delivery, new=to)
        self._set(conn, client_message_id, "delivery", to, seq)
        outcome = transitions.implied_outcome(send.outcome, evidence.kind)
        if outcome != send.outcome:
            self._set(conn, client_message_id, "outcome", outcome, seq)
        self._note_run(conn, send, evidence, None)

    def _move_outcome(
        self,
        conn: sqlite3.Connection,
        client_message_id: str,
        to: TurnOutcome,
        evidence: Evidence,
        terminal: Mapping[str, Any] | None,
    ) -> None:
        send = self._get(conn, client_message_id)
        if not transitions.can_end(send.outcome, to, evidence.kind):
            raise IllegalMove(
                f"A turn that is {send.outcome} cannot become {to} on evidence of the kind {evidence.kind}.",
                old=send.outcome,
                new=to,
                kind=evidence.kind,
            )
        seq = self._record(conn, client_message_id, evidence)
        if seq is None:
            return
        self._set(conn, client_message_id, "outcome", to, seq)
        self._note_run(conn, send, evidence, terminal)

    def _set(
        self, conn: sqlite3.Connection, client_message_id: str, column: str, value: str, seq: int
    ) -> None:
        rests = "rests_on" if column == "delivery" else "outcome_rests_on"
        conn.execute(
            f"""UPDATE sends SET {column} = ?, {rests} = ?, updated_wall = ?, updated_mono = ?,
            updated_boot = ? WHERE client_message_id = ?""",
            (value, seq, *stamp_values(self._clock()), client_message_id),
        )

    @staticmethod
    def _note_run(
        conn: sqlite3.Connection, send: Send, evidence: Evidence, terminal: Mapping[str, Any] | None
    ) -> None:
        if terminal is not None:
            conn.execute(
                "UPDATE sends SET terminal = ? WHERE client_message_id = ?",
                (to_json(terminal), send.client_message_id),
            )
        if evidence.run_id and evidence.kind in _RUNS and evidence.run_id not in send.run_ids:
            conn.execute(
                "UPDATE sends SET run_ids = ? WHERE client_message_id = ?",
                (to_json([*send.run_ids, evidence.run_id]), send.client_message_id),
            )


def by_person(consent: Evidence | None) -> Evidence:
    if consent is None or consent.kind != "person":
        raise LedgerError("Only a person's choice can do this.")
    return consent


def as_it_counts(send: Send, evidence: Evidence) -> Evidence:
    """File an answer to a repeated write, or a removal after a break, as what it proves."""
    if evidence.kind in _REPEATS and len(send.attempts) > 1:
        first = send.attempts[0]
        answers_first = (
            first.number == 1
            and evidence.request_id == first.request_id
            and evidence.connection_id == first.connection_id
        )
        if not answers_first:
            return replace(evidence, kind=_REPEATS[evidence.kind])
    if evidence.kind == "removed":
        unbroken = any(
            send.last[kind].connection_id == evidence.connection_id
            for kind in _ON_SERVER
            if kind in send.last
        )
        if not unbroken:
            return replace(evidence, kind="removed_late")
    return evidence
