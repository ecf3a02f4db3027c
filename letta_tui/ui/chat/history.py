"""Earlier messages, walked through with the arrow keys."""

from __future__ import annotations


class History:
    """Texts that were sent or put away, oldest first, and a place in them.

    The draft that was being written when the walk began is the newest entry for the length of the walk,
    so that walking back always finds it.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._place: int | None = None
        self._draft = ""

    def add(self, text: str) -> None:
        """Remember ``text`` as the newest; ends a walk."""
        self._place = None
        if text.strip() and (not self._texts or self._texts[-1] != text):
            self._texts.append(text)

    def seed(self, texts: list[str]) -> None:
        """Put ``texts`` (oldest first) before everything known, leaving out what is known already."""
        known = set(self._texts)
        self._texts = [t for t in dict.fromkeys(texts) if t.strip() and t not in known] + self._texts

    def forget(self) -> None:
        """Empty it: another conversation is on the screen."""
        self._texts = []
        self._place = None

    def back(self, draft: str) -> str | None:
        """The text before the present one, or None at the beginning."""
        if self._place is None:
            if not self._texts:
                return None
            self._draft = draft
            self._place = len(self._texts)
        if self._place == 0:
            return None
        self._place -= 1
        return self._texts[self._place]

    def forth(self) -> str | None:
        """The text after the present one, in the end the draft; None when no walk is going on."""
        if self._place is None:
            return None
        self._place += 1
        if self._place >= len(self._texts):
            self._place = None
            return self._draft
        return self._texts[self._place]

    def stop(self) -> None:
        """The person edited what was found: it is the draft now."""
        self._place = None
