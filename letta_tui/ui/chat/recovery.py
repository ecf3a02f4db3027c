"""Cards with choices: what became of messages, and questions only the person can answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message

from letta_tui.seam.state import Action, Choice, QuestionView, RecoveryView, SendView
from letta_tui.ui.chat.painted import Painted
from letta_tui.ui.clicks import Clickable, answer
from letta_tui.ui.keys import bindings, key_name
from letta_tui.ui.text.sanitise import one_line, safe
from letta_tui.ui.transcript.glyphs import DELIVERY

SHARE = 60
"""Percent of the screen that a card may take, as its style says."""
_COLOURS = {"pending": "$warning", "quiet": "$quiet", "bad": "$error", "good": "$success"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing a card asks about. ``text`` is what "copy" copies."""

    id: str
    lines: tuple[Content, ...]
    choices: tuple[Choice, ...]
    text: str = ""


class ChoiceCard(Vertical, can_focus=True):
    """A card that never takes the focus. Letters count once the person moved the focus here, a click where a
    choice had stood for a while (:mod:`letta_tui.ui.clicks`).

    ``choose(id, action)`` is called once per entry; a choice with a risk is asked about first, and only
    Enter, or a click on the words that say so, is a yes.
    """

    BINDINGS = bindings("recovery")

    FOCUS_ON_CLICK = False  # the words would change under the pointer; see ``on_click``

    DEFAULT_CSS = """
    ChoiceCard {
        height: auto; max-height: 60%; display: none; border: round $secondary; padding: 0 1;
        background: $surface;
        &:focus { border: heavy $secondary; }
        & Painted { height: auto; }
        & VerticalScroll { height: auto; max-height: 14; background: transparent; }
    }
    """

    class Gone(Message):
        """The card went away."""

        def __init__(self, card: ChoiceCard) -> None:
            super().__init__()
            self.card = card

    def __init__(
        self, widget_id: str, choose: Callable[[str, Action], None], copy: Callable[[str, str], None]
    ) -> None:
        super().__init__(id=widget_id)
        self._choose = choose
        self._copy = copy
        self._entries: tuple[Entry, ...] = ()
        self._head_words: tuple[Content, ...] = ()
        self._chosen: dict[str, Action] = {}  # asked for; the worker has not spoken yet
        self._asking: Choice | None = None
        self._at = 0
        self._crowded = False
        self._state = ""  # the subject, and what of the card is hidden
        self._head = Painted(f"{widget_id}-head")
        self._body = Painted(f"{widget_id}-body")
        self._foot_line = Painted(f"{widget_id}-foot")

    def compose(self) -> ComposeResult:
        yield self._head
        with VerticalScroll(can_focus=False):
            yield self._body
        yield self._foot_line

    def _fill(self, head: tuple[Content, ...], entries: tuple[Entry, ...]) -> None:
        current = self._entry.id if self._entry else ""
        old = {e.id: e for e in self._entries}
        # A changed entry is a new question: what was asked for before has been answered.
        self._chosen = {
            e.id: self._chosen[e.id] for e in entries if e.id in self._chosen and old.get(e.id) == e
        }
        self._entries, self._head_words = entries, head
        places = {e.id: n for n, e in enumerate(entries)}
        self._at = places.get(current, min(self._at, max(0, len(entries) - 1)))
        if current not in places:
            self._asking = None
        self.display = bool(head)
        if not head and self.has_focus:
            self.post_message(self.Gone(self))
        self._draw()

    @property
    def _subject(self) -> str:
        """What a key or a click answers: this message, with these choices."""
        entry = self._entry
        return "|".join([entry.id, *(c.key for c in entry.choices)]) if entry else ""

    @property
    def _entry(self) -> Entry | None:
        return self._entries[self._at] if self._at < len(self._entries) else None

    def crowd(self, crowded: bool) -> None:
        """``crowded``: something more urgent needs the room, so only the first line stays until the focus
        comes here."""
        if crowded != self._crowded:
            self._crowded = crowded
            self._draw()

    def _draw(self) -> None:
        folded = self._crowded and not self.has_focus
        # Where a fold or a question covered it, it is seen anew.
        hidden = "folded" if folded else self._asking.key if self._asking is not None else ""
        self._state = f"{hidden} {self._subject}"
        self._body.about(self._state)
        self._foot_line.about(self._state)
        self._head.about(self._subject)
        width = max(20, self.app.size.width - 5)
        body, top, end = self._rows(width - 1)
        foot = self._foot().wrap(width) if any(e.choices for e in self._entries) and not folded else []
        # A risk that is asked about must be seen whole, with its answers, also on a low terminal.
        asking = self._asking is not None
        head = self._wrapped(self._head_words[:1] if folded or asking else self._head_words, width)
        room = self._room(len(head), len(foot))
        if self.has_focus and len(body) > room:
            head = self._wrapped(self._head_words[:1], width)  # what is chosen from goes first
            room = self._room(len(head), len(foot))
        self._head.update(Content("\n").join(head))
        self._body.update(Content("\n").join(body))
        self._body.display = bool(body)
        self._foot_line.update(Content("\n").join(foot))
        self._foot_line.display = bool(foot)
        scroll = self.query_one(VerticalScroll)
        scroll.styles.max_height = room
        scroll.display = not folded
        if end > room:
            self.call_after_refresh(scroll.scroll_to, y=min(top, end - room), animate=False)

    def _room(self, head: int, foot: int) -> int:
        """Rows for what is between head and foot, so that nothing of the three is cut off."""
        height = self.app.size.height
        frame = 0 if self.screen.has_class("-low") else 2
        left = height * SHARE // 100 - frame - head - foot
        return max(3, min(14, left, 3 if self._crowded and height < 30 else 14))

    @staticmethod
    def _wrapped(lines: tuple[Content, ...], width: int) -> list[Content]:
        return [row for line in lines for row in _hanging(line, width)]

    def _rows(self, width: int) -> tuple[list[Content], int, int]:
        """What is asked about, and where the chosen entry begins and ends in it."""
        rows: list[Content] = []
        top = end = 0
        asking, several = self._asking is not None, len(self._entries) > 1
        for number, each in enumerate(self._entries):
            chosen = number == self._at
            if asking and not chosen:
                continue
            lines: list[Content] = []
            for first, line in enumerate(each.lines):
                mark = "▸ " if chosen and first == 0 and several else "  "
                words = Content.assemble((mark, "$primary"), line)
                lines.append(words if chosen else answer(words, f"entry {number}"))
            if each.id in self._chosen:
                lines.append(Content.styled("    one moment…", "$quiet"))
            elif chosen and not asking:
                lines += _choice_lines(each.choices, width, self.has_focus)
            made = self._wrapped(tuple(lines), width)
            if chosen:
                top, end = len(rows), len(rows) + len(made)
            rows += made
        return rows, top, end

    def _foot(self) -> Content:
        if self._asking is not None:
            yes = f"{one_line(self._asking.label, 60)} all the same"
            return Content.assemble(
                (safe(self._asking.risk) + "\n", "$warning"),
                answer(Content.assemble(("Enter ", "bold $primary"), (yes, "")), "yes"),
                "   ",
                answer(Content.assemble(("Esc ", "bold $primary"), ("no", "$quiet")), "escape"),
            )
        if not self.has_focus:
            words = Content.assemble(("Tab ", "bold $primary"), ("to choose", "$quiet"))
            return Content.assemble(answer(words, "take"), ("; writing goes on below", "$quiet"))
        more = [("↑↓ ", "bold $primary"), ("another one   ", "$quiet")] if len(self._entries) > 1 else []
        words = Content.assemble(("Esc ", "bold $primary"), ("later", "$quiet"))
        return Content.assemble(*more, answer(words, "escape"))

    def step_back(self) -> bool:
        """Take back the question whether a risk is meant; False when it was not asked."""
        asked, self._asking = self._asking is not None, None
        self._draw()
        return asked

    def on_resize(self) -> None:
        if self._head_words:
            self.call_after_refresh(self._draw)

    def action_choice(self, by: int) -> None:
        self._asking = None
        self._at = max(0, min(len(self._entries) - 1, self._at + by))
        self._draw()

    def watch_has_focus(self, has_focus: bool) -> None:
        super().watch_has_focus(has_focus)
        if not has_focus:
            self._asking = None
        self._draw()

    def on_key(self, event: events.Key) -> None:
        entry = self._entry
        if entry is None or entry.id in self._chosen:
            return
        if not self._head.seen(self._subject, event.time):
            return
        if event.key == "enter" and self._asking is not None:
            event.stop()
            choice, self._asking = self._asking, None
            self._go(entry, choice)
            return
        for choice in entry.choices:
            if event.character and event.character.lower() == choice.key.lower():
                event.stop()
                self._choose_or_ask(entry, choice)
                return

    def _choose_or_ask(self, entry: Entry, choice: Choice) -> None:
        if choice.risk:
            self._asking = choice
            self._draw()
        else:
            self._go(entry, choice)

    def on_click(self, event: events.Click) -> None:
        """Move here, where letters are answers: by a click that was meant for this card alone."""
        pressed: float = getattr(self.app, "press_time", 0.0)
        if self._head.stood(self._subject, pressed):
            self.screen.set_focus(self)

    def on_clickable_answered(self, event: Clickable.Answered) -> None:
        event.stop()
        name, entry = event.answer, self._entry
        if event.subject not in (self._subject, self._state):
            return
        if name == "take":
            self.screen.set_focus(self)
        elif name.startswith("entry "):
            self.screen.set_focus(self)
            self.action_choice(int(name.removeprefix("entry ")) - self._at)
        elif name == "yes":
            if self._asking is not None and entry is not None and entry.id not in self._chosen:
                choice, self._asking = self._asking, None
                self._go(entry, choice)
        elif name.startswith("choice "):
            found = [c for c in entry.choices if f"choice {c.key}" == name] if entry is not None else []
            if found and entry is not None and entry.id not in self._chosen:
                if found[0].risk:
                    self.screen.set_focus(self)  # there Enter and Esc answer the question that follows
                self._choose_or_ask(entry, found[0])
        else:
            self.app.simulate_key(name)

    def _go(self, entry: Entry, choice: Choice) -> None:
        if choice.action == "copy":
            self._copy(entry.text, "message")
        elif choice.action == "open_other":
            self._choose(entry.id, choice.action)  # a list comes up, and can be left
        else:
            self._chosen[entry.id] = choice.action
            self._choose(entry.id, choice.action)
        self._draw()


def _hanging(line: Content, width: int) -> list[Content]:
    """``line`` wrapped, what follows standing under the beginning of its words."""
    indent = len(line.plain) - len(line.plain.lstrip())
    if line.cell_length <= width:
        return [line]
    return [Content.assemble(" " * indent, row) for row in line[indent:].wrap(width - indent)]


def _choice_lines(choices: tuple[Choice, ...], width: int, keys: bool) -> list[Content]:
    """What risks nothing shares a line, so that a small terminal shows all; a risk has a line of its own.
    ``keys``: the letters work now."""
    lines: list[Content] = []
    for choice in choices:
        words = _clickable(choice, keys)
        if choice.risk:
            continue
        if lines and lines[-1].cell_length + 3 + words.cell_length <= width:
            lines[-1] = Content.assemble(lines[-1], "   ", words)
        else:
            lines.append(Content.assemble("    ", words))
    for choice in choices:
        if choice.risk:
            risk = (one_line(choice.risk, 200), "$warning")
            lines.append(Content.assemble("    ", _clickable(choice, keys), "  ", risk))
    return lines


def _clickable(choice: Choice, keys: bool) -> Content:
    key = (f"{choice.key} ", "bold $primary" if keys else "$quiet")
    words = Content.assemble(key, (one_line(choice.label, 80), ""))
    return answer(words, f"choice {choice.key}")


class RecoveryCard(ChoiceCard):
    """What is known about messages after a relaunch or a reconnect. Nothing is offered while checking."""

    def __init__(self, choose: Callable[[str, Action], None], copy: Callable[[str, str], None]) -> None:
        super().__init__("recovery", choose, copy)
        self.has_notes = False  # the card tells what happened, and can be put away

    def show(self, recovery: RecoveryView | None) -> None:
        self.has_notes = recovery is not None and bool(recovery.notes) and not recovery.checking
        if recovery is None:
            self._fill((), ())
            return
        glyph = "◌ " if recovery.checking else "◆ "
        head = [Content.assemble((glyph, "$secondary"), (one_line(recovery.title, 160), "bold"))]
        head += [Content.styled("  " + safe(note), "$quiet") for note in recovery.notes]
        if self.has_notes:
            words = Content.assemble((key_name("f6") + " ", "bold $primary"), ("puts this away", "$quiet"))
            head.append(Content.assemble("  ", answer(words, "f6")))
        entries = tuple(self._entry_of(s, recovery.checking) for s in recovery.sends)
        self._fill(tuple(head), entries)

    @staticmethod
    def _entry_of(send: SendView, checking: bool) -> Entry:
        glyph, _, _, style = DELIVERY[send.delivery]
        colour = _COLOURS.get(style, "$foreground")
        first = Content.assemble(
            (f"{glyph} ", colour),
            (one_line(send.word, 40) + "  ", f"bold {colour}"),
            ("“" + one_line(send.text, 60) + "”", ""),
        )
        lines = [first]
        if send.explanation:
            lines.append(Content.styled("  " + safe(send.explanation), "$quiet"))
        return Entry(send.client_message_id, tuple(lines), () if checking else send.choices, send.text)


class QuestionCard(ChoiceCard):
    """A decision only the person can take; it can be left and come back to."""

    def __init__(self, choose: Callable[[str, Action], None], copy: Callable[[str, str], None]) -> None:
        super().__init__("question", choose, copy)

    def show(self, question: QuestionView | None) -> None:
        if question is None:
            self._fill((), ())
            return
        head = [Content.assemble(("? ", "$warning"), (one_line(question.title, 160), "bold"))]
        body = tuple(Content(line) for line in safe(question.body).split("\n") if line)
        self._fill(tuple(head), (Entry(question.id, body, question.choices, question.body),))
