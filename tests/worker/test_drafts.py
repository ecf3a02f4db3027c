"""A draft that the disk does not take: the person is told, it is tried again, and not lost on the way out."""

from __future__ import annotations

import pytest

from letta_tui.ledger.errors import LedgerUnwritable
from letta_tui.ledger.store import Ledger
from letta_tui.ledger.values import Place
from letta_tui.seam.intents import SaveDraft
from letta_tui.seam.updates import Closed
from letta_tui.worker import drafts
from tests.support.seat import Seat
from tests.worker.world import World

FULL = "The disk is full, so nothing can be kept safe (there)."


class Disk:
    """``full``: no draft can be saved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = True
        self.tries = 0
        save = Ledger.save_draft

        def may_be_full(ledger: Ledger, window_id: str, place: Place, text: str) -> None:
            self.tries += 1
            if self.full:
                raise LedgerUnwritable(FULL)
            save(ledger, window_id, place, text)

        monkeypatch.setattr(Ledger, "save_draft", may_be_full)
        monkeypatch.setattr(drafts, "AGAIN", 0.0)


async def ended(seat: Seat) -> Closed:
    await seat.quit()
    assert seat.closed is not None
    return seat.closed


async def test_it_is_said_once_and_saved_when_there_is_room_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    seat = await world.window()
    for text in ("half", "half a", "half a draft"):
        seat.send(SaveDraft(text))
    await seat.until(lambda: disk.tries >= 5, what="it is tried again")
    assert seat.notices == [f"Your draft is on the screen only, it is not saved. {FULL}"]
    disk.full = False
    await seat.until(lambda: "Your draft is saved again." in seat.notices, what="saved")
    with world.ledger() as ledger:
        assert [draft.text for draft in ledger.drafts(world.place)] == ["half a draft"]
    assert (await ended(seat)).error == ""


async def test_on_the_way_out_it_is_given_back_in_the_terminal(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    Disk(monkeypatch)
    seat = await world.window()
    seat.send(SaveDraft("two\nlines \x1b[2J"))
    closed = await ended(seat)
    assert closed.error == f"Your draft could not be saved. {FULL} It was:\n\ntwo\nlines \\u001b[2J"
    assert closed.exit_code == 1


async def test_an_emptied_composer_is_nothing_to_lose(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    Disk(monkeypatch)
    seat = await world.window()
    seat.send(SaveDraft(""))
    closed = await ended(seat)
    assert (closed.error, seat.notices) == ("", [])
