"""One line of text to write in."""

from __future__ import annotations

from typing import Any

from textual import events
from textual.widgets import Input

from letta_tui.ui.keys import bindings


class Field(Input, inherit_bindings=False):
    """Textual's input with the keys of our table and without a frame.

    Its keys run here and now: a binding found by the application runs only after the keys that came behind
    this one, so backspace would take away what was typed later.
    """

    BINDINGS = bindings("line")

    DEFAULT_CSS = """
    Field { border: none; height: 1; background: $panel; padding: 0 1;
            &:focus { border: none; background: $panel; } }
    """

    def __init__(self, value: str = "", placeholder: str = "", **more: Any) -> None:
        super().__init__(value, placeholder, compact=True, **more)
        self.set_reactive(Field.cursor_blink, False)  # nothing is drawn while nobody types

    async def _on_key(self, event: events.Key) -> None:
        if event.is_printable:
            return  # Textual's own handler writes it
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            event.stop()
            event.prevent_default()
            await self.run_action(binding.action)
            return
