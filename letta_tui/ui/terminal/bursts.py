"""Pastes that arrive as keys.

Without bracketed paste a pasted text reaches the program as key presses, and each of its newlines looks
like Enter. The rule, without any timer: **an Enter with more text keys directly behind it in what one
read of the terminal returned is a newline of pasted text**, and so is every other key of that run. An
Enter at the very end of a read is a newline as well when the run already held one, or when the terminal
has more to say (the kernel's buffer cuts a long paste into several reads). What is left, an Enter that
ends what was read, is the key. A long run without any newline is handed over as one text too: that is
quick, and it is no typing. Reading both ways wrong is harmless on the one side only: text that was
meant to be sent stays in the composer, where it can be seen; so doubtful cases are text.
"""

from __future__ import annotations

from collections.abc import Iterable

from textual import events
from textual.message import Message

FULL_READ = 1024  # a read this long is taken as part of a paste that goes on
MANY = 24  # keys in one read that nobody has typed one by one

_NEWLINES = {"enter": "\n", "ctrl+j": "\n", "tab": "\t"}


def _text_of(event: Message) -> str | None:
    """The text a key stands for, or None when it is no text key."""
    if not isinstance(event, events.Key):
        return None
    if event.key in _NEWLINES:
        return _NEWLINES[event.key]
    if event.is_printable and event.character is not None:
        return event.character
    return None


def goes_on(made: list[Message], more: bool, read: int) -> bool:
    """Whether the next read may be the rest of a paste: ``made`` came of ``read`` bytes."""
    return read >= FULL_READ or (more and bool(made) and isinstance(made[-1], events.Paste))


def bundle(batch: Iterable[Message], *, more: bool, continues: bool) -> list[Message]:
    """Turn the runs of text keys in one read that hold a pasted newline into ``Paste`` events.

    ``more`` says that the terminal has more input waiting or the read was full; ``continues`` says that the
    read before this one ended in a paste that may go on (:func:`goes_on`): its last piece is still text.
    """
    result: list[Message] = []
    run: list[events.Key] = []
    text: list[str] = []

    def close(at_end: bool) -> None:
        if not run:
            return
        whole = "".join(text)
        body = whole.rstrip("\n")
        is_paste = "\n" in body or (len(whole) - len(body) > 1)
        if at_end and more and "\n" in whole:
            is_paste = True
        if continues and len(result) == 0 and len(whole) > 1:
            is_paste = True
        if is_paste:
            result.append(events.Paste(whole))
        elif len(body) >= MANY and "\t" not in body:
            result.append(events.Paste(body))
            result.extend(run[len(body) :])
        else:
            result.extend(run)
        run.clear()
        text.clear()

    for event in batch:
        piece = _text_of(event)
        if piece is None or not isinstance(event, events.Key):
            close(False)
            result.append(event)
        else:
            run.append(event)
            text.append(piece)
    close(True)
    return result
