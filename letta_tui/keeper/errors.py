"""What goes wrong with a keeper, in a module that costs nothing to load."""

from __future__ import annotations


class KeeperError(Exception):
    """The keeper could not do it; the text is one sentence for a person.

    ``lasting``: waiting will not help, the person has to change something first.
    """

    def __init__(self, words: str, *, lasting: bool = False) -> None:
        super().__init__(words)
        self.lasting = lasting


class AlreadyRunning(Exception):
    """Another keeper of this profile has the lock."""


class CannotRun(Exception):
    """The keeper cannot start; the text is one sentence."""
