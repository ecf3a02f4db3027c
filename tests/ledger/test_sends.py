"""A message's life in the ledger: what moves it, what cannot, what is kept."""

from __future__ import annotations

import itertools
import json
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from letta_tui.ledger import transitions
from letta_tui.ledger.errors import IllegalMove, LedgerError, NoSuchSend, StaleAttempt
from letta_tui.ledger.store import Ledger
from letta_tui.ledger.values import Anchor, Attempt, Evidence, Send
from tests.ledger.conftest import CONSENT, OTHER, PLACE, FakeClock

See = Callable[..., str]


def written(ledger: Ledger, key: str, connection: str = "c1", **options: object) -> Attempt:
    attempt = ledger.begin_attempt(key, request_id=f"r-{key}", connection_id=connection, **options)  # type: ignore[arg-type]
    ledger.written(attempt)
    return attempt


def prepared(ledger: Ledger, key: str = "m1", text: str = "hello") -> Send:
    return ledger.prepare(PLACE, text, key, anchor=Anchor("row-9", 9), window_id="w1")


def test_a_message_is_stored_whole_and_read_back_by_another_process(
    ledger: Ledger, path: Path, clock: FakeClock
) -> None:
    text = "line one\nzwei \U0001f600 \x00 end"
    prepared(ledger, text=text)
    with Ledger.open(path, clock) as other:
        send = other.send("m1")
    assert send is not None
    assert (send.text, send.otid, send.delivery, send.outcome) == (text, "m1", "prepared", "none")
    assert send.anchor == Anchor("row-9", 9)
    assert send.created == clock()


def test_half_characters_do_not_lose_the_message(ledger: Ledger) -> None:
    send = prepared(ledger, text="a\ud83d b")
    assert send.text == "a� b"


def test_the_conversation_is_stored_with_its_first_message(ledger: Ledger) -> None:
    prepared(ledger)
    found = ledger.conversation(PLACE)
    assert found is not None
    assert found.open_sends == 1


def test_the_everyday_path(ledger: Ledger, see: See) -> None:
    prepared(ledger)
    attempt = written(ledger, "m1")
    assert ledger.attempt_stands(attempt)
    assert see("m1", "ack", request_id="r-m1", payload={"disposition": "queued"}) == "accepted"
    assert not ledger.attempt_stands(attempt)
    assert see("m1", "queue_seen") == "queued"
    assert see("m1", "dequeued") == "started"
    assert see("m1", "run_seen", run_id="local-run-1") == "started"
    assert see("m1", "history_row", payload={"row_id": "ui-msg-4"}) == "delivered"
    send = ledger.observe(
        "m1", Evidence("turn_done", run_id="local-run-2", payload={"stop_reason": "end_turn"})
    )
    assert send is not None
    assert send.outcome == "done"
    assert send.terminal == {"stop_reason": "end_turn"}
    assert send.run_ids == ("local-run-1", "local-run-2")
    assert ledger.open_sends(PLACE) == ()
    kinds = [e.kind for e in ledger.evidence("m1")]
    assert kinds[:3] == ["prepared", "attempt", "written"]
    assert kinds[-1] == "turn_done"


def test_an_event_replayed_on_the_same_connection_is_recorded_once(ledger: Ledger, see: See) -> None:
    prepared(ledger)
    written(ledger, "m1")
    for _ in range(3):
        see("m1", "queue_seen", idempotency_key="queue:1:x", event_seq=0)
    see("m1", "queue_seen", idempotency_key="queue:1:x", connection_id="c2")
    seen = [e for e in ledger.evidence("m1") if e.kind == "queue_seen"]
    assert [e.connection_id for e in seen] == ["c1", "c2"]
    assert seen[0].event_seq == 0


def test_delivered_is_never_undone(ledger: Ledger, see: See) -> None:
    prepared(ledger)
    written(ledger, "m1")
    see("m1", "history_row")
    for kind in transitions.KINDS:
        if kind not in ("prepared", "person"):
            assert see("m1", kind) == "delivered"


def test_a_second_run_by_the_server_is_told_apart(ledger: Ledger, see: See) -> None:
    prepared(ledger)
    written(ledger, "m1")
    see("m1", "history_row")
    see("m1", "turn_done")
    see("m1", "history_twice", payload={"row_ids": ["a", "b"]})
    see("m1", "server_reran", run_id="local-run-1")
    send = ledger.send("m1")
    assert send is not None
    assert (send.delivery, send.outcome) == ("delivered", "running")
    assert "history_twice" in send.last


def test_a_late_end_of_a_turn_fills_in_what_nobody_saw(ledger: Ledger, see: See) -> None:
    prepared(ledger)
    written(ledger, "m1")
    see("m1", "history_row")
    ledger.move_outcome("m1", "ended_unseen", Evidence("idle"))
    see("m1", "turn_failed", payload={"stop_reason": "error"})
    send = ledger.send("m1")
    assert send is not None
    assert send.outcome == "failed"


def test_a_late_loop_status_does_not_revive_an_ended_turn(ledger: Ledger, see: See) -> None:
    prepared(ledger)
    written(ledger, "m1")
    see("m1", "run_seen")
    see("m1", "turn_done")
    see("m1", "run_seen")
    send = ledger.send("m1")
    assert send is not None
    assert send.outcome == "done"


def test_a_refusal_counts_only_on_the_first_write(ledger: Ledger, see: See) -> None:
    prepared(ledger, "m1")
    written(ledger, "m1")
    assert see("m1", "refused", request_id="r-m1", payload={"words": "at capacity"}) == "rejected"

    prepared(ledger, "m2")
    written(ledger, "m2")
    again = ledger.begin_attempt(
        "m2", request_id="r2", connection_id="c2", expected_attempts=1, consent=CONSENT
    )
    assert again.number == 2
    assert see("m2", "refused", request_id="r2", connection_id="c2") == "unconfirmed"
    assert see("m2", "ack", request_id="r2", connection_id="c2") == "unconfirmed"
    kinds = {e.kind for e in ledger.evidence("m2")}
    assert {"refused_repeat", "ack_repeat"} <= kinds
    assert not {"refused", "ack"} & kinds
    # The answer to the first write, however late, is still an answer.
    assert see("m2", "ack", request_id="r-m2", connection_id="c1") == "accepted"


def test_a_removal_counts_only_on_an_unbroken_connection(ledger: Ledger, see: See) -> None:
    for key, connection, expected in (("m1", "c1", "cancelled"), ("m2", "c9", "queued")):
        prepared(ledger, key)
        written(ledger, key)
        see(key, "queue_seen")
        assert see(key, "removed", connection_id=connection) == expected


def test_a_repeat_needs_the_person_and_is_counted(ledger: Ledger) -> None:
    prepared(ledger)
    written(ledger, "m1")
    with pytest.raises(LedgerError):
        ledger.begin_attempt("m1", request_id="r2", connection_id="c2", expected_attempts=1)
    ledger.begin_attempt("m1", request_id="r2", connection_id="c2", expected_attempts=1, consent=CONSENT)
    send = ledger.send("m1")
    assert send is not None
    assert [a.number for a in send.attempts] == [1, 2]
    assert send.last["person"].payload["choice"] == "resend"


def test_the_second_of_two_processes_does_not_write(ledger: Ledger, path: Path, clock: FakeClock) -> None:
    prepared(ledger)
    with Ledger.open(path, clock) as other:
        written(ledger, "m1")
        with pytest.raises(StaleAttempt):
            other.begin_attempt("m1", request_id="x", connection_id="c2", expected_attempts=0)
        first = ledger.attempts("m1")[0]
        other.begin_attempt("m1", request_id="x", connection_id="c2", expected_attempts=1, consent=CONSENT)
        # A writer that slept since its second commit asks again before the write.
        assert not ledger.attempt_stands(first)


def test_a_writer_that_slept_since_its_commit_does_not_write(ledger: Ledger, clock: FakeClock) -> None:
    prepared(ledger)
    attempt = ledger.begin_attempt("m1", request_id="r", connection_id="c1")
    clock.advance(5)
    assert ledger.attempt_stands(attempt)
    clock.sleep(3600)
    assert not ledger.attempt_stands(attempt)


def test_sending_as_new_links_both_rows_and_needs_consent(ledger: Ledger, see: See) -> None:
    prepared(ledger, "m1")
    written(ledger, "m1")
    ledger.move("m1", "unknown", Evidence("undecidable"))
    with pytest.raises(LedgerError):
        ledger.prepare(PLACE, "hello", "m2", anchor=None, supersedes="m1")
    assert ledger.send("m2") is None, "nothing is stored when the consent is missing"
    ledger.prepare(
        PLACE, "hello", "m2", anchor=None, supersedes="m1",
        consent=Evidence("person", payload={"choice": "send_new", "risk": "may_run_twice"}),
    )  # fmt: skip
    old, new = ledger.send("m1"), ledger.send("m2")
    assert old is not None
    assert new is not None
    assert (old.delivery, old.superseded_by, new.supersedes) == ("superseded", "m2", "m1")
    assert old.last["person"].payload["risk"] == "may_run_twice"
    # History has the last word even then.
    assert see("m1", "history_row") == "delivered"


def test_a_message_under_way_cannot_be_dropped_or_replaced(ledger: Ledger, see: See) -> None:
    prepared(ledger)
    written(ledger, "m1")
    see("m1", "ack", request_id="r-m1")
    with pytest.raises(IllegalMove):
        ledger.discard("m1", CONSENT)
    with pytest.raises(IllegalMove):
        ledger.prepare(PLACE, "again", "m2", anchor=None, supersedes="m1", consent=CONSENT)
    assert ledger.send("m2") is None


@pytest.mark.parametrize("old", transitions.DELIVERIES)
def test_code_and_database_refuse_the_same_moves(ledger: Ledger, path: Path, old: str) -> None:
    """Every (old, new, kind) is tried against the triggers, behind the program's back."""
    prepared(ledger)
    attempt_kinds = ["prepared", "attempt", "history_row", "absent", "person", "ack", "queue_seen", "note"]
    raw = sqlite3.connect(path, isolation_level=None)
    for new, kind in itertools.product(transitions.DELIVERIES, [*attempt_kinds, "undecidable", "refused"]):
        if new == old:
            continue
        raw.execute("BEGIN")
        try:
            raw.execute("DROP TRIGGER sends_delivery_moves")
            raw.execute("UPDATE sends SET delivery = ?", (old,))
            raw.execute(_trigger("sends_delivery_moves"))
            seq = raw.execute(
                """INSERT INTO evidence (client_message_id, kind, at_wall, at_mono, at_boot)
                VALUES ('m1', ?, 0, 0, '')""",
                (kind,),
            ).lastrowid
            try:
                raw.execute("UPDATE sends SET delivery = ?, rests_on = ?", (new, seq))
                allowed = True
            except sqlite3.IntegrityError:
                allowed = False
            assert allowed == (kind in transitions.DELIVERY_MOVES.get((old, new), ())), (new, kind)  # type: ignore[call-overload]
        finally:
            raw.execute("ROLLBACK")
    raw.close()


def _trigger(name: str) -> str:
    from letta_tui.ledger.schema import CREATE_TRIGGERS

    return next(t for t in CREATE_TRIGGERS if t.startswith(f"CREATE TRIGGER {name} "))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE sends SET delivery = 'delivered'",
        "UPDATE sends SET delivery = 'delivered', rests_on = 1",
        "UPDATE sends SET outcome = 'done'",
        "UPDATE sends SET text = 'other'",
        "UPDATE sends SET client_message_id = 'x'",
        "UPDATE sends SET salvaged = 1",
        "DELETE FROM sends",
        "DELETE FROM evidence",
        "UPDATE evidence SET kind = 'history_row'",
        "UPDATE evidence SET payload = '{}'",
        "DELETE FROM attempts",
        "UPDATE attempts SET connection_id = 'other'",
        "INSERT INTO attempts SELECT client_message_id, 2, '', 'c2', '', '', 0, 0, '', NULL, NULL, NULL "
        "FROM attempts",
        "UPDATE sends SET delivery = 'nonsense'",
    ],
)
def test_the_file_defends_itself(ledger: Ledger, path: Path, statement: str) -> None:
    prepared(ledger)
    ledger.begin_attempt("m1", request_id="r1", connection_id="c1")
    raw = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError):
        raw.execute(statement)
    raw.close()


def test_an_illegal_move_stores_nothing(ledger: Ledger) -> None:
    prepared(ledger)
    before = ledger.evidence("m1")
    with pytest.raises(IllegalMove) as caught:
        ledger.move("m1", "delivered", Evidence("ack"))
    assert (caught.value.old, caught.value.new, caught.value.kind) == ("prepared", "delivered", "ack")
    assert ledger.evidence("m1") == before
    with pytest.raises(NoSuchSend):
        ledger.move("nobody", "delivered", Evidence("history_row"))
    assert ledger.observe("nobody", Evidence("ack")) is None


def test_a_verdict_on_an_older_row_does_not_judge_the_newer_one(ledger: Ledger, see: See) -> None:
    prepared(ledger)
    written(ledger, "m1")
    basis = ledger.send("m1")
    assert basis is not None
    see("m1", "ack", request_id="r-m1")
    verdict = {"outcome": basis.outcome, "evidence": [Evidence("undecidable")], "sentence": "unknown_old"}
    after = ledger.judge(basis, delivery="unknown", **verdict)  # type: ignore[arg-type]
    assert after.delivery == "accepted"
    assert after.sentence == ""
    fresh = ledger.judge(after, delivery="unknown", **verdict)  # type: ignore[arg-type]
    assert (fresh.delivery, fresh.sentence) == ("unknown", "unknown_old")
    count = len(ledger.evidence("m1"))
    ledger.judge(fresh, delivery="unknown", outcome="none", evidence=(), sentence="unknown_old")
    assert len(ledger.evidence("m1")) == count


def test_file_and_folder_are_private(ledger: Ledger, path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_sends_are_kept_apart_by_server(ledger: Ledger) -> None:
    prepared(ledger, "m1")
    ledger.prepare(OTHER, "there", "m2", anchor=None)
    assert [s.client_message_id for s in ledger.sends(OTHER)] == ["m2"]
    assert [s.client_message_id for s in ledger.sends()] == ["m1", "m2"]
    assert [s.client_message_id for s in ledger.sends(limit=1)] == ["m2"]
    newest = ledger.newest()
    assert newest is not None
    assert newest.client_message_id == "m2"


def test_the_table_of_this_version_is_frozen() -> None:
    """A changed table needs a new schema version with a migration that refills it."""
    import hashlib

    from letta_tui.ledger import schema

    rows = [*transitions.delivery_rows(), *transitions.outcome_rows(), *transitions.approval_rows()]
    rows_digest = hashlib.sha256(json.dumps(sorted(map(list, rows))).encode()).hexdigest()[:16]
    assert (schema.VERSION, rows_digest) == (2, "7437b371047e6d88")
