"""Small parts around the transcript: the empty screen and the search line."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from letta_tui.ui.field import Field
from letta_tui.ui.text.sanitise import safe


class Welcome(Widget):
    """What an empty conversation shows: things that can be tried."""

    DEFAULT_CSS = """
    Welcome { height: 1fr; display: none; padding: 1 3; content-align: left bottom; }
    """

    def __init__(self, hints: tuple[str, ...]) -> None:
        super().__init__()
        self._hints = hints
        self._words = "Starting…"
        self._open = False

    def show(self, words: str, is_open: bool = False) -> None:
        """``words``: why there is nothing here yet, else "". ``is_open``: a conversation is, and is empty."""
        if (words, is_open) != (self._words, self._open):
            self._words, self._open = words, is_open
            self.refresh()

    def render(self) -> Content:
        if self._words:
            return Content.styled(safe(self._words), "$quiet")
        if not self._open:
            lines = [Content.styled("No conversation is open.", "bold"), Content("")]
            lines += [
                Content.assemble(("  " + key.ljust(10), "$primary"), (words, "$quiet"))
                for key, words in (
                    ("F2", "opens one that there is"),
                    ("/new", "begins one"),
                    ("/agents", "shows the agents, and makes one"),
                    ("/setup", "connects a model provider"),
                )
            ]
            return Content("\n").join(lines)
        lines = [Content.styled("A new conversation.", "bold"), Content("")]
        if self._hints:
            lines.append(Content.styled("Try one of these, in your own words:", "$quiet"))
            lines += [Content.assemble(("  › ", "$primary"), safe(hint)) for hint in self._hints]
        else:
            lines.append(
                Content.styled("Write below, Enter sends. / lists commands, F1 every key.", "$quiet")
            )
        room = max(1, self.size.height)
        return Content("\n").join(lines[:room])


class FindBar(Horizontal):
    """One line to search the transcript with."""

    DEFAULT_CSS = """
    FindBar { height: 1; display: none; background: $panel; padding: 0 1;
        & Static { width: auto; color: $quiet; }
        & Field { width: 1fr; }
    }
    """

    class Search(Message):
        def __init__(self, text: str, backwards: bool) -> None:
            super().__init__()
            self.text = text
            self.backwards = backwards

    def compose(self) -> ComposeResult:
        yield Static("Find ", markup=False)
        yield Field(id="find")
        yield Static("Enter older · ↓ newer · Esc closes", markup=False, id="find-words")

    def open(self, text: str = "") -> None:
        self.display = True
        field = self.query_one(Field)
        if text:
            field.value = text
        self.screen.set_focus(field)
        if text:
            self.post_message(self.Search(text, True))

    def close(self) -> None:
        self.display = False

    def found(self, found: bool) -> None:
        words = "Enter older · ↓ newer · Esc closes" if found else "not found"
        self.query_one("#find-words", Static).update(Content(words))

    def on_input_submitted(self, event: Field.Submitted) -> None:
        event.stop()
        if event.value:
            self.post_message(self.Search(event.value, True))

    def on_key(self, event: events.Key) -> None:
        if event.key in ("down", "up"):
            event.stop()
            value = self.query_one(Field).value
            if value:
                self.post_message(self.Search(value, event.key == "up"))
