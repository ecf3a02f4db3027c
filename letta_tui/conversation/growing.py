"""A text that grows by stream fragments and is corrected by history, neither doubling nor dropping a piece.

History gives the text so far, without a position in the stream. Three situations:

* the fragments are known from the text's first character on: then both are prefixes of the same text
  and the longer one is right; what history is ahead by is skipped when its fragments come;
* the fragments begin somewhere in the middle (joined or reconnected during a turn): history's text ends
  between two of them; the last possible place is taken, since history is read after the request was sent;
* the text had ended before history was asked for: history is right, whatever the stream said.
"""

from __future__ import annotations


class GrowingText:
    """``text`` is what may be shown. All lengths are characters; clocks are the transcript's counter."""

    __slots__ = ("_fragments", "_marks", "_shown", "_skip", "held", "whole")

    def __init__(self, text: str = "", *, whole: bool = True, held: bool = False) -> None:
        self._shown: list[str] = [text] if text else []
        self._fragments: list[str] = [text] if text else []
        self._marks: list[int] = [0] if text else []
        self._skip = ""
        self.whole = whole  # the fragments begin at the text's first character, without a gap
        self.held = held  # fragments are kept back until history or :meth:`release`

    @property
    def text(self) -> str:
        if len(self._shown) > 1:
            self._shown = ["".join(self._shown)]
        return self._shown[0] if self._shown else ""

    def append(self, fragment: str, clock: int) -> str:
        """Take a fragment; returns what it adds to the shown text."""
        self._fragments.append(fragment)
        self._marks.append(clock)
        if self.held:
            return ""
        added = fragment
        if self._skip:
            skip = self._skip
            if skip.startswith(fragment):
                self._skip = skip[len(fragment) :]
                return ""
            self._skip = ""
            if fragment.startswith(skip):
                added = fragment[len(skip) :]
        if added:
            self._shown.append(added)
        return added

    def broken(self) -> None:
        """The connection was lost: pieces may be missing until history is merged."""
        self._fragments, self._marks, self._skip = [], [], ""
        self.whole, self.held = False, True

    def gap(self) -> None:
        """Fragments before the next one are known to be missing; what is shown goes on growing."""
        self._fragments, self._marks, self._skip = [], [], ""
        self.whole = False

    def release(self) -> None:
        """History does not hold this text: show what is there."""
        if self.held:
            self.held = False
            self._shown.extend(self._fragments)
            self._set(self.text)

    def merge(self, history: str, asked: int, *, final: bool) -> None:
        """Take history's text, asked for at ``asked``; ``final``: the text had ended by then."""
        self.held = False
        received = "".join(self._fragments)
        if final or not received:
            self._set(history)
        elif self.whole:
            self._merge_whole(history, received)
        else:
            self._merge_joined(history, received, asked)

    def _merge_whole(self, history: str, received: str) -> None:
        if received.startswith(history):
            self._set(received)
        elif history.startswith(received):
            self._ahead(history, len(received))
        else:
            # The stream lost something: go on from where history's end is in it, if it is.
            tail = history[-48:]
            at = received.rfind(tail) if tail else -1
            self._set(history + received[at + len(tail) :] if at >= 0 else history)

    def _merge_joined(self, history: str, received: str, asked: int) -> None:
        end = len(received)
        clocks = self._marks
        for number in range(len(self._fragments), 0, -1):
            if _ends_with(history, received, end):
                self._set(history + received[end:])
                return
            if clocks[number - 1] <= asked and number < len(self._fragments) and _inside(history, received):
                break
            end -= len(self._fragments[number - 1])
        at = history.rfind(received)
        if at >= 0:
            self._ahead(history, at + len(received))
        else:
            self._set(history + received)

    def _ahead(self, history: str, known: int) -> None:
        """History holds more than was received: its surplus is skipped when its fragments come."""
        surplus = history[known:]
        self._set(history)
        self._fragments = [history[:known]] if known else []
        self._marks = [0] * len(self._fragments)
        self._skip = surplus

    def _set(self, text: str) -> None:
        self._shown = [text] if text else []
        self._fragments = [text] if text else []
        self._marks = [0] * len(self._fragments)
        self._skip = ""
        self.whole = True


def _ends_with(history: str, received: str, end: int) -> bool:
    """Whether ``history`` ends with ``received[:end]``, cheap when it does not."""
    start = len(history) - end
    if start < 0 or history[start] != received[0] or history[-1] != received[end - 1]:
        return False
    return history.endswith(received[:end])


def _inside(history: str, received: str) -> bool:
    return received in history
