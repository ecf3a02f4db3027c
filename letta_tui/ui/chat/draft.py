"""The text field of the composer: editing, and the lock on text that is being put on disk."""

from __future__ import annotations

from typing import Protocol

from textual import events
from textual.document._document import EditResult
from textual.document._edit import Edit
from textual.geometry import Offset
from textual.widgets import TextArea

from letta_tui.ui.keys import bindings
from letta_tui.ui.prompt import PromptScreen

BLINKS = 6
"""How often the cursor changes after a key before it stays: a window that nobody types in does nothing."""


class DraftHost(Protocol):
    """What the field asks of the composer around it. All answers are immediate."""

    def enter(self) -> None: ...
    def walk(self, back: bool) -> bool: ...
    def complete_move(self, back: bool) -> bool: ...
    def interrupt(self) -> None: ...
    def touched(self) -> None: ...
    def left(self) -> None: ...


class Draft(TextArea, inherit_bindings=False):
    """A multi-line field in which a beginning of the text can be locked.

    Submitted text stays where it was until it is on disk; it is locked then, and typing goes on behind
    it. When the word comes, exactly the locked text is taken out, or the lock is lifted.
    """

    BINDINGS = bindings("composer")

    DEFAULT_CSS = """
    Draft {
        height: auto; max-height: 8; min-height: 1; padding: 0 1; border: none; background: transparent;
        scrollbar-size-vertical: 1;
        &:focus { border: none; background: transparent; }
        & .text-area--cursor-line { background: transparent; }
        & .text-area--placeholder { color: $quiet; }
        &.-locked { color: $quiet; }
    }
    """

    def __init__(self, host: DraftHost) -> None:
        super().__init__(highlight_cursor_line=False, show_line_numbers=False, compact=True, id="draft")
        self._host = host
        self._lock: tuple[int, int] | None = None
        self._blinks = 0

    # -- the lock

    @property
    def locked(self) -> bool:
        return self._lock is not None

    @property
    def locked_text(self) -> str:
        return "" if self._lock is None else self.get_text_range((0, 0), self._lock)

    @property
    def free_text(self) -> str:
        """What is not locked: the draft."""
        return self.text if self._lock is None else self.get_text_range(self._lock, self.document.end)

    def lock_all(self) -> None:
        self._lock = self.document.end
        self.add_class("-locked")
        self.move_cursor(self.document.end)

    def take_locked(self) -> None:
        """Remove the locked text; it cannot be brought back by undo, or it could be sent twice."""
        if self._lock is None:
            return
        end, self._lock = self._lock, None
        self.remove_class("-locked")
        self.delete((0, 0), end, maintain_selection_offset=True)
        self.history.clear()

    def unlock(self) -> None:
        """Give the text back. What was typed behind it starts on a line of its own."""
        if self._lock is None:
            return
        end, self._lock = self._lock, None
        self.remove_class("-locked")
        if end != self.document.end:
            self.insert("\n", end, maintain_selection_offset=True)

    def put(self, text: str) -> None:
        """Replace everything that is not locked."""
        start = self._lock or (0, 0)
        self.replace(text, start, self.document.end, maintain_selection_offset=False)
        self.move_cursor(self.document.end)

    def edit(self, edit: Edit) -> EditResult:
        if self._lock is not None and min(edit.from_location, edit.to_location) < self._lock:
            if not edit.text:
                return EditResult(self.cursor_location, "")
            end = self.document.end
            edit = Edit(edit.text, end, end, False)
        return super().edit(edit)

    def undo(self) -> None:
        if self._lock is None:
            super().undo()

    def redo(self) -> None:
        if self._lock is None:
            super().redo()

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        """Textual asks for this in the middle of an edit that takes the scrollbar away, with the cursor still
        where there are no lines any more: taking back a long paste ended the program."""
        if self.cursor_location > self.document.end:
            return Offset(0, 0)  # the edit puts the cursor right, and this is called again
        return super().scroll_cursor_visible(center, animate)

    # -- the cursor

    def _restart_blink(self) -> None:
        self._blinks = 0
        super()._restart_blink()

    def _toggle_cursor_blink_visible(self) -> None:
        self._blinks += 1
        if self._blinks < BLINKS:
            super()._toggle_cursor_blink_visible()
        else:
            self._pause_blink()

    # -- keys that are not plain editing

    def action_submit(self) -> None:
        self._host.enter()

    def action_newline(self) -> None:
        self._replace_via_keyboard("\n", *self.selection)

    def action_up(self) -> None:
        if self._host.complete_move(True):
            return
        if not (self.cursor_at_first_wrapped and self._host.walk(True)):
            self.action_cursor_up()

    def action_down(self) -> None:
        if self._host.complete_move(False):
            return
        if not (self.cursor_at_last_wrapped and self._host.walk(False)):
            self.action_cursor_down()

    def action_interrupt(self) -> None:
        self._host.interrupt()

    @property
    def cursor_at_first_wrapped(self) -> bool:
        return self.wrapped_document.location_to_offset(self.cursor_location).y == 0

    @property
    def cursor_at_last_wrapped(self) -> bool:
        return (
            self.wrapped_document.location_to_offset(self.cursor_location).y
            == self.wrapped_document.height - 1
        )

    async def _on_key(self, event: events.Key) -> None:
        await self._key(event)
        if isinstance(self.screen, PromptScreen):
            self.screen.echo(self, event.time)

    async def _key(self, event: events.Key) -> None:
        event.prevent_default()  # Enter and Tab are bindings here, not text
        if event.is_printable and event.character is not None:
            event.stop()
            self._restart_blink()
            self._replace_via_keyboard(event.character, *self.selection)
            return
        # Run here and now: a binding found by the application runs only after the keys that came behind
        # this one, so Enter would send, and backspace take away, what was typed later.
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            event.stop()
            await self.run_action(binding.action)
            return

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        text = event.text.replace("\r\n", "\n").replace("\r", "\n")
        if result := self._replace_via_keyboard(text, *self.selection):
            self.move_cursor(result.end_location)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self._host.touched()

    def on_blur(self) -> None:
        self._host.left()
