"""What a person is told who was away: something only when something happened, and in words."""

from __future__ import annotations

from typing import Any

import pytest

from letta_tui.conversation.transcript import Transcript
from letta_tui.ledger.values import Place
from letta_tui.seam.state import Row, ToolView
from letta_tui.seam.updates import TranscriptChanged
from letta_tui.worker.away import Away, by_history, duration, mark, summary, while_away
from letta_tui.worker.ports import EndNote


def note(when: float, what: str = "end", **fields: Any) -> EndNote:
    values = {"outcome": "done" if what == "end" else "none", "words": "", **fields}
    return EndNote(when, "a", "c", what=what, **values)


def told(*notes: EndNote, waiting: tuple[str, ...] = (), left: float = 100.0, now: float = 110.0) -> str:
    return summary(Away(left, notes), waiting=waiting, now=now)


def test_nothing_happened_is_nothing_said() -> None:
    assert told() == ""
    assert told(note(101, "approval", tools=("Bash",))) == ""  # answered meanwhile, its turn goes on
    assert told(note(101, outcome="awaiting_approval")) == ""
    assert mark(()) == ""


@pytest.mark.parametrize(
    ("notes", "words"),
    [
        ([note(1, seconds=41.2)], "the turn ended after 41 s."),
        (
            [note(1, seconds=600, tools=("Bash", "Read", "Bash"), denied=("Write",))],
            "the turn ended after 10 min; Bash (2 times) and Read ran; Write was denied.",
        ),
        (
            [note(1, outcome="failed", words="no such thing.", seconds=2)],
            "the turn failed after 2 s (no such thing).",
        ),
        (
            [
                note(
                    1,
                    outcome="failed",
                    words='{"error": {"error": {"message": "500: {\\"message\\": \\"broken\\"}"}}}',
                )
            ],
            "the turn failed (500: broken).",
        ),
        ([note(1, outcome="cancelled")], "the turn was cancelled."),
        (
            [note(1), note(2), note(3, outcome="failed", words="x" * 500)],
            "2 turns ended; one turn failed (" + "x" * 159 + "…).",
        ),
        (
            [note(1, tools=("A", "B", "C", "D", "E"))],
            "the turn ended; A, B, C and 2 more ran.",
        ),
        ([note(1, "server", words="The server was restarted.")], "The server was restarted."),
    ],
)
def test_what_happened(notes: list[EndNote], words: str) -> None:
    assert told(*notes) == f"While you were away: {words}"


def test_what_waits_now_and_how_long_it_was() -> None:
    asked = note(101, "approval", tools=("Bash",))
    assert told(asked, waiting=("Bash",), now=4000) == (
        "While you were away (65 min): Bash asked for your decision."
    )
    assert duration(0) == "1 s"
    assert duration(3 * 3600) == "3 h"
    assert duration(72 * 3600) == "3 days"


def test_only_what_no_window_showed_counts() -> None:
    before, left, after = note(5), note(6, "left"), note(7)
    assert while_away([before, left, after], 1.0) == Away(6, (after,))
    assert while_away([before, after, note(8, "left")], 1.0) == Away(8, ())  # another window shows it
    assert while_away([before, after], 6.0) == Away(6.0, (after,))  # the keeper was killed with the window
    assert while_away([before, after], None) == Away(None, ())  # never seen before


def test_a_list_gets_a_few_words() -> None:
    assert mark([note(1), note(2, "approval")]) == "asks for your decision"
    assert mark([note(2, "approval"), note(3, outcome="failed")]) == "failed while you were away"
    assert mark([note(3, outcome="cancelled")]) == "was cancelled while you were away"
    assert mark([note(3)]) == "ended while you were away"


def test_the_line_stands_where_the_person_left() -> None:
    transcript = Transcript("a", "c")
    for number in range(4):
        transcript.notice(f"n{number}", f"row {number}", when=100.0 + number)
    changes = transcript.away("gone", 101.5)
    assert all(isinstance(change, TranscriptChanged) for change in changes)
    assert [row.text for row in transcript.rows] == ["row 0", "row 1", "gone", "row 2", "row 3"]
    transcript.away("gone again", 200.0)
    assert [row.text for row in transcript.rows] == ["row 0", "row 1", "row 2", "row 3", "gone again"]
    assert transcript.rows[-1].kind == "away"


HERE = Place("direct:x", "a", "c")


def rows_tell(before: list[Row], after: list[Row], later: float | None = None) -> str:
    return summary(Away(100.0, by_history(before, after, HERE, 110.0, later=later)), now=110.0)


def test_without_a_keeper_the_rows_tell_what_happened() -> None:
    asked = Row("user:1", "user", "do it")
    half = Row("assistant:2", "assistant", "I beg", live=True)
    whole = Row("assistant:2", "assistant", "I began and ended", when=105.0)
    runs = Row("tool:3", "tool", tool=ToolView("3", "Bash", state="running"), live=True)
    ran = Row("tool:3", "tool", tool=ToolView("3", "Bash", state="done"), when=105.0)
    denied = Row("tool:4", "tool", tool=ToolView("4", "Write", state="denied"), when=106.0)
    assert rows_tell([], [asked, whole]) == ""  # nothing was known: nothing is news
    assert rows_tell([asked, whole], [asked, whole]) == ""
    assert rows_tell([asked, half], [asked, whole]) == "While you were away: the turn ended (nobody saw how)."
    assert rows_tell([asked, runs], [asked, ran, denied, whole]) == (
        "While you were away: the turn ended (nobody saw how); Bash ran; Write was denied."
    )
    waits = Row("tool:5", "tool", tool=ToolView("5", "Write", state="awaiting"), live=True)
    closed = Row("tool:5", "tool", tool=ToolView("5", "Write", state="closed"), when=107.0)
    assert rows_tell([asked, waits], [asked, closed]).endswith(
        " Write was not run: nobody answered before the turn ended."
    )
    assert rows_tell([asked], [asked, closed]).endswith(" Write was left without a result.")
    assert rows_tell([asked], [whole, asked]) == ""  # an older page
    assert rows_tell([asked], [asked, ran], later=105.5) == ""  # on the screen, though not in the cache
    assert (
        rows_tell([asked], [asked, ran], later=104.5)
        == "While you were away: the turn ended (nobody saw how); Bash ran."
    )
