"""A key is on the screen before anything else is drawn, and drawing costs no more than what changed."""

from __future__ import annotations

from select import select
from time import monotonic
from typing import Any

from fakeport import FakePort
from scenes import running, settle
from textual.app import App
from textual.events import Key
from textual.screen import Screen
from textual.widget import Widget

from letta_tui.seam.state import Row
from letta_tui.seam.updates import Splice, TextAppended, TranscriptChanged
from letta_tui.ui.app import LettaTuiApp
from letta_tui.ui.chat.draft import BLINKS
from letta_tui.ui.prompt import PATIENCE, Keys
from letta_tui.ui.terminal.driver import Bell, BurstDriver

ROWS = (Row("u", "user", "tell me"), Row("a", "assistant", "It begins", live=True))


def watch(app: LettaTuiApp) -> list[set[int]]:
    """The screen rows of every picture from now on."""
    pictures: list[set[int]] = []

    def display(screen: Screen[object], picture: Any) -> None:
        if picture is not None:
            pictures.append({span[0] for span in picture.spans})

    app._display = display  # type: ignore[method-assign]
    return pictures


def rows_of(widget: Widget) -> set[int]:
    return set(widget.region.line_range)


async def test_a_key_is_drawn_alone_and_at_once(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        port.say(TranscriptChanged((Splice(0, 0, ROWS),), reset=True))
        await settle(pilot, port)
        pictures = watch(app)
        app.chat.transcript.refresh()
        await app.chat.composer.draft._on_key(Key("x", "x"))
        assert pictures == [rows_of(app.chat.composer.draft)]
        await settle(pilot, port)
        assert set().union(*pictures[1:]) >= rows_of(app.chat.transcript)


async def test_keys_that_come_together_are_drawn_together(port: FakePort) -> None:
    async with running(port) as (app, _):
        pictures = watch(app)
        keys = [Key(character, character) for character in "abc"]
        app.keys.read(keys[-1].time)
        for each in keys:
            assert pictures == []
            await app.chat.composer.draft._on_key(each)
        assert len(pictures) == 1
        assert app.chat.composer.text == "abc"


async def test_no_picture_begins_while_a_key_is_on_its_way(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        port.say(TranscriptChanged((Splice(0, 0, ROWS),), reset=True))
        await settle(pilot, port)
        pictures = watch(app)
        app.chat._dirty_widgets.add(app.chat.transcript.refresh())
        app.keys.read(monotonic())
        app.chat._on_timer_update()
        assert pictures == []
        app.keys.shown()
        app.chat._on_timer_update()
        assert len(pictures) == 1


def test_a_key_that_changes_no_field_holds_up_pictures_for_a_moment_only(monkeypatch: Any) -> None:
    now = 100.0
    monkeypatch.setattr("letta_tui.ui.prompt.monotonic", lambda: now)
    keys = Keys()
    assert not keys.waiting
    keys.read(now)
    assert keys.waiting
    now += 2 * PATIENCE
    assert not keys.waiting


async def test_only_the_line_that_grows_is_drawn(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        port.say(TranscriptChanged((Splice(0, 0, ROWS),), reset=True))
        await settle(pilot, port)
        port.say(TextAppended("a", " with a word"))
        await settle(pilot, port)
        pictures = watch(app)
        port.say(TextAppended("a", " and goes on"))
        await settle(pilot, port)
        assert len(set().union(*pictures)) == 1


async def test_a_key_lays_nothing_out(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        await pilot.press("a")
        await pilot.pause(0.05)
        app.chat._layout_required = False
        layouts: list[bool] = []
        real = app.chat._refresh_layout

        def laid_out(*arguments: Any, **options: Any) -> None:
            layouts.append(True)
            real(*arguments, **options)

        app.chat._refresh_layout = laid_out  # type: ignore[method-assign]
        await pilot.press(*"bcd")
        await pilot.pause(0.05)
        assert layouts == []


async def test_a_cursor_that_nobody_moves_stops_blinking(port: FakePort) -> None:
    async with running(port) as (app, pilot):
        draft = app.chat.composer.draft
        draft.cursor_blink = True
        draft.blink_timer.pause()
        await pilot.press("a")
        looks = []
        for _ in range(2 * BLINKS):
            draft._toggle_cursor_blink_visible()
            looks.append(draft._cursor_visible)
        assert not all(looks[:BLINKS])
        assert all(looks[BLINKS:])
        assert not draft.blink_timer._active.is_set()


def test_the_bell_ends_a_wait_for_keys() -> None:
    bell = Bell()
    for _ in range(2):
        assert not select([bell.fileno], [], [], 0)[0]
        bell.set()
        assert select([bell.fileno], [], [], 0)[0]
        bell.clear()


async def test_the_keys_are_read_again_after_the_terminal_was_left_for_a_while() -> None:
    """A suspended driver is closed, and goes on: what wakes its reader must still be open."""
    driver = BurstDriver(App[None](), size=(80, 24))
    for _ in range(2):
        driver.close()
        driver.exit_event.set()
        driver.exit_event.clear()
