"""Make text from outside harmless for a terminal: the one place for it.

What a model, a tool or a server sends is data. There are two ways, by what it is read for:

* To be **read** (:class:`Sanitiser`, :func:`clean`): escape sequences are taken out, other control characters
  become visible pictures, and characters that reorder, hide or smuggle text are dropped or shown as U+FFFD.
  The result holds no control character but ``\\n`` and ``\\t`` (tabs are expanded where columns are known),
  and never depends on how the text was cut into pieces.
* To be **judged** (:func:`safe`: a command that waits to be allowed, a name, an address): nothing is left
  out, and what could hide something is shown in its place.
"""

from __future__ import annotations

import re
import unicodedata

REPLACEMENT = "\ufffd"
_MAX_SEQUENCE = 128  # characters of a CSI sequence; a longer one was none
_MAX_STRING = 8192  # characters of an OSC/DCS/… string; a longer one was none
_MAX_MARKS = 4  # combining marks on one character

# Plain text that needs no look at all. Everything else goes through the machine below.
_CLEAN = re.compile(r"[\n\t\x20-\x7e\u00a0-\u00ac\u00ae-\u02ff]*")
_CLEAN_RUN = re.compile(r"[\n\t\x20-\x7e\u00a0-\u00ac\u00ae-\u02ff\u0370-\u0482\u3040-\u30fe\u4e00-\u9fff]+")

_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_NEWLINES = frozenset("\x0b\x0c\x85\u2028\u2029")
_DROPPED = frozenset(
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060\u3164\ufeff\uffa0\ufe0e"
) | frozenset(
    map(chr, [*range(0x180B, 0x180E), *range(0x2061, 0x2066), *range(0x206A, 0x2070), *range(0xFE00, 0xFE0F)])
)
_JOINER = "\u200d"
_NON_JOINER = "\u200c"
_VS16 = "\ufe0f"
_STRING_INTRODUCERS = {"]": "osc", "P": "dcs", "X": "sos", "^": "pm", "_": "apc"}
_C1_STRINGS = frozenset("\x9d\x90\x98\x9e\x9f")


class Sanitiser:
    """Takes text in pieces of any size; gives back what can be shown.

    It holds back at most an unfinished escape sequence or joiner; :meth:`close` ends it.
    """

    __slots__ = ("_held", "_last", "_marks", "_state")

    def __init__(self) -> None:
        self._state = "text"
        self._held = ""  # the sequence so far; never shown unless it turns out to be none
        self._last = ""  # the character last put out
        self._marks = 0

    def feed(self, text: str) -> str:
        """The harmless form of ``text``, given what came before."""
        if self._state == "text" and not self._held and _CLEAN.fullmatch(text):
            if text:
                self._last = text[-1]
                self._marks = 0
            return text
        out: list[str] = []
        index, end = 0, len(text)
        while index < end:
            if self._state == "text" and not self._held:
                run = _CLEAN_RUN.match(text, index)
                if run is not None:
                    out.append(run.group())
                    index = run.end()
                    self._last = text[index - 1]
                    self._marks = 0
                    continue
            char = text[index]
            index += 1
            self._step(char, out)
        return "".join(out)

    def close(self) -> str:
        """End of the text: what was held back and turns out to be text after all (usually nothing)."""
        self._state, self._held = "text", ""
        return ""

    def _step(self, char: str, out: list[str]) -> None:
        state = self._state
        if state == "text":
            if self._held:
                self._after_held(char, out)
            else:
                self._plain(char, out)
        elif state == "esc":
            self._after_escape(char, out)
        elif state == "csi":
            self._in_csi(char, out)
        elif state == "nf":
            if not "\x20" <= char <= "\x2f":
                self._state = "text"
                if not "\x30" <= char <= "\x7e":
                    self._step(char, out)
        else:
            self._in_string(char, out)

    def _after_held(self, char: str, out: list[str]) -> None:
        """After a carriage return or a joiner, whose meaning depends on what follows."""
        held, self._held = self._held, ""
        if held == "\r":
            self._put("\n", out)
            if char == "\n":
                return
        elif ord(char) > 0x7F and unicodedata.category(char)[0] in "LSM":
            # A joiner or non-joiner between characters that can be joined: part of the writing.
            out.append(held)
        self._step(char, out)

    def _plain(self, char: str, out: list[str]) -> None:
        code = ord(char)
        if char in "\n\t" or 0x20 <= code < 0x7F:
            self._put(char, out)
        elif char == "\x1b":
            self._state = "esc"
        elif char == "\r":
            self._held = char
        elif char in _NEWLINES:
            self._put("\n", out)
        elif code < 0x20:
            self._put(chr(0x2400 + code), out)
        elif code == 0x7F:
            self._put("\u2421", out)
        elif code < 0xA0:
            if char == "\x9b":
                self._state, self._held = "csi", ""
            elif char in _C1_STRINGS:
                self._state, self._held = "string", ""
            else:
                self._put(REPLACEMENT, out)
        elif char in _BIDI:
            self._put(REPLACEMENT, out)
        elif char in _DROPPED or 0xE0000 <= code <= 0xE0FFF:
            return
        elif char in (_JOINER, _NON_JOINER):
            if self._last and ord(self._last) > 0x7F and self._last != _JOINER:
                self._held = char
        elif char == _VS16:
            if self._last and (ord(self._last) > 0x7F or self._last in "#*0123456789"):
                self._mark(char, out)
        elif 0xD800 <= code < 0xE000 or code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF:
            self._put(REPLACEMENT, out)
        elif unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me"):
            self._mark(char, out)
        elif unicodedata.category(char) == "Cf":
            return
        else:
            self._put(char, out)

    def _put(self, char: str, out: list[str]) -> None:
        out.append(char)
        self._last = char
        self._marks = 0

    def _mark(self, char: str, out: list[str]) -> None:
        """A mark on the character before it; towers of marks are cut."""
        if not self._last or self._last in "\n\t":
            self._put("\u25cc", out)
        self._marks += 1
        if self._marks <= _MAX_MARKS:
            out.append(char)

    def _after_escape(self, char: str, out: list[str]) -> None:
        self._held = ""
        if char == "[":
            self._state = "csi"
        elif char in _STRING_INTRODUCERS:
            self._state = "string"
        elif "\x20" <= char <= "\x2f":
            self._state = "nf"
        else:
            self._state = "text"
            if char == "\x1b" or not "\x30" <= char <= "\x7e":
                # A lone escape before something that cannot follow one.
                self._put("\u241b", out)
                self._step(char, out)

    def _in_csi(self, char: str, out: list[str]) -> None:
        if "\x20" <= char <= "\x3f" and len(self._held) < _MAX_SEQUENCE:
            self._held += char
            return
        held, self._held, self._state = self._held, "", "text"
        if "\x40" <= char <= "\x7e":
            return
        self._put("\u241b", out)
        for each in "[" + held:
            self._put(each, out)
        self._step(char, out)

    def _in_string(self, char: str, out: list[str]) -> None:
        """Inside OSC, DCS and the like: gone up to its end. An unended one stops at a line's end."""
        if char in ("\x07", "\x9c"):
            self._state, self._held = "text", ""
        elif self._held.endswith("\x1b"):
            self._state, self._held = "text", ""
            if char != "\\":
                self._state = "esc"
                self._after_escape(char, out)
        elif char in "\r\n" or len(self._held) >= _MAX_STRING:
            self._state, self._held = "text", ""
            self._step(char, out)
        else:
            self._held += char


def clean(text: str) -> str:
    """The harmless form of a whole text."""
    if _CLEAN.fullmatch(text):
        return text
    sanitiser = Sanitiser()
    return sanitiser.feed(text) + sanitiser.close()


def clean_line(text: str) -> str:
    """The harmless form of ``text`` on one line: line ends and tabs become single spaces."""
    return " ".join(clean(text).split())


_TO_SHOW = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\U000e0000-\U000e0fff"
    + "".join(map(re.escape, sorted(_BIDI | _DROPPED | _NEWLINES)))
    + "]"
)


def _picture(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else REPLACEMENT


def safe(text: str) -> str:
    """``text`` with everything that hides, reorders or controls shown in its place; newlines stay."""
    return _TO_SHOW.sub(_picture, text.replace("\r\n", "\n").replace("\t", "    "))


def one_line(text: str, limit: int = 200) -> str:
    """``text``, made :func:`safe`, on a single line of at most ``limit`` characters."""
    flat = " ".join(safe(text[: limit * 4]).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
