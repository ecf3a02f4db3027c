"""Calling a person who looks elsewhere. Never with text of the conversation."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from letta_tui.seam.updates import Attention

if TYPE_CHECKING:
    from letta_tui.ui.app import LettaTuiApp

_WORDS = {
    "approval": "A tool call waits for your answer.",
    "turn_ended": "The turn has ended.",
    "failed": "The turn failed.",
}


def wrap_for_tmux(sequence: str, environ: dict[str, str] | None = None) -> str:
    """``sequence`` so that tmux hands it to the terminal around it (``allow-passthrough on``)."""
    values = os.environ if environ is None else environ
    if not values.get("TMUX"):
        return sequence
    return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"


def sequences(what: str, how: Literal["on", "bell", "off"], environ: dict[str, str] | None = None) -> str:
    """The bytes for the terminal: a bell always reaches somebody; OSC 9 and 777 where they are known."""
    if how == "off":
        return ""
    words = _WORDS.get(what, "letta-tui")
    if how == "bell":
        return "\x07"
    return (
        "\x07"
        + wrap_for_tmux(f"\x1b]9;letta-tui: {words}\x1b\\", environ)
        + wrap_for_tmux(f"\x1b]777;notify;letta-tui;{words}\x1b\\", environ)
    )


def attract(app: LettaTuiApp, attention: Attention, how: Literal["on", "bell", "off"]) -> None:
    """Ring, unless the window has the focus."""
    if app.window_focused:
        return
    app.to_terminal(sequences(attention.what, how))
