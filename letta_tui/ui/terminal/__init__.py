"""What the view says to the terminal beyond drawing: input bursts, clipboard, notifications, titles."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.driver import Driver


def driver_class() -> type[Driver] | None:
    """The driver that knows input bursts, where there is one; None lets Textual choose."""
    if sys.platform == "win32":
        return None
    from letta_tui.ui.terminal.driver import BurstDriver

    return BurstDriver
