"""The view as a person meets it: what is seen, where it stays, what is copied, what reaches the terminal."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.pilot import Pilot

from letta_tui.seam.state import Row, ToolView
from letta_tui.seam.updates import Splice, TextAppended, TranscriptChanged
from letta_tui.ui.transcript import TranscriptView
from tests.ui_transcript.gallery import Gallery, everything


async def settle(pilot: Pilot[None], done: Callable[[], bool] = lambda: True) -> None:
    """Wait until the view has painted what it was given and ``done`` holds."""
    view = pilot.app.query_one(TranscriptView)
    for _ in range(400):
        await pilot.pause(0.01)
        if not view._stale and done():
            return
    raise AssertionError("the view did not settle")


def screen(view: TranscriptView) -> list[str]:
    """The lines on the screen, without the gutter."""
    return [view.render_line(y).text[2:].rstrip() for y in range(view.size.height)]


def numbered(count: int, start: int = 0) -> tuple[Row, ...]:
    return tuple(Row(f"r{n}", "user", f"message {n}\nsecond line") for n in range(start, start + count))


def fill(rows: tuple[Row, ...], more_above: bool = False) -> TranscriptChanged:
    return TranscriptChanged((Splice(0, 0, rows),), reset=True, more_above=more_above)


async def test_it_follows_until_the_person_scrolls_up_and_says_what_came_below() -> None:
    app = Gallery(fill(numbered(50)))
    async with app.run_test(size=(60, 20)) as pilot:
        view = app.view
        await settle(pilot)
        assert "second line" in screen(view)[-1]
        assert "message 49" in screen(view)[-2]
        view.scroll_relative(y=-10, animate=False)
        await settle(pilot)
        assert not view.following
        before = screen(view)
        view.apply(TranscriptChanged((Splice(50, 0, numbered(5, 50)),)))
        await settle(pilot)
        assert view.new_below
        assert screen(view) == before
        await pilot.press("end")
        await settle(pilot)
        assert view.following
        assert not view.new_below
        assert "message 54" in screen(view)[-2]


@pytest.mark.parametrize("grown", [0, 1, 8])
async def test_it_follows_although_the_room_changes_before_new_text_is_painted(grown: int) -> None:
    app = Gallery(fill((*numbered(50), Row("live", "assistant", "begin", live=True))))
    async with app.run_test(size=(60, 20)) as pilot:
        view = app.view
        await settle(pilot)
        for height in (9, 20, 12, 16, 6, 20):
            view.apply(TextAppended("live", "\n\nmore\n\nof it" * grown))
            view.styles.height = height
            await settle(pilot, lambda height=height: view.size.height == height)
            assert view.following
            assert any("begin" in line or "of it" in line for line in screen(view)[-2:])


async def test_older_rows_are_asked_for_once_and_move_nothing() -> None:
    app = Gallery(fill(numbered(40, 100), more_above=True))
    async with app.run_test(size=(60, 20)) as pilot:
        view = app.view
        await settle(pilot)
        assert not app.asked
        view.scroll_relative(y=-300, animate=False)
        view.scroll_relative(y=2, animate=False)
        await settle(pilot, lambda: len(app.asked) == 1)
        before = screen(view)
        view.apply(TranscriptChanged((Splice(0, 0, numbered(100)),), more_above=True))
        await settle(pilot)
        assert [line for line in screen(view) if line] == [line for line in before if line]


def ways_to_start(app: Gallery) -> list[bool]:
    return [each.to_start for each in app.asked if isinstance(each, TranscriptView.NearTop)]


async def test_the_way_to_the_beginning_goes_on_until_it_is_there() -> None:
    app = Gallery(fill(numbered(40, 160), more_above=True))
    async with app.run_test(size=(60, 20)) as pilot:
        view = app.view
        await settle(pilot)
        view.jump_top()
        for start in (120, 80, 40, 0):
            asked = (160 - start) // 40
            await settle(pilot, lambda asked=asked: ways_to_start(app) == [True] * asked)
            view.apply(TranscriptChanged((Splice(0, 0, numbered(40, start)),), more_above=start > 0))
            await settle(pilot)
            assert screen(view)[0] == f"message {start}"
        assert ways_to_start(app) == [True] * 4
        view.apply(TranscriptChanged((Splice(0, 0, numbered(1, 999)),)))
        await settle(pilot)
        assert screen(view)[:2] != ["message 999", "second line"]


async def test_whoever_goes_elsewhere_is_not_taken_to_the_beginning() -> None:
    app = Gallery(fill(numbered(100, 100), more_above=True))
    async with app.run_test(size=(60, 20)) as pilot:
        view = app.view
        await settle(pilot)
        view.jump_top()
        await settle(pilot, lambda: ways_to_start(app) == [True])
        view.scroll_relative(y=150, animate=False)
        await settle(pilot)
        before = screen(view)
        view.apply(TranscriptChanged((Splice(0, 0, numbered(100)),), more_above=True))
        await settle(pilot)
        assert screen(view) == before
        assert ways_to_start(app) == [True]


async def test_older_rows_that_did_not_come_are_asked_for_again() -> None:
    app = Gallery(fill(numbered(100, 100), more_above=True))
    async with app.run_test(size=(60, 20)) as pilot:
        view = app.view
        await settle(pilot)
        for times in (1, 2):
            view.scroll_relative(y=-300, animate=False)
            await settle(pilot, lambda times=times: len(ways_to_start(app)) == times)
            view.jump_bottom()
            await settle(pilot)


async def test_a_resize_keeps_the_row_that_is_read() -> None:
    text = "many words that wrap differently at every width there is " * 8
    rows = tuple(Row(f"r{n}", "assistant", f"number {n}\n\n{text}") for n in range(60))
    app = Gallery(fill(rows))
    async with app.run_test(size=(100, 20)) as pilot:
        view = app.view
        await settle(pilot)
        assert view.jump_to("r30")
        for width in (40, 70, 33, 100):
            await pilot.resize_terminal(width, 20)
            await settle(pilot)
            assert screen(view)[0].strip() == "number 30"


async def test_scrolling_up_line_by_line_shows_every_line_once() -> None:
    rows = tuple(Row(f"r{n}", "notice", f"row {n} " + "x " * (n * 7 % 90)) for n in range(40))
    app = Gallery(fill(rows))
    async with app.run_test(size=(50, 12)) as pilot:
        view = app.view
        await settle(pilot)
        up = screen(view)
        while view.scroll_y > 0:
            top = screen(view)
            view.scroll_relative(y=-1, animate=False)
            assert screen(view)[1:] == top[:-1]
            up.insert(0, screen(view)[0])
        view.jump_top()
        down = screen(view)
        while not view.following:
            view.scroll_relative(y=1, animate=False)
            down.append(screen(view)[-1])
        assert up == down


async def test_streamed_text_is_the_text_given_whole() -> None:
    text = "# Title\n\nsome **bold** words\n\n- one\n- two\n\n```py\nx = 1\n```\n"
    app = Gallery(fill((Row("a", "assistant", live=True),)))
    async with app.run_test(size=(60, 20)) as pilot:
        for start in range(0, len(text), 3):
            app.view.apply(TextAppended("a", text[start : start + 3]))
        await settle(pilot)
        streamed = screen(app.view)
        app.view.apply(fill((Row("b", "assistant", text),)))
        await settle(pilot)
        assert screen(app.view) == streamed


async def test_folding_by_key_and_click() -> None:
    app = Gallery(everything())
    async with app.run_test(size=(80, 40)) as pilot:
        view = app.view
        await settle(pilot)
        view.jump_to("r1")
        await pilot.press("enter")
        assert any("wants to know about durability" in line for line in screen(view))
        await pilot.press("enter")
        assert not any("wants to know about durability" in line for line in screen(view))
        view.jump_to("t1")
        await pilot.click(TranscriptView, offset=(6, 0))
        await settle(pilot)
        assert any("… 80 more lines" in line for line in screen(view)) or view.virtual_size.height > 60
        await pilot.press("right")
        view.jump_to("t2")
        await settle(pilot)
        view.scroll_relative(y=-1, animate=False)
        assert "file-119.txt" in screen(view)[0]


async def test_the_cursor_row_is_copied_as_its_source() -> None:
    app = Gallery(everything())
    async with app.run_test(size=(80, 24)) as pilot:
        view = app.view
        await settle(pilot)
        view.jump_to("u1")
        await pilot.press("ctrl+c")
        await settle(pilot, lambda: bool(app.asked))
        message = app.asked[-1]
        assert isinstance(message, TranscriptView.CopyRequested)
        assert (message.text, message.what) == (
            "How safe is the ledger?\nPlease look at the code.",
            "message",
        )


async def test_nothing_to_copy_is_said() -> None:
    app = Gallery()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ctrl+c")
        await settle(pilot, lambda: bool(app.asked))
        message = app.asked[-1]
        assert isinstance(message, TranscriptView.CopyRequested)
        assert (message.text, message.what) == ("", "")


async def test_a_dragged_selection_gives_the_text_without_decorations() -> None:
    rows = (
        Row("u", "user", "a question", delivery="delivered"),
        Row("a", "assistant", "> quoted words that are long enough to be wrapped\n\nand the end"),
    )
    app = Gallery(fill(rows))
    async with app.run_test(size=(40, 12)) as pilot:
        view = app.view
        await settle(pilot)
        lines = screen(view)
        last = next(y for y, line in enumerate(lines) if "and the end" in line)
        await pilot.mouse_down(TranscriptView, offset=(2, 0))
        await pilot.hover(TranscriptView, offset=(8, last))
        await pilot.mouse_up(TranscriptView, offset=(8, last))
        await settle(pilot)
        expected = "a question\n\nquoted words that are long enough to be wrapped\n\nand the"
        assert view.get_selection_text() == expected
        assert app.screen.get_selected_text() == expected
        assert view.copy_text() == (expected, "selection")
        view.apply(TranscriptChanged((Splice(0, 0, numbered(3)),)))
        await settle(pilot)
        assert view.get_selection_text() == expected


async def test_jumps_and_search() -> None:
    app = Gallery(everything())
    async with app.run_test(size=(80, 16)) as pilot:
        view = app.view
        await settle(pilot)
        assert view.jump_previous_user()
        assert view.cursor_row is not None
        assert view.cursor_row.key == "u1"
        assert not view.jump_previous_user()
        assert view.find("FILE-100", backwards=False)
        assert view.cursor_row.key == "t1"
        assert any("file-100" in line for line in screen(view)) or any(
            "more lines" in line for line in screen(view)
        )
        assert not view.find("no such words")
        view.find_clear()
        view.jump_top()
        assert "summary" in screen(view)[0]


NASTY = "\x1b]52;c;aGk=\x07\x1b[2J\x9b31m\x00\u202eevil\u200b\x1b]0;title\x1b\\ &#27;[5m\r\n\t\ud800"


async def test_nothing_from_outside_reaches_the_terminal_raw(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (
        Row("u", "user", NASTY, delivery="failed", marks=(NASTY,)),
        Row("a", "assistant", f"{NASTY}\n\n`{NASTY}`\n\n```{NASTY}\n{NASTY}\n```\n[x]({NASTY})"),
        Row("r", "reasoning", NASTY),
        Row(
            "t",
            "tool",
            tool=ToolView("c", NASTY, '{"command": "\\u001b[2J' + "x" + '"}', "failed", NASTY, NASTY, NASTY),
        ),
        *(Row(kind, kind, NASTY) for kind in ("notice", "error", "summary", "away")),
    )
    app = Gallery(fill(rows))
    async with app.run_test(size=(80, 60)) as pilot:
        app.view.fold_all(False)
        for part in "\x1b]52;c;", "aGk=", "\x07\x1b", "[2J":
            app.view.apply(TextAppended("a", part))
        await settle(pilot)
        text = ""
        for y in range(60):
            strip = app.view.render_line(y)
            text += strip.text
            strip.render(app.console).encode("utf-8")
        assert "evil" in text
        for char in text:
            control = ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or char in "\u202e\u200b"
            assert not control, repr(char)
        assert "aGk=" not in text


async def test_ten_thousand_rows_lay_out_only_what_is_seen() -> None:
    app = Gallery(fill(numbered(10_000)))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert sum(entry.laid_out for entry in app.view._entries) < 40
        assert "message 9999" in screen(app.view)[-2]
