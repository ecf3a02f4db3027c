"""A worker that does what a test tells it."""

from __future__ import annotations

from collections.abc import Callable

from letta_tui.seam.channel import Mailbox
from letta_tui.seam.intents import Intent
from letta_tui.seam.updates import Update


class FakePort:
    """Collects intents; ``say`` puts updates into a real mailbox."""

    def __init__(self) -> None:
        self.intents: list[Intent] = []
        self.mailbox = Mailbox()

    def send(self, intent: Intent) -> None:
        self.intents.append(intent)

    def drain(self) -> list[Update]:
        return self.mailbox.drain()

    def on_update(self, wake: Callable[[], None] | None) -> None:
        self.mailbox.on_update(wake)

    def say(self, *updates: Update) -> None:
        for update in updates:
            self.mailbox.put(update)

    def sent(self, kind: type[Intent]) -> list[Intent]:
        return [i for i in self.intents if isinstance(i, kind)]
