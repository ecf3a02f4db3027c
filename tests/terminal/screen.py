"""A program in a pseudo-terminal with an emulated screen, as a person sees it."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pyte

KEYS = {
    "enter": "\r",
    "esc": "\x1b",
    "tab": "\t",
    "backspace": "\x7f",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "f1": "\x1bOP",
    "f2": "\x1bOQ",
    "f6": "\x1b[17~",
    "f7": "\x1b[18~",
    "f8": "\x1b[19~",
    "f9": "\x1b[20~",
    "ctrl+c": "\x03",
    "ctrl+g": "\x07",
    "ctrl+j": "\n",
    "ctrl+q": "\x11",
    "ctrl+r": "\x12",
    "ctrl+z": "\x1a",
}

# Sequences pyte does not know and would print as text.
_STRANGE = re.compile(
    r"\x1b(?:\[[<>=][0-9;:]*[a-zA-Z]|\[\?[0-9;]*\$[a-z]|\[[0-9;]*[ \"$'*]+[a-zA-Z]|\[\?[0-9;]*u"
    r"|[P_^X][^\x1b\x07]*(?:\x1b\\|\x07)|\][^\x07\x1b]*(?:\x07|\x1b\\))"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]P_^X][^\x07\x1b]*(?:\x1b)?)?$")
_MODE = re.compile(r"\x1b\[\?([0-9;]+)([hl])")

#: Private modes a program must not leave behind: mouse, focus, paste, alternate screen.
LASTING_MODES = frozenset({"1000", "1002", "1003", "1004", "1006", "1015", "1016", "1049", "2004"})


class Gone(AssertionError):
    """What was waited for did not come; the message shows the screen."""


class Terminal:
    """``argv`` runs at once in a terminal of ``size`` (columns, lines). Use as a context manager."""

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        size: tuple[int, int] = (100, 30),
    ) -> None:
        self.size = size
        self._screen = pyte.Screen(*size)
        self._stream = pyte.Stream(self._screen)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._changed = threading.Condition()
        self._listening = threading.Event()
        self._listening.set()
        self._hung_up = False
        self.raw = bytearray()
        self.modes: set[str] = set()
        self._master, self._slave = pty.openpty()
        self._set_size(*size)
        self.before = termios.tcgetattr(self._slave)
        self.process = subprocess.Popen(
            list(argv),
            env=dict(env),
            cwd=cwd,
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            preexec_fn=_own_terminal,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._slave)  # the reader sees the end
        self._reader.join(5)
        if not self._hung_up:
            os.close(self._master)

    # -- what it shows ------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        with self._changed:
            return self._text()

    def _text(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display)

    def wait(self, condition: str | Callable[[str], object], timeout: float = 60.0, what: str = "") -> str:
        """Wait until the screen holds a text, or makes a condition true; returns the screen's text."""
        met = condition if callable(condition) else (lambda text: condition in text)
        end = time.monotonic() + timeout
        over = False  # the program has ended, and what it wrote last has had time to come
        with self._changed:
            while True:
                text = self._text()
                if met(text):
                    return text
                left = end - time.monotonic()
                if left <= 0 or over:
                    name = what or (repr(condition) if isinstance(condition, str) else "the condition")
                    state = f"exit code {self.process.returncode}" if left > 0 else f"{timeout:.0f} s"
                    raise Gone(f"{name} did not show ({state}):\n{text}")
                ended = self.process.poll() is not None
                over = not self._changed.wait(min(left, 0.3)) and ended

    def wait_for(self, pattern: str, timeout: float = 60.0) -> re.Match[str]:
        """Wait for a regular expression (multi-line) on the screen."""
        found: list[re.Match[str]] = []

        def met(text: str) -> bool:
            match = re.search(pattern, text, re.MULTILINE)
            found[:] = [match] if match else []
            return bool(match)

        self.wait(met, timeout, what=f"/{pattern}/")
        return found[0]

    # -- what a person does -------------------------------------------------------------------------------

    def type(self, text: str) -> None:
        """Type ``text``, a key at a time, and wait until the last of it can be seen."""
        for char in text:
            os.write(self._master, char.encode())
        tail = text.rsplit("\n", 1)[-1][-12:].strip()
        if tail:
            self.wait(lambda screen: tail in screen.replace("\n", ""), what=f"the typed {tail!r}")

    def press(self, *keys: str) -> None:
        for key in keys:
            os.write(self._master, KEYS.get(key, key).encode())

    def say(self, text: str) -> None:
        """Type a message and send it."""
        self.type(text)
        self.press("enter")

    def leave(self) -> int:
        """Quit when the turn is over; the exit code."""
        self.wait("Ready")
        self.press("ctrl+q")
        return self.ended()

    def resize(self, columns: int, lines: int) -> None:
        with self._changed:
            self._screen.resize(lines, columns)
            self.size = (columns, lines)
        self._set_size(columns, lines)

    # -- the process --------------------------------------------------------------------------------------

    def kill(self) -> None:
        """``kill -9``; nothing of the program can react."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def hang_up(self) -> None:
        """The terminal goes: its window was closed, its ssh has died. The kernel tells the program."""
        self._hung_up = True
        self._reader.join(5)
        os.close(self._master)

    def ended(self, timeout: float = 60.0) -> int:
        """Wait for the program's end; its exit code."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Gone(f"It did not end within {timeout:.0f} s:\n{self.text}") from None
        with contextlib.suppress(termios.error):  # hung up
            termios.tcdrain(self._slave)
        return code

    def restored(self, timeout: float = 5.0) -> bool:
        """Whether the terminal is as it was before: no raw mode, no mouse reports, no alternate screen."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            now = termios.tcgetattr(self._slave)
            if now[:4] == self.before[:4] and not self.modes & LASTING_MODES:
                return True
            time.sleep(0.02)
        return False

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    @contextlib.contextmanager
    def unread(self) -> Iterator[None]:
        """Nobody reads what the program writes, as behind an ssh that hangs."""
        self._listening.clear()
        try:
            yield
        finally:
            self._listening.set()

    def _read(self) -> None:
        while not self._hung_up:
            self._listening.wait()
            try:
                if not select.select([self._master], [], [], 0.1)[0]:
                    continue
                data = os.read(self._master, 65536)
            except OSError:
                break
            if not data:
                break
            with self._changed:
                self.raw += data
                self._feed(data)
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def _feed(self, data: bytes) -> None:
        text = self._rest + self._decoder.decode(data)
        self._rest = ""
        cut = _UNFINISHED.search(text)
        if cut and len(text) - cut.start() < 100_000:
            self._rest, text = text[cut.start() :], text[: cut.start()]
        for match in _MODE.finditer(text):
            change = self.modes.update if match[2] == "h" else self.modes.difference_update
            change(match[1].split(";"))
        if "\x1b[6n" in text:
            os.write(self._master, f"\x1b[{self._screen.cursor.y + 1};{self._screen.cursor.x + 1}R".encode())
        try:
            self._stream.feed(_STRANGE.sub("", text))
        except Exception:  # pyte stumbles over rare sequences; the rest of the screen is still right
            self._stream = pyte.Stream(self._screen)


def _own_terminal() -> None:
    """Make the pseudo-terminal the controlling one, as a login does."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
