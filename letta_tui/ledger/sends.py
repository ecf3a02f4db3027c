"""The sends of the ledger: prepare, attempt, observe, move, judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from letta_tui.ledger import transitions
from letta_tui.ledger.database import Database
from letta_tui.ledger.errors import IllegalMove, StaleAttempt
from letta_tui.ledger.moves import Moves, by_person
from letta_tui.ledger.places import store_place
from letta_tui.ledger.rows import (
    AT_PLACE,
    attempt_of,
    clean,
    evidence_of,
    place_values,
    send_of,
    stamp_values,
)
from letta_tui.ledger.values import (
    Anchor,
    Attempt,
    Delivery,
    Evidence,
    Place,
    Send,
    TurnOutcome,
)

_REST: Final = ", ".join(repr(d) for d in sorted(transitions.AT_REST))
_ENDED: Final = ", ".join(repr(o) for o in sorted(transitions.ENDED))
FRESH_SECONDS: Final = 60.0


class Sends(Moves):
    """Mixed into the ledger."""

    _db: Database

    # --- writing ---------------------------------------------------------------------------------

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
        told in its payload) is then required. Raises ``IllegalMove`` when the id is taken or the older row
        can no longer be replaced.
        """
        now = self._clock()
        with self._db.write() as conn:
            store_place(conn, place, now)
            if self._row(conn, client_message_id) is not None:
                raise IllegalMove(f"The message id {client_message_id} is already in use.")
            conn.execute(
                """INSERT INTO sends (client_message_id, otid, server_key, agent_id, conversation_id, text,
                delivery, outcome, anchor_row, anchor_position, supersedes, window_id, created_wall,
                created_mono, created_boot, updated_wall, updated_mono, updated_boot)
                VALUES (?, ?, ?, ?, ?, ?, 'prepared', 'none', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
                (
                    client_message_id,
                    otid or client_message_id,
                    *place_values(place),
                    clean(text),
                    anchor.row_id if anchor is not None else None,
                    anchor.position if anchor is not None else None,
                    supersedes,
                    window_id,
                    *stamp_values(now),
                    *stamp_values(now),
                ),
            )
            self._record(conn, client_message_id, Evidence("prepared", payload={"supersedes": supersedes}))
            if supersedes:
                choice = by_person(consent)
                choice = replace(choice, payload={**choice.payload, "superseded_by": client_message_id})
                self._move(conn, supersedes, "superseded", choice)
                conn.execute(
                    "UPDATE sends SET superseded_by = ? WHERE client_message_id = ?",
                    (client_message_id, supersedes),
                )
            return self._get(conn, client_message_id)

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
        now = self._clock()
        with self._db.write() as conn:
            send = self._get(conn, client_message_id)
            made = len(send.attempts)
            if made != expected_attempts or send.delivery not in ("prepared", "unconfirmed"):
                raise StaleAttempt(
                    f"This message is {send.delivery} after {made} attempts: somebody else went on with it."
                )
            if made or send.salvaged:
                self._record(conn, client_message_id, by_person(consent))
            evidence = Evidence(
                "attempt",
                stamp=now,
                connection_id=connection_id,
                request_id=request_id,
                server_life=server_life,
                payload={"number": made + 1, "server_version": server_version},
            )
            if send.delivery == "prepared":
                self._move(conn, client_message_id, "unconfirmed", evidence)
            else:
                self._record(conn, client_message_id, evidence)
            number = 1 + (send.attempts[-1].number if send.attempts else 0)
            conn.execute(
                """INSERT INTO attempts (client_message_id, number, request_id, connection_id,
                server_version, server_life, began_wall, began_mono, began_boot)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
                (
                    client_message_id,
                    number,
                    request_id,
                    connection_id,
                    server_version,
                    server_life,
                    *stamp_values(now),
                ),
            )
        return Attempt(
            client_message_id, number, request_id, connection_id, now, None, server_version, server_life
        )

    def attempt_stands(self, attempt: Attempt) -> bool:
        """Whether the message may still be written: the attempt is the last one, the message is still
        unconfirmed, and the attempt is less than a minute old by both clocks.

        Ask right before the write: a process can sleep between the second commit and the write, and what was
        safe then (repeating an id the server remembers) need not be safe now.
        """
        now, began = self._clock(), attempt.began
        older = max(now.wall - began.wall, now.mono - began.mono)
        if now.boot != began.boot or not -FRESH_SECONDS < older < FRESH_SECONDS:
            return False
        send = self.send(attempt.client_message_id)
        return (
            send is not None
            and send.delivery == "unconfirmed"
            and bool(send.attempts)
            and send.attempts[-1].number == attempt.number
            and send.attempts[-1].connection_id == attempt.connection_id
        )

    def written(self, attempt: Attempt) -> None:
        """The socket took the bytes. Without it a fence on that connection counts for nothing."""
        now = self._clock()
        with self._db.write() as conn:
            done = conn.execute(
                """UPDATE attempts SET written_wall = ?, written_mono = ?, written_boot = ?
                WHERE client_message_id = ? AND number = ? AND written_wall IS NULL""",
                (*stamp_values(now), attempt.client_message_id, attempt.number),
            )
            if done.rowcount:
                self._record(
                    conn,
                    attempt.client_message_id,
                    Evidence(
                        "written",
                        stamp=now,
                        connection_id=attempt.connection_id,
                        request_id=attempt.request_id,
                        payload={"number": attempt.number},
                    ),
                )

    def observe(self, client_message_id: str, evidence: Evidence) -> Send | None:
        """Record live evidence and follow where ``transitions.implied`` takes delivery and outcome.

        The everyday call: never illegal, keeps what it cannot use. The same event on the same connection
        (idempotency key) is recorded once. An answer to a repeated write is filed as such (rule 5), a removal
        on a connection that did not see the message before as late. ``None`` when the id is not ours.
        """
        with self._db.write() as conn:
            if self._row(conn, client_message_id) is None:
                return None
            self._observe(conn, self._get(conn, client_message_id), evidence)
            return self._get(conn, client_message_id)

    def move(self, client_message_id: str, to: Delivery, evidence: Evidence) -> Send:
        """Record ``evidence`` and move the delivery. Raises ``IllegalMove``."""
        with self._db.write() as conn:
            self._move(conn, client_message_id, to, evidence)
            return self._get(conn, client_message_id)

    def move_outcome(
        self,
        client_message_id: str,
        to: TurnOutcome,
        evidence: Evidence,
        *,
        terminal: Mapping[str, Any] | None = None,
    ) -> Send:
        """Record ``evidence`` and move the turn outcome; ``terminal`` is how the turn ended."""
        with self._db.write() as conn:
            self._move_outcome(conn, client_message_id, to, evidence, terminal)
            return self._get(conn, client_message_id)

    def judge(
        self,
        basis: Send,
        *,
        delivery: Delivery,
        outcome: TurnOutcome,
        evidence: Iterable[Evidence],
        sentence: str = "",
        terminal: Mapping[str, Any] | None = None,
    ) -> Send:
        """Commit a verdict of ``conversation.reconcile`` on the row it was computed from (``basis``): its
        evidence and its moves in one transaction.

        When the row went on in the meantime, the evidence is kept and only what it proves by itself is
        followed: a judgement of absence made on an older row is not. A verdict that changes nothing writes
        nothing.
        """
        client_message_id = basis.client_message_id
        found = tuple(evidence)
        current = self.send(client_message_id)
        if (
            current is not None
            and not found
            and (delivery, outcome, sentence) == (current.delivery, current.outcome, current.sentence)
        ):
            return current
        with self._db.write() as conn:
            send = self._get(conn, client_message_id)
            same = send.delivery == basis.delivery and send.attempts == basis.attempts
            for item in found:
                current = self._get(conn, client_message_id)
                if (
                    same
                    and current.delivery != delivery
                    and transitions.can_move(current.delivery, delivery, item.kind)
                ):
                    self._move(conn, client_message_id, delivery, item)
                elif (
                    same
                    and current.outcome != outcome
                    and transitions.can_end(current.outcome, outcome, item.kind)
                ):
                    self._move_outcome(conn, client_message_id, outcome, item, terminal)
                else:
                    self._observe(conn, current, item)
            after = self._get(conn, client_message_id)
            if same and after.delivery != delivery:
                raise IllegalMove(
                    f"A message that is {after.delivery} cannot become {delivery} on this evidence.",
                    old=after.delivery,
                    new=delivery,
                )
            if same and sentence:
                conn.execute(
                    "UPDATE sends SET sentence = ? WHERE client_message_id = ?", (sentence, client_message_id)
                )
            return self._get(conn, client_message_id)

    def discard(self, client_message_id: str, consent: Evidence) -> Send:
        """The person dropped it."""
        return self.move(client_message_id, "discarded", by_person(consent))

    # --- reading ---------------------------------------------------------------------------------

    def send(self, client_message_id: str) -> Send | None:
        with self._db.read() as conn:
            row = self._row(conn, client_message_id)
            return send_of(conn, row) if row is not None else None

    def newest(self) -> Send | None:
        found = self.sends(limit=1)
        return found[0] if found else None

    def sends(self, place: Place | None = None, *, limit: int | None = None) -> tuple[Send, ...]:
        """In the order they were prepared; with ``limit`` the newest ones."""
        return self._select("1", place, limit)

    def open_sends(self, place: Place | None = None) -> tuple[Send, ...]:
        """Every send that is not at rest, was delivered and whose turn has not ended, or was run again by the
        server without a verdict that says so, in the order prepared: the input of
        ``conversation.reconcile``."""
        return self._select(
            f"""(delivery NOT IN ({_REST}) OR (delivery = 'delivered' AND (outcome NOT IN ({_ENDED})
            OR (sentence NOT IN ('delivered_twice', 'delivered_again') AND EXISTS (SELECT 1 FROM evidence
            WHERE evidence.client_message_id = sends.client_message_id AND kind = 'server_reran')))))""",
            place,
            None,
        )

    def _select(self, condition: str, place: Place | None, limit: int | None) -> tuple[Send, ...]:
        where = f"{condition} AND {AT_PLACE}" if place is not None else condition
        values: tuple[Any, ...] = place_values(place) if place is not None else ()
        with self._db.read() as conn:
            rows = conn.execute(
                f"SELECT * FROM sends WHERE {where} ORDER BY position DESC LIMIT ?",
                (*values, -1 if limit is None else limit),
            ).fetchall()
            return tuple(send_of(conn, r) for r in reversed(rows))

    def attempts(self, client_message_id: str) -> tuple[Attempt, ...]:
        with self._db.read() as conn:
            rows = conn.execute(
                "SELECT * FROM attempts WHERE client_message_id = ? ORDER BY number", (client_message_id,)
            )
            return tuple(attempt_of(r) for r in rows)

    def evidence(self, client_message_id: str) -> tuple[Evidence, ...]:
        """In the order recorded."""
        with self._db.read() as conn:
            rows = conn.execute(
                "SELECT * FROM evidence WHERE client_message_id = ? ORDER BY seq", (client_message_id,)
            )
            return tuple(evidence_of(r) for r in rows)
