"""How a command ends: exit codes, and the one exception that ends it with a sentence."""

from __future__ import annotations

#: The documented exit codes; README.md has the same table, and a test compares the two.
OK = 0
FAILED = 1  # the server, the disk or the network did not do it
USAGE = 2  # the command line or the config file is wrong
TURN_FAILED = 3  # `send`: delivered, but the turn ended in an error or was cancelled
APPROVAL_NEEDED = 4  # `send`: a tool call waits for a person
UNKNOWN_DELIVERY = 5  # `send`: nobody can say whether the server has the message
INTERRUPTED = 130  # Ctrl+C


class CommandError(Exception):
    """Ends the command: ``str(error)`` is one clear sentence for a person, ``code`` the exit code."""

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.code = code
