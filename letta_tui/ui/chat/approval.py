"""The card of a tool call that waits for a person.

It never takes the focus. A decision is made in one of three ways:

* by a chord that cannot be text (F8, F9), if the card was painted before the key was pressed;
* by a letter, after the person moved the focus to this very card (Tab, F7 or a click) while it was
  painted. The next card has to be taken up again: a key held down or pressed twice decides one call;
* by a click on a visible answer, which must have stood there for a while (:mod:`letta_tui.ui.clicks`).

A pause in typing is not consent: no key counts because of the time that has passed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from letta_tui.seam.intents import Decide, Intent
from letta_tui.seam.state import ApprovalView
from letta_tui.ui.chat.painted import Painted
from letta_tui.ui.clicks import Clickable, answer
from letta_tui.ui.diff import approval_lines
from letta_tui.ui.field import Field
from letta_tui.ui.keys import bindings
from letta_tui.ui.text.sanitise import one_line, safe

Behavior = Literal["allow", "deny"]


def _keys(keys: list[tuple[str, str, str]]) -> Content:
    """Keys, what they do, and the answer that a click on them gives, in one line."""
    parts: list[Content | str] = []
    for key, words, name in keys:
        parts += [answer(Content.assemble((key + " ", "bold $primary"), (words, "$quiet")), name), "   "]
    return Content.assemble(*parts)


class ApprovalDock(Vertical, can_focus=True):
    """Shows one call at a time, "2 of 4". ``send`` takes the decision."""

    BINDINGS = bindings("approval")

    FOCUS_ON_CLICK = False  # the words would change under the pointer; see ``on_click``

    DEFAULT_CSS = """
    ApprovalDock {
        height: auto; max-height: 60%; display: none; border: round $accent; padding: 0 1;
        background: $surface;
        &:focus { border: heavy $accent; }
        & #approval-head { height: auto; max-height: 2; }
        & #approval-body { height: auto; max-height: 12; scrollbar-size-vertical: 1;
                          background: transparent; }
        & #approval-lines { height: auto; }
        & #approval-foot { height: auto; max-height: 8; }
        & Field { display: none; }
        &.-reason Field { display: block; }
    }
    """

    class Gone(Message):
        """The last card went away."""

    def __init__(self, send: Callable[[Intent], None]) -> None:
        super().__init__(id="approval")
        self._send = send
        self._items: tuple[ApprovalView, ...] = ()
        self._answered: dict[str, Behavior] = {}  # decided here, the worker has not spoken yet
        self._under_way: set[str] = set()  # the worker has said that it takes the decision there
        self._taken = ""  # the call the person moved the focus to
        self._spent_chord = ""  # the chord that decided last, with no other key since
        self._reason_for: ApprovalView | None = None
        self._head = Painted("approval-head")
        self._foot_line = Painted("approval-foot")

    def compose(self) -> ComposeResult:
        yield self._head
        with VerticalScroll(id="approval-body", can_focus=False):
            yield Static("", markup=False, id="approval-lines")
        yield Field(placeholder="Why not?", id="reason")
        yield self._foot_line

    # -- state

    @property
    def current(self) -> ApprovalView | None:
        """The call that is shown: the first that can be decided, else the first that is being decided."""
        if self._reason_for is not None:
            return self._reason_for
        open_ones = [i for i in self._items if self._open(i)]
        if open_ones:
            return open_ones[0]
        return self._items[0] if self._items else None

    @property
    def subject(self) -> str:
        """The call that an answer would be for."""
        return self.current.request_id if self.current is not None else ""

    def _open(self, item: ApprovalView) -> bool:
        return item.state != "deciding" and item.request_id not in self._answered

    @property
    def waiting(self) -> bool:
        return any(self._open(i) for i in self._items)

    @property
    def takes_chords(self) -> bool:
        """A chord would answer a call: not while the reason of a denial is being written."""
        return self.waiting and self._reason_for is None

    @property
    def needs_taking(self) -> bool:
        """The focus is here, but on a call that the person has not taken up."""
        item = self.current
        return (
            item is not None
            and self._reason_for is None
            and self._open(item)
            and self._taken != item.request_id
        )

    def show(self, items: tuple[ApprovalView, ...]) -> None:
        for item in items:
            # Pending again: the decision was lost on its way, or what became of it is not known.
            again = item.state == "pending" and item.request_id in self._under_way
            if item.state == "refused" or again:
                self._answered.pop(item.request_id, None)
        self._under_way = {item.request_id for item in items if item.state == "deciding"}
        known = {i.request_id for i in items}
        self._answered = {k: v for k, v in self._answered.items() if k in known}
        self._items = items
        self._update()

    def _update(self) -> None:
        item = self.current
        had_focus = self.has_focus_within
        self.display = item is not None
        if item is None:
            self._head.about("")
            self._foot_line.about("")
            self._taken = ""
            if had_focus:
                self.post_message(self.Gone())
            return
        self._head.about(item.request_id)
        self._foot_line.about(item.request_id)
        width = max(20, self.app.size.width - 6)
        count = f"{item.position} of {item.total}" if item.total > 1 else ""
        head = Content.assemble(
            ("▲ ", "$accent"),
            (one_line(item.tool_name, 40) + "  ", "bold $accent"),
            (count + "  " if count else "", "bold"),
            (one_line(item.headline.removeprefix(f"{item.tool_name} "), 160), "$foreground"),
        )
        self._head.update(head)
        height = self.app.size.height
        room = 12 if height >= 30 else height // 4
        room = max(2, room - max(0, len(item.suggestions) - 1))  # the answers must stay to be seen
        self.query_one("#approval-body").styles.max_height = room
        lines = approval_lines(item, width)
        self.query_one("#approval-lines", Static).update(Content("\n").join(lines))
        self._foot_line.update(self._foot(item, len(lines) > room))

    def _foot(self, item: ApprovalView, more: bool) -> Content:
        lines: list[Content] = []
        if item.note:
            colour = "$error" if item.state == "refused" else "$quiet"
            lines.append(Content.styled(safe(item.note), colour))
        if self._reason_for is not None:
            gone = all(i.request_id != item.request_id for i in self._items)
            if gone:
                lines.append(
                    Content.styled("This call no longer waits for an answer. Esc closes this.", "$warning")
                )
            else:
                lines.append(_keys([("Enter", "deny with this reason", "enter"), ("Esc", "back", "escape")]))
            return Content("\n").join(lines)
        if not self._open(item):
            done = {"allow": "Allowed", "deny": "Denied"}.get(
                self._answered.get(item.request_id, ""), "Answered"
            )
            lines.append(Content.styled(f"{done}; waiting for the server's word…", "$quiet"))
            return Content("\n").join(lines)
        taken = self.has_focus and not self.needs_taking
        for number, suggestion in enumerate(item.suggestions[:9], 1):
            key = (f"{number} ", "bold $primary" if taken else "$quiet")  # no key yet, but to be clicked
            words = Content.assemble(key, (one_line(suggestion.text, 200), "$foreground"))
            lines.append(answer(words, f"suggest {number}"))
        if taken:
            keys = [("y", "allow", "allow"), ("n", "deny", "deny"), ("r", "deny with a reason", "reason")]
            if len(item.suggestions) > 1:
                keys.append(("1…", "allow and remember", ""))
            elif item.suggestions:
                keys.append(("1", "allow and remember", "suggest 1"))
            keys.append(("Esc", "back", "escape"))
        else:
            keys = [("F8", "allow", "allow"), ("F9", "deny", "deny"), ("Tab", "more answers", "take")]
        if more:
            keys.append(("F4", "see all", "f4"))
        lines.append(_keys(keys))
        return Content("\n").join(lines)

    # -- taking up, deciding

    def key_seen(self, key: str) -> None:
        if key != self._spent_chord:
            self._spent_chord = ""

    def take(self, key_time: float) -> None:
        """The person moved the focus here at ``key_time``: letters count for what was painted then."""
        item = self.current
        if item is not None and self._head.seen(item.request_id, key_time):
            self._taken = item.request_id
        self._update()

    def chord(self, behavior: Behavior, key_time: float) -> str:
        """Decide by a chord; the words to show when it does not count, else ''."""
        key = "f8" if behavior == "allow" else "f9"
        item = self.current
        if item is None or not self._open(item) or self._reason_for is not None:
            return ""
        if not self._head.seen(item.request_id, key_time):
            return "That key was pressed before this call was on the screen, so it did not count."
        if self._spent_chord == key:
            return "One press answers one call. Press another key first, Tab for example, for the next one."
        self._spent_chord = key
        self._decide(item, behavior)
        return ""

    def _decide(
        self, item: ApprovalView, behavior: Behavior, message: str = "", ids: tuple[str, ...] = ()
    ) -> None:
        self._answered[item.request_id] = behavior
        self._taken = ""
        self._send(Decide(item.request_id, behavior, message, ids))
        self._update()

    def _letter(self) -> ApprovalView | None:
        """The call that a letter decides: shown, open, taken up and painted before the key."""
        item = self.current
        if (
            self.screen.focused is not self
            or item is None
            or not self._open(item)
            or self._reason_for is not None
        ):
            return None
        key_time: float = getattr(self.app, "key_time", 0.0)
        if self._taken != item.request_id or not self._head.seen(item.request_id, key_time):
            return None
        return item

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The letters are the card's only while the card itself has the focus; in the reason they are text.

        They are looked at before anything else is done with a key, so that the time they are judged by
        is their own.
        """
        if action in ("allow", "deny", "reason", "suggest"):
            return self.screen.focused is self
        return True

    def action_allow(self) -> None:
        if (item := self._letter()) is not None:
            self._decide(item, "allow")

    def action_deny(self) -> None:
        if (item := self._letter()) is not None:
            self._decide(item, "deny")

    def action_suggest(self, number: int) -> None:
        item = self._letter()
        if item is not None and number <= len(item.suggestions):
            self._decide(item, "allow", ids=(item.suggestions[number - 1].id,))

    def action_reason(self) -> None:
        if (item := self._letter()) is not None:
            self._open_reason(item)

    def _open_reason(self, item: ApprovalView) -> None:
        self._reason_for = item
        self.add_class("-reason")
        self._update()
        field = self.query_one("#reason", Field)
        field.value = ""
        self.screen.set_focus(field)

    def _close_reason(self) -> None:
        self._reason_for = None
        self.remove_class("-reason")
        self.screen.set_focus(self)
        self._update()

    def on_input_submitted(self, event: Field.Submitted) -> None:
        event.stop()
        self._deny_with(event.value)

    def _deny_with(self, reason: str) -> None:
        item = self._reason_for
        if item is None:
            return
        still = next((i for i in self._items if i.request_id == item.request_id), None)
        if still is None or not self._open(still):
            self._update()
            return
        self._close_reason()
        self._decide(still, "deny", reason.strip())

    def step_back(self) -> bool:
        """Leave the reason of a denial; False when none is being written."""
        if self._reason_for is None:
            return False
        self._close_reason()
        return True

    def on_click(self, event: events.Click) -> None:
        """Move here, where letters are answers: by a click that was meant for this card alone."""
        pressed: float = getattr(self.app, "press_time", 0.0)
        if self._reason_for is None and self._head.stood(self.subject, pressed):
            self.screen.set_focus(self)
            self.take(pressed)

    def on_clickable_answered(self, event: Clickable.Answered) -> None:
        event.stop()
        self.clicked(event.answer, event.subject, event.time)

    def clicked(self, name: str, subject: str, time: float) -> None:
        """A click was meant for the answer ``name`` to the call ``subject``."""
        item = self.current
        if item is None or item.request_id != subject or not self._head.seen(subject, time):
            return
        if name == "escape":
            self.app.simulate_key(name)
        elif name == "enter":
            self._deny_with(self.query_one("#reason", Field).value)
        elif name == "f4":
            self.app.simulate_key(name)
        elif name == "take":
            self.screen.set_focus(self)
            self.take(time)
        elif self._reason_for is not None or not self._open(item):
            return
        elif name == "reason":
            self._open_reason(item)
        elif name in ("allow", "deny"):
            self._decide(item, "allow" if name == "allow" else "deny")
        elif name.startswith("suggest "):
            at = int(name.removeprefix("suggest ")) - 1
            if at < len(item.suggestions):
                self._decide(item, "allow", ids=(item.suggestions[at].id,))

    def watch_has_focus(self, has_focus: bool) -> None:
        super().watch_has_focus(has_focus)
        if not has_focus:
            self._taken = ""
        self._update()

    def on_resize(self) -> None:
        if self.current is not None:
            self.call_after_refresh(self._update)

    def action_scroll_up(self) -> None:
        self.query_one("#approval-body", VerticalScroll).scroll_up(animate=False)

    def action_scroll_down(self) -> None:
        self.query_one("#approval-body", VerticalScroll).scroll_down(animate=False)
