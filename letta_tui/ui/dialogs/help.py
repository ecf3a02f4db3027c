"""Every key and every command, from the tables that they are made of."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from letta_tui.ui.chat.slash import COMMANDS
from letta_tui.ui.dialogs.page import Page
from letta_tui.ui.keys import KEYS, bindings, names
from letta_tui.ui.options import AppOptions

_PLACES = {
    "everywhere": "Everywhere",
    "conversation": "In a conversation",
    "composer": "While writing",
    "transcript": "In the transcript, after Tab or a click; letters go to the composer",
    "approval": "On a card that asks about a tool call, after Tab, F7 or a click; answers can be clicked",
    "recovery": "On a card about messages or a question, after Tab, F7 or a click; answers can be clicked",
    "queue": "On the waiting messages, after Tab or a click",
    "list": "In a list",
    "conversations": "In the lists of conversations and agents",
    "line": "In one line of text: a search, a reason, a name",
    "form": "In a form",
    "details": "On this page, and in the details of a tool call",
    "page": "",
}


def help_lines() -> list[tuple[str, str]]:
    """(key or command, what it does); a heading has an empty second part."""
    lines: list[tuple[str, str]] = []
    for place, words in _PLACES.items():
        found = [k for k in KEYS if k.place == place]
        if words:
            lines.append((words, ""))
        lines += [(names(k.keys) if k.action != "suggest" else "1 … 9", k.words) for k in found]
    lines.append(("Commands, at the beginning of a message", ""))
    for command in COMMANDS:
        name = f"/{command.name}" + (f" [{command.argument}]" if command.argument else "")
        lines.append((name, command.words))
    lines.append(("//text", "Send a message that begins with a slash"))
    return lines


class HelpScreen(ModalScreen[None], inherit_bindings=False):
    """One page to scroll."""

    BINDINGS = bindings("details")

    DEFAULT_CSS = """
    HelpScreen {
        background: $background; layout: vertical;
        & #help-head { height: 1; padding: 0 1; background: $surface; }
        & Page { height: 1fr; padding: 0 2; }
        & #help-lines { height: auto; }
        & #help-foot { height: 1; padding: 0 1; background: $surface; color: $quiet; }
    }
    """

    def __init__(self, options: AppOptions) -> None:
        super().__init__()
        self._options = options

    def compose(self) -> ComposeResult:
        version = f" {self._options.version}" if self._options.version else ""
        yield Static(Content.assemble(("Help  ", "bold"), ("letta-tui" + version, "$quiet")), id="help-head")
        with Page():
            yield Static("", id="help-lines", markup=False)
        yield Static(Content("↑↓ PgUp PgDn scroll · Esc back"), id="help-foot")

    def on_mount(self) -> None:
        self.query_one(Page).focus()
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        left = 22 if self.app.size.width < 100 else 30
        width = max(20, self.app.size.width - 6 - left)
        lines: list[Content] = []
        for key, words in help_lines():
            if not words:
                lines += [Content(""), Content.styled(key, "bold $secondary")]
                continue
            rows = [str(r) for r in Content(words).wrap(width)]
            if len(key) >= left:
                lines.append(Content.styled(key, "$primary"))
                key = ""
            for number, row in enumerate(rows):
                lines.append(
                    Content.assemble(((key if not number else "").ljust(left), "$primary"), (row, ""))
                )
        self.query_one("#help-lines", Static).update(Content("\n").join(lines[1:]))

    def action_leave(self) -> None:
        self.dismiss(None)
