"""Erasing: the words are gone from the file, the row stays and says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from letta_tui.ledger.errors import StaleAttempt
from letta_tui.ledger.store import Ledger
from letta_tui.ledger.values import Evidence
from tests.ledger.conftest import OTHER, PLACE, FakeClock

SECRET = "correct-horse-battery-staple"


def on_disk(path: Path) -> bytes:
    return b"".join(p.read_bytes() for p in path.parent.iterdir() if p.is_file())


def secret_message(ledger: Ledger) -> None:
    ledger.prepare(PLACE, f"the key is {SECRET} " + "x" * 9000, "m1", anchor=None)
    ledger.save_draft("w1", PLACE, f"again: the key is {SECRET} " + "x" * 9000)
    ledger.save_draft("w2", PLACE, "innocent")
    ledger.begin_attempt("m1", request_id="r1", connection_id="c1")
    ledger.observe("m1", Evidence("echo", payload={"text": f"{SECRET}", "row": "ui-1"}))
    ledger.observe("m1", Evidence("turn_failed", payload={"error": f"bad {SECRET}", "stop_reason": "error"}))


def test_a_redacted_secret_is_gone_from_the_disk(ledger: Ledger, path: Path) -> None:
    secret_message(ledger)
    assert SECRET.encode() in on_disk(path)
    send = ledger.redact("m1")
    assert SECRET.encode() not in on_disk(path)
    assert (send.text, send.erased, send.delivery) == ("", True, "started")
    assert send.terminal == {"error": "", "stop_reason": "error"}
    assert [d.text for d in ledger.drafts(PLACE)] == ["innocent"]
    echo = next(e for e in ledger.evidence("m1") if e.kind == "echo")
    assert echo.payload == {"text": "", "row": "ui-1"}
    assert ledger.evidence("m1")[-1].kind == "redacted"
    assert ledger.redact("m1") == send, "twice is once"


def test_what_was_not_sent_can_no_longer_be_sent(ledger: Ledger) -> None:
    ledger.prepare(PLACE, SECRET, "m1", anchor=None)
    assert ledger.redact("m1").delivery == "redacted"
    with pytest.raises(StaleAttempt):
        ledger.begin_attempt("m1", request_id="r", connection_id="c")


def test_a_forgotten_conversation_is_not_come_back_to(ledger: Ledger, path: Path) -> None:
    secret_message(ledger)
    ledger.remember_conversation(PLACE, title=SECRET, state={"cwd": f"/{SECRET}"}, window_id="w1")
    ledger.decide(PLACE, "p", tool_call_id="t", tool_name="Bash", decision="deny", message=SECRET)
    ledger.prepare(OTHER, "stays", "m2", anchor=None)
    assert ledger.forget(PLACE) == 1
    assert SECRET.encode() not in on_disk(path)
    assert ledger.last_used() is None
    assert ledger.last_used(window_id="w1") is None
    kept = ledger.send("m2")
    assert kept is not None
    assert kept.text == "stays"
    assert len(ledger.sends()) == 2


def test_retention_erases_only_what_is_at_rest_and_old(ledger: Ledger, clock: FakeClock) -> None:
    for key in ("old", "open", "new"):
        if key == "new":
            clock.advance(40 * 86400)
        ledger.prepare(PLACE, SECRET, key, anchor=None)
        ledger.begin_attempt(key, request_id=key, connection_id="c1")
        if key != "open":
            ledger.observe(key, Evidence("history_row"))
    assert ledger.retain(None) == 0
    assert ledger.retain(30) == 1
    assert [s.erased for s in ledger.sends()] == [True, False, False]
    assert ledger.retain(30) == 0


def test_export_leaves_bodies_out_unless_asked(ledger: Ledger) -> None:
    secret_message(ledger)
    ledger.remember_server("server-a", label=f"ws://{SECRET}")
    ledger.remember_conversation(
        PLACE, title=SECRET, agent_name=SECRET, state={"cwd": SECRET, "mode": "strict"}
    )
    ledger.decide(PLACE, "p", tool_call_id="t", tool_name="Bash", decision="deny", message=SECRET)
    plain = json.dumps(ledger.export())
    assert SECRET not in plain
    data = json.loads(plain)
    assert data["sends"][0]["delivery"] == "started"
    assert data["sends"][0]["text_length"] > 9000
    assert data["conversations"][0]["state"] == {"cwd": "", "mode": "strict"}
    assert [e["kind"] for e in data["evidence"]] == ["prepared", "attempt", "echo", "turn_failed"]
    assert SECRET in json.dumps(ledger.export(bodies=True))
