"""Pictures of every kind of row, on dark and light themes, small and large."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot

from letta_tui.ui.transcript import TranscriptView
from tests.ui_transcript.gallery import Gallery, everything
from tests.ui_transcript.test_view import settle


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light"])
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_every_kind_of_row(snap_compare: Any, theme: str, size: tuple[int, int]) -> None:
    assert snap_compare(Gallery(everything(), theme), terminal_size=size, run_before=settle)


def test_unfolded(snap_compare: Any) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await settle(pilot)
        view = pilot.app.query_one(TranscriptView)
        view.jump_to("u1")
        view.toggle_fold("r1")
        view.toggle_fold("t1")
        await settle(pilot)

    assert snap_compare(Gallery(everything()), terminal_size=(80, 24), run_before=before)
