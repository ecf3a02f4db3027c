"""What is being written, kept on disk as it is typed; what the disk does not take is tried again."""

from __future__ import annotations

from dataclasses import dataclass

from letta_tui.ledger.errors import LedgerError
from letta_tui.ledger.values import Place
from letta_tui.worker.desk import Desk

AGAIN = 5.0  # seconds between two attempts


@dataclass(frozen=True, slots=True)
class _Unsaved:
    text: str
    since: float  # wall clock
    why: str


class Drafts:
    """The drafts of this window, one for each conversation it shows."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._unsaved: dict[Place, _Unsaved] = {}
        self._tried = 0.0  # monotonic

    def save(self, text: str) -> None:
        """Never raises: nothing is refused because of it, and the person is told once."""
        if self._desk.place is not None:
            self._save(self._desk.place, text, self._desk.now())

    def tick(self) -> None:
        if self._unsaved and self._desk.config.hands.mono() - self._tried >= AGAIN:
            self._again()

    def lost(self) -> str:
        """For the way out: in words, with their text, what would be gone with this window; "" for nothing."""
        self._again()
        texts = [unsaved.text for unsaved in self._unsaved.values() if unsaved.text.strip()]
        if not texts:
            return ""
        why = next(unsaved.why for unsaved in self._unsaved.values() if unsaved.text.strip())
        return "\n\n".join([f"Your draft could not be saved. {why} It was:", *map(_harmless, texts)])

    def _again(self) -> None:
        for place, unsaved in tuple(self._unsaved.items()):
            try:
                stored = self._desk.ledger.draft(self._desk.config.window_id, place)
            except LedgerError:
                stored = None
            if stored is not None and stored.saved.wall > unsaved.since:
                del self._unsaved[place]  # a message came back into it meanwhile
            else:
                self._save(place, unsaved.text, unsaved.since)

    def _save(self, place: Place, text: str, since: float) -> None:
        self._tried = self._desk.config.hands.mono()
        try:
            self._desk.ledger.save_draft(self._desk.config.window_id, place, text)
        except LedgerError as error:
            if text.strip() and not self._unsaved:
                self._desk.tell(f"Your draft is on the screen only, it is not saved. {error.words}", "error")
            self._unsaved[place] = _Unsaved(text, since, error.words)
            return
        if self._unsaved.pop(place, None) is not None and not self._unsaved:
            self._desk.tell("Your draft is saved again.")


def _harmless(text: str) -> str:
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\u{ord(c):04x}" for c in text)
