"""What was last known is painted at once, says how old it is, and settles without moving what is read."""

from __future__ import annotations

import pytest
from fakeport import FakePort
from scenes import CONNECTED, NOW, make_app, settle, status
from textual.pilot import Pilot

from letta_tui.seam.intents import SaveDraft, Submit
from letta_tui.seam.state import ConnectionView, Row
from letta_tui.seam.updates import ConnectionChanged, Splice, TranscriptChanged
from letta_tui.ui.app import LettaTuiApp
from letta_tui.ui.chat.bars import as_of

OFFLINE = ConnectionChanged(
    ConnectionView("lost", "Nothing listens at 127.0.0.1:9.", retry_at=NOW + 3, can_send=True)
)


def conversation(turns: int) -> tuple[Row, ...]:
    return tuple(Row(f"assistant:{n}", "assistant", f"words {n}\n\nmore {n}") for n in range(turns))


def remembered(rows: tuple[Row, ...]) -> TranscriptChanged:
    return TranscriptChanged((Splice(0, 0, rows),), reset=True, as_of=NOW - 300)


def screen(app: LettaTuiApp) -> list[str]:
    width, height = app.size
    strips = app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip)[:width] for strip in strips[:height]]


def places(app: LettaTuiApp) -> dict[str, int]:
    """The words of the conversation with the screen line they stand on."""
    lines = (line[:70].strip() for line in screen(app))  # without the scrollbar
    return {line: y for y, line in enumerate(lines) if line.startswith(("words", "more"))}


async def opened(app: LettaTuiApp, pilot: Pilot[int], port: FakePort, turns: int) -> None:
    port.say(OFFLINE, status(), remembered(conversation(turns)))
    await settle(pilot, port)
    assert as_of(NOW - 300, NOW) in "".join(screen(app))


@pytest.mark.parametrize(("turns", "up"), [(2, 0), (60, 0), (60, 20)])
async def test_it_settles_without_a_jump(port: FakePort, turns: int, up: int) -> None:
    app = make_app(port)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(app, pilot, port, turns)
        if up:
            app.chat.transcript.scroll_up(animate=False)
            for _ in range(up):
                app.chat.transcript.scroll_relative(y=-1, animate=False)
            await settle(pilot, port)
            assert not app.chat.transcript.following
        before = places(app)
        assert before
        # Older rows come in above, one that was cut short is whole, and nothing is cached any more.
        older = tuple(Row(f"assistant:old-{n}", "assistant", f"older {n}") for n in range(5))
        whole = Row(f"assistant:{turns - 1}", "assistant", f"words {turns - 1}\n\nmore {turns - 1}")
        port.say(
            TranscriptChanged((Splice(turns - 1, 1, (whole,)),)),
            CONNECTED,
        )
        if turns > 2:
            port.say(TranscriptChanged((Splice(0, 0, older),)))
        await settle(pilot, port)
        assert places(app) == before
        assert "As of" not in "".join(screen(app))


async def test_new_rows_do_not_move_what_a_person_reads_further_up(port: FakePort) -> None:
    app = make_app(port)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(app, pilot, port, 60)
        app.chat.transcript.scroll_relative(y=-30, animate=False)
        await settle(pilot, port)
        before = places(app)
        port.say(TranscriptChanged((Splice(60, 0, (Row("assistant:new", "assistant", "new words"),)),)))
        await settle(pilot, port)
        assert places(app) == before
        assert "more below" in "".join(screen(app))


async def test_without_a_server_one_can_scroll_and_write(port: FakePort) -> None:
    app = make_app(port)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(app, pilot, port, 60)
        assert "Nothing listens" in screen(app)[0]
        await pilot.press("pageup", "pageup")
        await settle(pilot, port)
        assert "words 59" not in places(app)
        await pilot.press(*"later")
        await pilot.pause(0.5)
        app.chat.save_draft()
        assert SaveDraft("later") in port.sent(SaveDraft)
        await pilot.press("enter")
        assert [intent.text for intent in port.sent(Submit)] == ["later"]


def test_the_age_is_a_time_of_day_and_a_date_when_it_is_older() -> None:
    assert as_of(NOW - 60, NOW).startswith("As of ")
    assert "," not in as_of(NOW - 60, NOW)
    assert ", " in as_of(NOW - 3 * 86_400, NOW)
