"""Starting, leaving, failing, and the keys that are promised."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakeport import FakePort
from scenes import QUEUE, RECOVERY, approval, make_app, running, settle, status
from textual.widgets import Static

from letta_tui.seam.intents import (
    Abort,
    CancelQueued,
    FocusChanged,
    Quit,
    ResolveSend,
    ResumeQueue,
    SaveDraft,
)
from letta_tui.seam.state import ConnectionView, StatusView
from letta_tui.seam.updates import (
    ApprovalsChanged,
    Attention,
    Closed,
    ConnectionChanged,
    QueueChanged,
    RecoveryChanged,
    StatusChanged,
)
from letta_tui.ui.app import LettaTuiApp
from letta_tui.ui.options import AppOptions
from letta_tui.ui.terminal.attention import sequences
from letta_tui.ui.terminal.clipboard import LIMIT
from letta_tui.ui.terminal.crash import report


async def test_an_empty_screen_invites_only_into_a_conversation_that_is_open(port: FakePort) -> None:
    app = make_app(port)
    async with app.run_test(size=(80, 24)) as pilot:
        port.say(ConnectionChanged(ConnectionView("ready", "Connected.")), StatusChanged(StatusView()))
        await settle(pilot, port)
        assert "No conversation is open" in str(app.chat.welcome.render())
        port.say(status())
        await settle(pilot, port)
        assert "A new conversation" in str(app.chat.welcome.render())


async def test_quit_says_goodbye_and_ends_with_the_workers_word(port: FakePort) -> None:
    app = make_app(port)
    async with app.run_test() as pilot:
        await pilot.press(*"abc", "ctrl+q")
        assert port.intents[-2:] == [SaveDraft("abc"), Quit("keep")]
        port.say(Closed())
        await settle(pilot, port)
    assert not app.is_running
    assert app.return_code == 0


async def test_an_error_of_the_worker_ends_with_its_sentence_and_code(
    port: FakePort, capsys: pytest.CaptureFixture[str]
) -> None:
    app = make_app(port)
    async with app.run_test() as pilot:
        port.say(Closed("The token was refused.", 77))
        await pilot.pause(0.2)
    assert app.return_code == 77
    assert "The token was refused." in capsys.readouterr().err


@pytest.mark.parametrize(("downs", "intent"), [(0, Quit("keep")), (1, Quit("stop")), (2, None)])
async def test_quit_in_mid_turn_asks(port: FakePort, downs: int, intent: Quit | None) -> None:
    async with running(port) as (app, pilot):
        port.say(status("streaming"))
        await settle(pilot, port)
        await pilot.press("ctrl+q")
        assert port.sent(Quit) == []
        await pilot.press(*["down"] * downs, "enter")
        assert port.sent(Quit) == ([intent] if intent else [])
        if intent is None:
            assert app.screen is app.chat


async def test_ctrl_c_twice_on_an_empty_composer_quits(port: FakePort) -> None:
    async with running(port) as (_, pilot):
        await pilot.press("ctrl+c", "x", "backspace", "ctrl+c")
        assert port.sent(Quit) == []
        await pilot.press("ctrl+c")
        await settle(pilot, port)
        assert port.sent(Quit) == [Quit("keep")]


async def test_escape_stops_the_turn_once_and_only_from_the_composer(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        await pilot.press("escape")
        assert port.sent(Abort) == []
        port.say(status("tool"), ApprovalsChanged((approval(),)))
        await settle(pilot, port)
        await pilot.press("tab", "escape")
        assert port.sent(Abort) == []
        await pilot.press("escape", "escape")
        assert port.sent(Abort) == [Abort()]
        assert app.chat.status_bar.status.activity == "cancelling"


async def test_a_waiting_message_is_taken_back_once(port: FakePort) -> None:
    async with running(port) as (_, pilot):
        port.say(QueueChanged(QUEUE))
        await settle(pilot, port)
        await pilot.press("ctrl+g", "tab", "down", "x", "x")
        assert port.sent(ResumeQueue) == [ResumeQueue()]
        assert port.sent(CancelQueued) == [CancelQueued("q2")]


async def test_a_risky_choice_needs_enter(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        port.say(RecoveryChanged(RECOVERY))
        await settle(pilot, port)
        await pilot.press("s")  # a letter for the composer
        assert app.chat.composer.text == "s"
        await pilot.press("tab", "s")
        assert port.sent(ResolveSend) == []
        await pilot.press("escape", "s", "enter", "enter", "s")
        assert port.sent(ResolveSend) == [ResolveSend("cm-4", "send_new")]
        await pilot.press("down", "s", "s")
        assert port.sent(ResolveSend)[1:] == [ResolveSend("cm-5", "send")]


async def test_attention_rings_only_without_the_focus(port: FakePort) -> None:
    from textual import events

    async with running(port) as (app, pilot):
        app.written.clear()
        port.say(Attention("approval", "secret title"))
        await settle(pilot, port)
        assert app.written == []
        app.post_message(events.AppBlur())
        await settle(pilot, port)
        port.say(Attention("approval", "secret title"))
        await settle(pilot, port)
        assert "\x07" in "".join(app.written)
        assert "secret" not in "".join(app.written)
        assert FocusChanged(False) in port.intents


def test_notifications_pass_through_tmux_and_can_be_off() -> None:
    assert sequences("approval", "off", {}) == ""
    assert sequences("approval", "bell", {}) == "\x07"
    assert "\x1bPtmux;\x1b\x1b]9;" in sequences("approval", "on", {"TMUX": "x"})


async def test_copying_says_what_is_true(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        app.written.clear()
        app.chat.copy("x" * (LIMIT + 1))
        assert app.written == []
        app.chat.copy("")
        assert app.written == []
        app.chat.copy("hello")
        assert any("52;c;aGVsbG8=" in w for w in app.written)
        await pilot.pause()


def test_a_crash_leaves_one_sentence_and_a_log(tmp_path: Path) -> None:
    log = tmp_path / "deep" / "log"
    try:
        raise ValueError("boom")
    except ValueError as error:
        sentence = report(error, log)
    assert "\n" not in sentence
    assert str(log) in sentence
    assert "boom" in log.read_text()


async def test_a_crash_hands_the_draft_over(port: FakePort) -> None:
    app = LettaTuiApp(port, AppOptions(blink=False))

    def boom() -> None:
        raise RuntimeError("boom")

    async def run() -> None:
        async with app.run_test() as pilot:
            await pilot.press(*"abc")
            app.call_later(boom)
            await pilot.pause()

    with pytest.raises(RuntimeError, match="boom"):
        await run()
    assert port.sent(SaveDraft)[-1] == SaveDraft("abc")


async def test_colours_that_were_chosen_are_remembered_and_go_first(port: FakePort) -> None:
    kept: list[str] = []

    def remember(theme: str) -> str:
        kept.append(theme)
        return "" if theme else "The disk is full."

    options = AppOptions(theme="dark", chosen_theme="light", remember_theme=remember, blink=False)
    app = LettaTuiApp(port, options)
    async with app.run_test() as pilot:
        seen, said = [app.theme], []
        for argument in ("", "light", "auto", "light", "blue"):
            app.chat.commands.command_theme(argument)
            await app.workers.wait_for_complete()
            await pilot.pause()
            seen.append(app.theme)
            said.append(str(app.chat.composer.query_one("#note", Static).render()))
    assert [name.removeprefix("letta-") for name in seen] == [
        "light",
        "dark",
        "light",
        "dark",
        *["light"] * 2,
    ]
    assert kept == ["dark", "light", "", "light"]
    assert said[2] == "The disk is full."
    assert "dark, light or auto" in said[-1]
