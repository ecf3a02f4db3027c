"""What the slash commands and the lists do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from letta_tui.seam.intents import (
    ForgetConversation,
    ManageConversation,
    NewConversation,
    OpenConversation,
    Redact,
    SetCwd,
    SetMode,
    SetModel,
)
from letta_tui.seam.updates import Update
from letta_tui.ui.chat.slash import Command

if TYPE_CHECKING:
    from letta_tui.ui.chat.screen import ChatScreen


class Commands:
    """Every ``command_…`` method is one slash command; the argument is what was written behind it."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen

    def run(self, command: Command, argument: str) -> None:
        getattr(self, f"command_{command.action}")(argument)

    def apply(self, update: Update) -> None:
        """Updates for lists: the list on top takes them itself; without one nobody waits for them."""
        return

    def open_setup(self, reason: str) -> None:
        from letta_tui.ui.dialogs.setup import SetupScreen

        self._screen.app.push_screen(SetupScreen(self._screen.port, reason))
