"""What a newcomer does in the demo, key by key."""

from __future__ import annotations

import pytest

from tests.terminal.conftest import Demo

pytestmark = [pytest.mark.terminal, pytest.mark.real]


def test_a_message_streams_an_answer_and_the_terminal_comes_back(demo: Demo, mark: str) -> None:
    with demo.ready("--new") as terminal:
        terminal.wait("show me markdown")
        terminal.say(f"[[say answer-{mark} is here]]")
        terminal.wait(f"answer-{mark} is here")
        terminal.wait(lambda screen: "✓" in screen and "Ready" in screen, what="the delivered glyph")
        assert "1003" in terminal.modes or "1000" in terminal.modes
        assert terminal.leave() == 0
        assert terminal.restored()
    assert demo.runs(mark) == 1
    last = demo.ledger()[-1]
    assert (last["state"], last["turn"]) == ("delivered", "done")
    explained = demo.command("explain", last["client_message_id"])
    assert explained.returncode == 0
    assert "history" in explained.stdout


def test_a_command_asks_and_runs_once_and_a_reason_reaches_the_model(demo: Demo, mark: str) -> None:
    file = demo.scratch / f"{mark}.txt"
    with demo.ready("--new") as terminal:
        terminal.say(f"[[run echo x >> {file.name}]]")
        terminal.wait("F8 allow")
        assert not file.exists()
        # Typing is never consent: these letters land in the composer.
        terminal.type("yes 1")
        assert not file.exists()
        terminal.press("f8")
        terminal.wait("TOOLDONE")
        assert file.read_text() == "x\n"
        assert "yes 1" in terminal.text
        terminal.press(*["backspace"] * 5)
        terminal.say(f"[[run echo y >> {file.name}]]")
        terminal.wait("F8 allow")
        terminal.press("f7")
        terminal.wait("reason")
        terminal.press("r")
        terminal.type("rather not today")
        terminal.press("enter")
        terminal.wait(lambda s: s.count("TOOLDONE") >= 2 or "rather not today" in s.split("TOOLDONE")[-1])
        assert file.read_text() == "x\n"
        terminal.leave()


def test_a_second_message_is_queued_shown_and_cancellable(demo: Demo, mark: str) -> None:
    with demo.ready("--new") as terminal:
        terminal.say(f"[[words 60 rate=12 tag={mark[:2]}]]")
        terminal.wait(f"{mark[:2]}0003")
        terminal.say(f"later-{mark}")
        terminal.wait("1 message waits")
        terminal.press("tab")
        terminal.wait("x takes one back")
        terminal.press("x")
        terminal.wait(
            lambda s: f"later-{mark}" in s.split("╭")[-1], what="the taken back text in the composer"
        )
        terminal.wait("Ready", timeout=30)
        terminal.leave()
    assert demo.runs(f"later-{mark}") == 0


@pytest.mark.long  # the pictures of small screens show the same
def test_a_small_terminal_is_enough(demo: Demo) -> None:
    with demo.ready("--new", size=(80, 24)) as terminal:
        terminal.say("[[say small but whole]]")
        # Its own row shows the words at once, and leaving before the turn has ended would ask first.
        terminal.wait(lambda s: s.count("small but whole") > 1 and "✓" in s and "Ready" in s)
        terminal.resize(60, 16)
        terminal.wait(lambda s: "Message Practice" in s)
        terminal.resize(120, 40)
        terminal.wait(lambda s: s.count("small but whole") > 1 and "Message Practice" in s and "Ready" in s)
        assert terminal.leave() == 0
