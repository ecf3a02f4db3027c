"""The three quiet lines around a conversation: who it is, how it is, and which keys work."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from textual.content import Content
from textual.widget import Widget

from letta_tui.seam.state import ConnectionView, StatusView
from letta_tui.ui.chat.doing import Contact, doing
from letta_tui.ui.clicks import Clickable, answer
from letta_tui.ui.keys import KEYS, key_name
from letta_tui.ui.text.lines import cells
from letta_tui.ui.text.sanitise import one_line
from letta_tui.ui.times import elapsed

_DOTS = {"ready": "●", "lost": "○", "failed": "✗", "closed": "○"}
_COLOURS = {"ready": "$success", "lost": "$warning", "failed": "$error", "closed": "$quiet"}
_SOMETIMES = (
    "chord_allow",
    "chord_deny",
    "take_card",
    "details",
    "resume_queue",
    "put_away",
    "jump_left",
    "reconnect",
)
_BAR = sorted((k for k in KEYS if k.bar), key=lambda k: (k.action != "help", k.action not in _SOMETIMES))
"""The key bar's order: help, then what works only now, then what always does."""
MODE_WORDS = {
    "standard": "asks first",
    "acceptEdits": "edits without asking",
    "unrestricted": "UNRESTRICTED",
    "strict": "asks for everything",
}


def fit(left: Content, right: Content, width: int) -> Content:
    """``left`` and ``right`` at the ends of ``width`` columns; ``left`` gives way."""
    room = width - right.cell_length - 1
    if room < 8:
        return left.truncate(width, ellipsis=True)
    if left.cell_length > room:
        left = left.truncate(room, ellipsis=True)
    return Content.assemble(left, " " * (width - left.cell_length - right.cell_length), right)


def short_folder(path: str, limit: int = 28) -> str:
    """A folder as a person says it: home as ``~``, the beginning cut when it is long."""
    if not path:
        return ""
    text = path
    try:
        home = str(Path.home())
    except RuntimeError:
        home = ""
    if home and (path == home or path.startswith(home + "/")):
        text = "~" + path[len(home) :]
    text = one_line(text, 300)
    if cells(text) <= limit:
        return text
    end = text[-(limit - 1) :]
    whole = end.find("/")  # whole names say more than one letter more does
    return "…" + (end[whole:] if 0 < whole < len(end) - 1 else end)


def as_of(when: float, now: float) -> str:
    """How old a remembered transcript is: the time of day, with the date unless it is today's."""
    then, today = (datetime.fromtimestamp(clock).astimezone() for clock in (when, now))
    day = "" if then.date() == today.date() else f"{then.day} {then:%b}, "
    return f"As of {day}{then:%H:%M}"


class Bar(Widget):
    """One line of text."""

    DEFAULT_CSS = "Bar { height: 1; padding: 0 1; text-wrap: nowrap; }"

    def line(self, width: int) -> Content:
        return Content("")

    def render(self) -> Content:
        return self.line(max(1, self.size.width - 2))


class HeaderBar(Bar):
    """Agent and conversation on the left, the connection in honest words on the right."""

    DEFAULT_CSS = "HeaderBar { background: $surface; }"

    def __init__(self) -> None:
        super().__init__(id="header")
        self.status = StatusView()
        self.connection = ConnectionView("starting", "Starting…")

    def line(self, width: int) -> Content:
        status, link = self.status, self.connection
        agent = one_line(status.agent_name, 40)
        title = one_line(status.conversation_title, 80)
        left = Content.assemble(
            ((agent or "letta-tui") + "  ", "bold $foreground"),
            (title, "$quiet"),
        )
        limit = max(12, width * 3 // 5)
        words = one_line(link.words, 120)
        if link.phase == "ready" and cells(words) > limit - 18:
            words = "Connected"  # the whole sentence is for wide terminals and trouble
        if link.phase == "ready" and (link.held or link.goes_on):
            words = f"{words.rstrip('.')} · safe to close"
        colour = _COLOURS.get(link.phase, "$warning")
        right = Content.assemble(
            (_DOTS.get(link.phase, "◌") + " ", colour),
            (words, "$quiet" if link.phase == "ready" else colour),
        )
        if right.cell_length > limit:
            right = right.truncate(limit, ellipsis=True)
        return fit(left, right, width)


class StatusBar(Bar):
    """What is going on on the left, under which circumstances on the right."""

    def __init__(self) -> None:
        super().__init__(id="status")
        self.status = StatusView()
        self.can_send = False
        self.contact = Contact()
        self.now = 0.0
        self.new_below = False
        self.selected = False  # text was selected with the mouse
        self.esc_stops = True  # Esc would stop the turn, and not leave a card or a search
        self.as_of: float | None = None  # the rows come from this computer's memory and are as old as this

    def activity(self) -> Content:
        status = self.status
        if status.activity == "idle" and self.as_of is not None:
            # Here and in no line of its own: one that goes away would move what is being read.
            return Content.styled(as_of(self.as_of, self.now), "$warning")
        words = doing(status.activity, one_line(status.activity_words, 60), self.contact)
        if status.activity == "idle":
            return Content.styled(words if self.can_send else "", "$quiet")  # "Ready" would be untrue
        if not self.contact.live:
            return Content.styled(f"▪ {words}", "$warning")  # no clock: nobody knows how long it goes on
        colour = "$accent" if status.activity == "approval" else "$primary"
        if status.activity in ("cancelling", "retrying"):
            colour = "$warning"
        parts: list[Content | tuple[str, str]] = [("▪ ", colour), (words + " ", colour)]
        if status.turn_started is not None:
            parts.append((f"{elapsed(self.now - status.turn_started)}  ", "$quiet"))
        if status.activity not in ("cancelling", "idle") and self.esc_stops:
            parts.append(("Esc stops", "$quiet"))
        return Content.assemble(*parts)

    def line(self, width: int) -> Content:
        status = self.status
        activity = self.activity()
        if self.new_below:
            activity = Content.assemble(activity, "  " if activity else "", ("↓ more below", "$accent"))
        if self.selected:
            activity = Content.assemble(activity, "  " if activity else "", ("Ctrl+C copies", "$accent"))
        facts: list[tuple[str, str]] = []
        if status.mode == "unrestricted":
            facts.append((" UNRESTRICTED ", "bold $background on $error"))
        elif status.mode:
            facts.append((MODE_WORDS.get(status.mode, one_line(status.mode, 20)), "$quiet"))
        if status.model:
            facts.append((one_line(status.model, 32).rpartition("/")[2] or status.model, "$quiet"))
        if status.cwd:
            facts.append((short_folder(status.cwd, 24 if width < 100 else 40), "$quiet"))
        if status.tokens is not None and width >= 100:
            facts.append((f"{status.tokens / 1000:.1f}k tokens", "$quiet"))
        # The mode is the fact that must never be cut away; the others leave from the end.
        while True:
            pieces: list[tuple[str, str]] = []
            for number, fact in enumerate(facts):
                if number:
                    pieces[-1] = (pieces[-1][0] + " ", pieces[-1][1])
                    pieces.append(("· ", "$border"))
                pieces.append(fact)
            right = Content.assemble(*pieces) if pieces else Content("")
            if len(facts) <= 1 or right.cell_length + activity.cell_length + 2 <= width:
                return fit(activity, right, width)
            facts.pop()


class KeyBar(Bar, Clickable):
    """The keys that do something now, from the bindings that are active; a click is as good as a key.

    ``subject`` names the tool call that F8 and F9 answer.
    """

    DEFAULT_CSS = "KeyBar { background: $surface; }"

    def __init__(self, subject: Callable[[], str]) -> None:
        super().__init__(id="keys")
        self._subject = subject

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.refresh())

    def line(self, width: int) -> Content:
        self.spots.about(self._subject())
        active = self.screen.active_bindings
        parts: list[Content | str] = []
        at = 0
        for key in _BAR:
            first = key.keys.split(",")[0]
            found = active.get(first)
            if found is None or found.binding.action != key.action or not found.enabled:
                continue
            name = key_name(first)
            needed = cells(name) + 1 + cells(key.bar) + (2 if parts else 0)
            if at + needed > width:
                break
            if parts:
                parts.append("  ")
            parts.append(answer(Content.assemble((name + " ", "$primary"), (key.bar, "$quiet")), first))
            at += needed
        return Content.assemble(*parts) if parts else Content("")
