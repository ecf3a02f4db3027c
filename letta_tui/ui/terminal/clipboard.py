"""Copying through the terminal (OSC 52), with words that claim no more than is known."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from letta_tui.ui.terminal.attention import wrap_for_tmux

if TYPE_CHECKING:
    from letta_tui.ui.app import LettaTuiApp

LIMIT = 74_994  # bytes of text; 100,000 base64 characters are what common terminals still take


def copy(app: LettaTuiApp, text: str, what: str = "") -> str:
    """Send ``text`` to the terminal's clipboard; the sentence to show. What is too long is not sent."""
    if not text:
        return "There is nothing to copy: select some text first."
    raw = text.encode("utf-8", "replace")
    app._clipboard = text  # Ctrl+V here pastes it, whatever the terminal does
    if len(raw) > LIMIT:
        return (
            f"Too long for the terminal's clipboard ({len(text):,} characters): not sent there. "
            "Ctrl+V pastes it in this program."
        )
    data = base64.b64encode(raw).decode("ascii")
    plain = f"\x1b]52;c;{data}\x07"
    # tmux takes the plain form (set-clipboard on) or passes the wrapped one on (allow-passthrough on).
    wrapped = wrap_for_tmux(plain)
    app.to_terminal(plain if wrapped == plain else plain + wrapped)
    kind = {"selection": "The selection", "message": "The message"}.get(what, "The text")
    return f"{kind} was sent to the terminal's clipboard, {len(text):,} characters."
