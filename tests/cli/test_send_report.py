"""What ``letta-tui send`` says of a message, from every state it can be found in. No server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from letta_tui.commands import errors
from letta_tui.commands.answers import Answer, answer_to
from letta_tui.commands.oneshot import Ending, Oneshot, Result
from letta_tui.commands.send_report import Report
from letta_tui.ledger.transitions import DELIVERIES
from letta_tui.ledger.values import KEPT_OF_THE_END, Place, Send, Stamp
from letta_tui.seam.intents import Intent
from letta_tui.seam.state import ApprovalView, ConnectionView, QuestionView, Row, SendView
from letta_tui.seam.updates import (
    ApprovalsChanged,
    ConnectionChanged,
    QuestionChanged,
    SendsChanged,
    Splice,
    TranscriptChanged,
    Update,
)

NOW = Stamp(1.0, 1.0, "boot")
CARD = ApprovalView("r", "c", "weather", "Use weather: city=Ulm", "{}")


def send(delivery: Any, outcome: Any = "none", **more: Any) -> Send:
    values: dict[str, Any] = {"text": "hello", "created": NOW, "updated": NOW, **more}
    return Send("id-1", "id-1", Place("s", "a", "c"), delivery=delivery, outcome=outcome, **values)


def report(
    sent: Send | None, ending: Ending = "ended", words: str = "", answer: str = "", **more: Any
) -> Report:
    cards = (CARD,) if ending == "approval" else ()
    return Report(Result(ending, words, cards), sent, Answer(answer), **more)


@pytest.mark.parametrize(
    ("sent", "more", "code", "said"),
    [
        (send("delivered", "done"), {"answer": "hi"}, errors.OK, ""),
        # An agent may say nothing; but that is known only of a turn that was heard whole.
        (send("delivered", "done", terminal={"final_text": ""}), {}, errors.OK, ""),
        (
            send("delivered", "done", terminal={"final_text": None}),
            {},
            errors.UNKNOWN_DELIVERY,
            "Its turn ended, but the server's history has nothing of an answer now.",
        ),
        (send("delivered", "done"), {}, errors.UNKNOWN_DELIVERY, "Its turn ended"),  # as a keeper saw it
        (
            send("delivered", "done"),
            {"ending": "timeout", "words": "Nothing listens.", "reachable": False},
            errors.UNKNOWN_DELIVERY,
            "Its turn ended, but the answer cannot be read now. Nothing listens.",
        ),
        (send("delivered", "ended_unseen"), {"answer": "hi"}, errors.OK, ""),
        (send("delivered", "ended_unseen"), {}, errors.TURN_FAILED, "ended unseen"),
        (
            send("delivered", "failed", terminal={"error": "400 no"}),
            {},
            errors.TURN_FAILED,
            "its turn failed: 400 no.",
        ),
        (send("delivered", "cancelled"), {}, errors.TURN_FAILED, "was cancelled"),
        (send("started", "done"), {}, errors.UNKNOWN_DELIVERY, "--id"),  # its row was not seen
        (
            send("delivered", "awaiting_approval"),
            {"ending": "approval"},
            errors.APPROVAL_NEEDED,
            "Start letta-tui to answer it",
        ),
        (
            send("delivered", "cancelled"),
            {"stopped_for": "Use weather: city=Ulm"},
            errors.APPROVAL_NEEDED,
            "was not run and the turn was stopped",
        ),
        (send("delivered", "running"), {"ending": "timeout"}, errors.UNKNOWN_DELIVERY, "The turn goes on."),
        (
            send("started", "running"),
            {"ending": "timeout", "reachable": False, "words": "Nothing listens."},
            errors.UNKNOWN_DELIVERY,
            "Nothing listens. How its turn ends is not known.",
        ),
        (
            send("delivered", "running"),
            {"ending": "no_connection", "reachable": False, "words": "It refused the token."},
            errors.UNKNOWN_DELIVERY,
            "It refused the token.",
        ),
        (
            send("queued", "running"),
            {"ending": "question", "words": "It is gone."},
            errors.UNKNOWN_DELIVERY,
            "It is gone. How the turn of message id-1 ended is not known: `letta-tui explain id-1` tells",
        ),
        (send("unconfirmed"), {"ending": "timeout"}, errors.UNKNOWN_DELIVERY, "Nobody can say"),
        (send("unknown"), {"ending": "undecided"}, errors.UNKNOWN_DELIVERY, "Nobody can say"),
        (send("vanished"), {"ending": "undecided"}, errors.UNKNOWN_DELIVERY, "Nobody can say"),
        (send("queued"), {"ending": "timeout"}, errors.UNKNOWN_DELIVERY, "The turn goes on."),
        (send("prepared"), {"ending": "timeout"}, errors.FAILED, "is stored and was not sent"),
        (send("rejected"), {"words": "full"}, errors.FAILED, "was refused: full"),
        (send("cancelled"), {}, errors.FAILED, "taken back from the queue"),
        (send("failed", "failed"), {}, errors.FAILED, "was not delivered"),
        (send("discarded"), {}, errors.FAILED, "was discarded"),
        (send("superseded"), {"ending": "timeout"}, errors.FAILED, "under another id"),
        (send("redacted"), {}, errors.FAILED, "erased here"),
        (None, {"ending": "refused", "words": "No."}, errors.FAILED, "No."),
    ],
)
def test_each_state_has_its_code_and_sentence(
    sent: Send | None, more: dict[str, Any], code: int, said: str
) -> None:
    told = report(sent, **more)
    assert told.code == code
    data = told.data("id-1")
    assert (data["exit_code"], data["success"]) == (code, code == errors.OK)
    assert said in (data["error"] or "")
    if sent is not None and code != errors.OK:
        assert "id-1" in told.words() or code == errors.TURN_FAILED


def test_no_state_is_without_a_code() -> None:
    for delivery in DELIVERIES:
        for ending in ("ended", "timeout", "undecided", "no_connection", "question", "closed"):
            told = report(send(delivery), ending)
            assert told.code in range(6)
            assert told.code == errors.OK or told.words().endswith(".")


class Port:
    """A worker that tells what a test lets it tell."""

    def __init__(self, *updates: Update) -> None:
        self.updates = list(updates)
        self.sent: list[Intent] = []

    def send(self, intent: Intent) -> None:
        self.sent.append(intent)

    def drain(self) -> list[Update]:
        now, self.updates = self.updates, []
        return now

    def on_update(self, callback: Callable[[], None] | None) -> None:
        pass


def connected(phase: Any, **more: Any) -> ConnectionChanged:
    return ConnectionChanged(ConnectionView(phase=phase, words="Nothing listens.", **more))


def rows(*rows_: Row) -> TranscriptChanged:
    return TranscriptChanged((Splice(0, 0, rows_),), reset=True)


MINE = Row("user:id-1", "user", "hello", client_message_id="id-1", delivery="delivered", outcome="done")


def user(name: str, row_id: str = "") -> Row:
    return Row(f"user:{name}{row_id}", "user", name)


def says(text: str, **more: Any) -> Row:
    return Row(f"a:{text}", "assistant", text, **more)


TOOL = Row("tool:1", "tool")


@pytest.mark.parametrize(
    ("found", "together", "answer"),
    [
        ([user("id-1"), says("a"), TOOL, says("b"), says("c"), user("x"), says("d")], (), "b\n\nc"),
        # The server restarted before the first run said a word, and ran it again.
        ([user("id-1"), user("id-1", ":ui-msg-2"), says("b")], (), "b"),
        ([user("id-1"), TOOL, user("id-1", ":ui-msg-2"), says("b"), user("x"), says("d")], (), "b"),
        # … after it had ended, and the second run is under way or said nothing.
        ([user("id-1"), says("a"), user("id-1", ":ui-msg-2"), says("b", live=True)], (), "a"),
        ([user("id-1"), says("a"), user("id-1", ":ui-msg-2")], (), "a"),
        # Queued together, answered together.
        ([user("id-1"), user("x"), says("both")], ("id-1", "x"), "both"),
        ([user("id-1"), user("x"), says("d")], (), ""),
        ([user("id-10"), says("d")], (), ""),
        ([says("d")], (), ""),
    ],
)
def test_the_answer_is_that_to_the_message(found: list[Row], together: tuple[str, ...], answer: str) -> None:
    assert answer_to("id-1", found, together).text == answer


def test_an_answer_that_was_received_and_is_not_kept_is_told() -> None:
    done = send("delivered", "done", terminal={"final_text": "noon"})
    told = report(done)
    assert (told.code, told.answer) == (errors.OK, "noon")
    assert told.data("id-1")["notes"] == [
        "The answer was received, but the server's history does not have it."
    ]
    long = report(send("delivered", "done", terminal={"final_text": "x" * KEPT_OF_THE_END}))
    assert (long.code, long.answer) == (errors.UNKNOWN_DELIVERY, "")
    assert "It was answered, but the server's history has nothing" in long.words()


@pytest.mark.parametrize("phase", ["lost", "failed"])
def test_an_answer_that_is_stored_here_needs_no_server(phase: str) -> None:
    port = Port(rows(MINE, Row("a:1", "assistant", "noon")), connected(phase))
    watch = Oneshot(port, "id-1", "hello", known=True, over=True)
    assert watch.watch(5) == Result("ended")
    assert watch.answer().text == "noon"


@pytest.mark.parametrize("known", [False, True])
def test_of_a_message_that_was_sent_before_it_is_not_said_that_nothing_was_sent(known: bool) -> None:
    asked = QuestionView("gone", "It cannot be opened", "Not found. Nothing was sent, and more.", ())
    result = Oneshot(Port(QuestionChanged(asked)), "id-1", "hello", known=known).watch(1)
    assert result.words == "It cannot be opened. Not found." + (
        "" if known else " Nothing was sent, and more."
    )


@pytest.mark.parametrize("found", [(), (MINE, Row("a:1", "assistant", "no", live=True))])
def test_half_an_answer_is_none(found: tuple[Row, ...]) -> None:
    watch = Oneshot(Port(rows(*found), connected("lost")), "id-1", "hello", known=True, over=True)
    assert watch.watch(0.01) == Result("timeout", "Nothing listens.")


@pytest.mark.parametrize(("held", "own", "ending"), [(True, False, "approval"), (False, True, "approval")])
def test_a_card_is_told_of_once_it_is_known_who_keeps_it(held: bool, own: bool, ending: str) -> None:
    from dataclasses import replace

    view = SendView("id-1", "hello", "started", "awaiting_approval", "", "", 1.0)
    seen = (connected("ready"), SendsChanged((view,)), ApprovalsChanged((replace(CARD, own=own),)))
    waiting = Oneshot(Port(*seen), "id-1", "hello", known=True, keeper=True)
    if not own:
        assert waiting.watch(0.01).ending == "timeout"  # the keeper has not spoken yet
    told = Oneshot(Port(*seen, connected("ready", held=held)), "id-1", "hello", known=True, keeper=True)
    assert told.watch(1).ending == ending
