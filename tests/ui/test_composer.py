"""Text is in exactly one place, and nothing but Enter sends it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakeport import FakePort
from scenes import ROWS, running, settle, status
from textual import events

from letta_tui.seam.intents import NewConversation, SaveDraft, Submit
from letta_tui.seam.state import ConnectionView
from letta_tui.seam.updates import ConnectionChanged, DraftLoaded, StatusChanged, SubmitSettled
from letta_tui.ui.terminal.bursts import bundle, goes_on
from letta_tui.ui.terminal.driver import translate


async def test_submitted_text_stays_until_it_is_on_disk(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        await pilot.press(*"first", "enter")
        assert port.sent(Submit) == [Submit("submit-1", "first")]
        assert app.chat.composer.text == "first"
        await pilot.press(*"more", "home", "backspace", "X")
        port.say(SubmitSettled("submit-1", True, "cm-1"))
        await settle(pilot, port)
        assert app.chat.composer.text == "moreX"
        await pilot.press("ctrl+underscore", "ctrl+underscore", "ctrl+underscore")
        assert "first" not in app.chat.composer.text


async def test_a_failed_submission_gives_the_text_back_with_the_reason(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        await pilot.press(*"first", "enter", *"second")
        port.say(SubmitSettled("submit-1", False, error="The disk is full."))
        await settle(pilot, port)
        assert app.chat.composer.text == "first\nsecond"
        assert "disk is full" in str(app.chat.composer.query_one("#note").content)
        await pilot.pause(0.5)
        assert port.sent(SaveDraft)[-1] == SaveDraft("first\nsecond")


async def test_enter_twice_sends_once(port: FakePort) -> None:
    async with running(port) as (_, pilot):
        await pilot.press(*"go", "enter", "enter", "enter")
        assert len(port.sent(Submit)) == 1


async def test_nothing_is_sent_while_sending_is_impossible(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        port.say(ConnectionChanged(ConnectionView("lost", "Lost", can_send=False, why_not="no network")))
        await settle(pilot, port)
        await pilot.press(*"go", "enter")
        assert port.sent(Submit) == []
        assert app.chat.composer.text == "go"


async def test_ready_is_said_only_when_something_can_be_sent(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        closed = ConnectionView("recovering", "Checking", can_send=False, why_not="It is not open yet.")
        port.say(
            ConnectionChanged(closed),
            StatusChanged(replace(status().status, activity_words="Ready")),
        )
        await settle(pilot, port)
        assert "Ready" not in str(app.chat.status_bar.activity())
        await pilot.press(*"go", "enter")
        assert "not open yet" in str(app.chat.composer.query_one("#note").content)
        port.say(ConnectionChanged(replace(closed, phase="ready", can_send=True)))
        await settle(pilot, port)
        assert "Ready" in str(app.chat.status_bar.activity())
        assert "not open yet" not in str(app.chat.composer.query_one("#note").content)
        assert app.chat.composer.text == "go"


async def test_ctrl_c_puts_a_draft_away_and_never_sends_it(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        await pilot.press(*"draft", "ctrl+c")
        assert app.chat.composer.text == ""
        await pilot.press("up")
        assert app.chat.composer.text == "draft"
        assert port.sent(Submit) == []


async def test_history_gives_the_present_draft_back(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        await pilot.press(*"one", "enter")
        port.say(SubmitSettled("submit-1", True, "cm"))
        await settle(pilot, port)
        await pilot.press(*"half", "up")
        assert app.chat.composer.text == "one"
        await pilot.press("down")
        assert app.chat.composer.text == "half"


async def test_a_paste_with_newlines_is_text(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        app.post_message(events.Paste("a\r\nb\nc\n"))
        await settle(pilot, port)
        assert app.chat.composer.text == "a\nb\nc\n"
        assert port.sent(Submit) == []


async def test_a_big_paste_is_taken_whole(port: FakePort) -> None:
    text = "\n".join("word " * 12 for _ in range(2_000))
    async with running(port) as (app, pilot):
        app.post_message(events.Paste(text))
        await settle(pilot, port)
        assert app.chat.composer.text == text
        assert app.chat.composer.draft.size.height <= 8


@pytest.mark.parametrize("key", ["ctrl+underscore", "ctrl+c", "enter", "backspace"])
async def test_a_long_text_goes_away_whole_with_its_scrollbar(port: FakePort, key: str) -> None:
    async with running(port) as (app, pilot):
        app.post_message(events.Paste("\n".join(str(n) for n in range(40))))
        await settle(pilot, port)
        await pilot.press(*(["f5"] if key == "backspace" else []), key)
        port.say(SubmitSettled("submit-1", True, "cm-1"))
        await settle(pilot, port)
        assert app.chat.composer.text == ""
        await pilot.press(
            *({"ctrl+underscore": ["ctrl+y"], "backspace": ["ctrl+underscore"]}.get(key, ["up"]))
        )
        await settle(pilot, port)
        assert app.chat.composer.text.endswith("39")


async def test_drafts_are_stored_while_typing_and_when_the_window_is_left(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        await pilot.press(*"abc")
        app.post_message(events.AppBlur())
        await settle(pilot, port)
        assert port.sent(SaveDraft)[-1] == SaveDraft("abc")


async def test_a_returned_message_goes_before_what_is_there(
    port: FakePort,
) -> None:
    async with running(port) as (app, pilot):
        port.say(DraftLoaded("stored"))
        await settle(pilot, port)
        assert app.chat.composer.text == "stored"
        port.say(DraftLoaded("returned", "cancelled"))
        await settle(pilot, port)
        assert app.chat.composer.text == "returned\nstored"


async def test_text_typed_or_pasted_in_the_transcript_goes_to_the_composer(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        port.say(ROWS)
        await settle(pilot, port)
        await pilot.press("tab")
        assert app.chat.transcript.has_focus
        for key in "yes":  # all of them are waiting before the first is handled
            app.post_message(events.Key(key, key))
        await settle(pilot, port)
        assert app.chat.composer.text == "yes"
        await pilot.press("tab")
        app.post_message(events.Paste(" indeed"))
        await settle(pilot, port)
        assert app.chat.composer.text == "yes indeed"


async def test_commands_run_and_unknown_ones_are_told_first(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        await pilot.press(*"/new", "enter")
        assert port.sent(NewConversation) == [NewConversation()]
        await pilot.press(*"/frobnicate", "enter")
        assert port.sent(Submit) == []
        assert app.chat.composer.text == "/frobnicate"
        await pilot.press("enter")
        assert port.sent(Submit) == [Submit("submit-1", "/frobnicate")]


async def test_a_double_slash_sends_one(port: FakePort) -> None:
    async with running(port) as (_, pilot):
        await pilot.press(*"//new", "enter")
        assert port.sent(Submit) == [Submit("submit-1", "/new")]
        assert port.sent(NewConversation) == []


async def test_a_hundred_updates_do_not_disturb_typing(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        for number in range(100):
            port.say(ConnectionChanged(ConnectionView("ready", f"Connected {number}", can_send=True)))
            if number % 10 == 0:
                await pilot.press("x")
        await settle(pilot, port)
        assert app.chat.composer.text == "x" * 10
        assert app.chat.connection.words == "Connected 99"


def _keys(text: str) -> list[events.Key]:
    names = {"\r": "enter", "\n": "ctrl+j", "\t": "tab"}
    return [events.Key(names.get(c, c), c) for c in text]


def _read(text: str, more: bool = False, continues: bool = False) -> list[str]:
    made = bundle(_keys(text), more=more, continues=continues)
    return [f"paste:{e.text}" if isinstance(e, events.Paste) else str(getattr(e, "key", e)) for e in made]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hi", ["h", "i"]),
        ("\r", ["enter"]),
        ("go\r", ["g", "o", "enter"]),  # typed fast, or over a slow line
        ("a\rb", ["paste:a\nb"]),
        ("a\rb\r", ["paste:a\nb\n"]),
        ("a\r\r", ["paste:a\n\n"]),
    ],
)
def test_an_enter_with_keys_directly_behind_it_is_a_newline(text: str, expected: list[str]) -> None:
    assert _read(text) == expected


def test_a_paste_cut_by_the_kernel_is_one_text() -> None:
    assert _read("line\r", more=True) == ["paste:line\n"]
    assert _read("end\r", continues=True) == ["paste:end\n"]


def test_keys_typed_fast_behind_each_other_are_no_paste() -> None:
    first = bundle(_keys("a"), more=True, continues=False)
    assert not goes_on(first, True, 1)
    assert _read("\tx", continues=goes_on(first, True, 1)) == ["tab", "x"]


def test_a_long_run_of_keys_is_one_text_and_its_enter_a_key() -> None:
    assert _read("word " * 20 + "\r") == ["paste:" + "word " * 20, "enter"]


def test_other_keys_in_a_burst_keep_their_place() -> None:
    batch = [*_keys("a"), events.Key("up", None), *_keys("b\rc")]
    made = bundle(batch, more=False, continues=False)
    assert [getattr(e, "key", getattr(e, "text", "")) for e in made] == ["a", "up", "b\nc"]


def test_every_spelling_of_shift_enter_is_understood() -> None:
    assert translate("\x1b\r") == translate("\x1b[27;2;13~") == "\x1b[13;2u"


@pytest.mark.parametrize("draft_first", [False, True])
@pytest.mark.parametrize("typed_since", ["", "x"])
async def test_a_draft_stays_with_its_conversation(
    port: FakePort, draft_first: bool, typed_since: str
) -> None:
    async with running(port) as (app, pilot):
        await pilot.press(*"old")
        await pilot.press("f2")
        await pilot.press("ctrl+n")
        assert port.sent(SaveDraft)[-1] == SaveDraft("old")
        assert port.intents[-1] == NewConversation()
        await pilot.press(*typed_since)
        there = StatusChanged(replace(status().status, conversation_id="conv-2"))
        updates = [DraftLoaded("stored"), there] if draft_first else [there, DraftLoaded("stored")]
        port.say(*updates)
        await settle(pilot, port)
        assert app.chat.composer.text == ("stored\noldx" if typed_since else "stored")
