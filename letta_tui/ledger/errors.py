"""What can go wrong with the ledger, each with one sentence for the person."""

from __future__ import annotations


class LedgerError(Exception):
    """Base. ``words`` is one clear sentence for the person."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


class LedgerUnwritable(LedgerError):
    """The disk is full, the file is read-only, or another process held it too long. Nothing was stored;
    sending must stop and the text stays in the composer."""


class LedgerTooNew(LedgerError):
    """A newer version of the program wrote this file."""


class LedgerDamaged(LedgerError):
    """The file turned out to be damaged while in use; opening it again salvages it."""


class IllegalMove(LedgerError):
    """The transition table does not have this move, or not on this evidence. Nothing was stored."""

    def __init__(self, words: str, *, old: str = "", new: str = "", kind: str = "") -> None:
        super().__init__(words)
        self.old = old
        self.new = new
        self.kind = kind


class StaleAttempt(LedgerError):
    """Another process has begun an attempt, or settled the message, in the meantime."""


class NoSuchSend(LedgerError):
    """No message with this id."""
