"""A terminal driver that knows which keys arrived together."""

from __future__ import annotations

import os
import selectors
from codecs import getincrementaldecoder
from threading import Event
from time import monotonic
from typing import Any

from textual import events
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from letta_tui.ui.prompt import Keys
from letta_tui.ui.terminal.bursts import FULL_READ, bundle, goes_on

_SHIFT_ENTER = "\x1b[13;2u"


def translate(data: str) -> str:
    """Spell every form of a newline key in the one that the parser knows.

    Terminals set up by hand for newlines send ``ESC CR``, which the parser would hold back and mangle;
    xterm's ``modifyOtherKeys`` has its own form. Neither occurs in a paste's text without being meant.
    """
    return data.replace("\x1b\r", _SHIFT_ENTER).replace("\x1b[27;2;13~", _SHIFT_ENTER)


class Bell(Event):
    """An event that ends a ``select`` on ``fileno`` too. Its pipe stays open as long as the process: a driver
    is closed whenever the terminal is left for a while, and goes on afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.fileno, self._end = os.pipe()

    def set(self) -> None:
        super().set()
        os.write(self._end, b"!")

    def clear(self) -> None:
        if self.is_set():
            os.read(self.fileno, 4096)
        super().clear()


class BurstDriver(LinuxDriver):
    """The usual driver; only the loop that reads differs, since only it knows what one read returned."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.exit_event = self._bell = Bell()

    def _sigcont_application(self, *arguments: object) -> None:
        """Go on after a stop; from the loop, since this may interrupt the very call that writes."""
        if self._auto_restart:
            self._loop.call_soon_threadsafe(self._enter_anew)

    def _enter_anew(self) -> None:
        """SIGSTOP, unlike Ctrl+Z, gave no chance to leave the terminal before.

        Entering it a second time would start a second thread that reads the keys: they came in another order,
        and the program did not end.
        """
        reader = self._key_thread
        if reader is not None and reader.is_alive():
            self.suspend_application_mode()
        self.resume_application_mode()

    def send_message(self, message: Message) -> None:
        """From the thread that reads to the application; Textual's own way takes a task for each message."""
        if isinstance(message, events.Key):
            keys: Keys | None = getattr(self._app, "keys", None)
            if keys is not None:
                keys.read(message.time)
        self._loop.call_soon_threadsafe(self._app.post_message, message)

    def run_input_thread(self) -> None:
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")(errors="replace").decode
        selector = selectors.SelectSelector()
        selector.register(self.fileno, selectors.EVENT_READ)
        selector.register(self._bell.fileno, selectors.EVENT_READ)
        continues = False
        try:
            while not self.exit_event.is_set():
                ready = [key.fd for key, _ in selector.select(_patience(parser))]
                if self.fileno in ready:
                    raw = os.read(self.fileno, 4096)
                    if not raw:
                        break
                    more = len(raw) >= FULL_READ or _has_more(selector, self.fileno)
                    batch = list(parser.feed(translate(decode(raw))))
                    made = bundle(batch, more=more, continues=continues)
                    for event in made:
                        self.process_message(event)
                    continues = goes_on(made, more, len(raw))
                for event in parser.tick():
                    self.process_message(event)
        finally:
            selector.close()


def _patience(parser: XTermParser) -> float | None:
    """How long the parser can wait: a lone escape is a key after a moment. Nothing else wakes the thread."""
    until = parser._timeout_time
    return None if until is None else max(0.0, until - monotonic())


def _has_more(selector: selectors.BaseSelector, terminal: int) -> bool:
    return any(key.fd == terminal for key, _ in selector.select(0))
