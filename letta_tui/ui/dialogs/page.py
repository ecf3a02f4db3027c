"""Something long to read, on the whole screen."""

from __future__ import annotations

from textual.containers import VerticalScroll

from letta_tui.ui.keys import bindings


class Page(VerticalScroll, inherit_bindings=False):
    """Scrolls with the keys of our table."""

    BINDINGS = bindings("page")
