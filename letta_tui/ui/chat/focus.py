"""Where keys go on the conversation screen: the focus among composer, cards, queue and transcript.

Everything here is decided by ``screen.focused``, which changes at once. A widget's own ``has_focus`` follows
later, and the next key may be in the same read of the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual import events
from textual.containers import Container
from textual.widget import Widget

from letta_tui.ui.chat.approval import ApprovalDock
from letta_tui.ui.chat.composer import Composer
from letta_tui.ui.chat.draft import Draft
from letta_tui.ui.chat.queue import QueueStrip
from letta_tui.ui.chat.recovery import ChoiceCard, QuestionCard, RecoveryCard
from letta_tui.ui.field import Field
from letta_tui.ui.keys import text_keys
from letta_tui.ui.prompt import PromptScreen
from letta_tui.ui.transcript import TranscriptView

if TYPE_CHECKING:
    from letta_tui.ui.app import LettaTuiApp


class FocusScreen(PromptScreen[object], inherit_bindings=False):
    """The parts that can have the focus, and moving it among them."""

    body: Container
    transcript: TranscriptView
    approvals: ApprovalDock
    question: QuestionCard
    recovery: RecoveryCard
    queue: QueueStrip
    composer: Composer

    @property
    def letta(self) -> LettaTuiApp:
        return cast("LettaTuiApp", self.app)

    def has_focus_in(self, panel: Widget) -> bool:
        return self.focused is not None and panel in self.focused.ancestors_with_self

    def set_focus(
        self, widget: Widget | None, scroll_visible: bool = True, from_app_focus: bool = False
    ) -> None:
        super().set_focus(widget, scroll_visible, from_app_focus)
        self.focus_moved()

    def focus_moved(self) -> None:
        """The words that tell keys depend on the focus."""

    # -- what is typed

    def key_seen(self, event: events.Key) -> None:
        """Every key of the keyboard, before anything is done about it.

        Text typed where text means nothing goes to the composer, with the focus. A card keeps its letters
        to itself: there they are answers, or nothing.
        """
        if self.is_current:
            self.composer.hush()
        self.approvals.key_seen(event.key)
        if (
            event.is_printable
            and self._is_looking_on()
            and event.key not in text_keys("queue" if self.focused is self.queue else "transcript")
        ):
            self.set_focus(self.composer.draft)

    def paste_seen(self) -> None:
        """Pasted text is never an answer: it goes to the composer from everywhere but another field."""
        if self.is_current and not isinstance(self.focused, Draft | Field):
            self.set_focus(self.composer.draft)

    def _is_looking_on(self) -> bool:
        return self.is_current and self.focused in (None, self.transcript, self.queue)

    # -- moving

    def cards(self) -> list[ApprovalDock | ChoiceCard]:
        return [c for c in (self.approvals, self.question, self.recovery) if c.display]

    def panels(self) -> list[Widget]:
        panels: list[Widget] = [self.composer.draft, *self.cards()]
        if self.queue.display:
            panels.append(self.queue)
        if not self.body.has_class("empty"):
            panels.append(self.transcript)
        return panels

    def take(self, panel: Widget) -> None:
        """Move the focus to ``panel``; a card then takes letters for what was painted by now."""
        self.set_focus(panel)
        if isinstance(panel, ApprovalDock):
            panel.take(self.letta.key_time)

    def to_composer(self) -> None:
        self.set_focus(self.composer.draft)

    def action_take_card(self) -> None:
        cards = self.cards()
        if not cards:
            return
        for card in cards:
            if self.has_focus_in(card) and not (isinstance(card, ApprovalDock) and card.needs_taking):
                self.to_composer()
                return
        self.take(cards[0])

    def action_next_panel(self) -> None:
        if self.focused is self.composer.draft and self.composer.complete():
            return
        self._step(1)

    def action_previous_panel(self) -> None:
        self._step(-1)

    def _step(self, by: int) -> None:
        if self.has_focus_in(self.approvals) and self.approvals.needs_taking:
            self.take(self.approvals)
            return
        panels = self.panels()
        at = next((n for n, p in enumerate(panels) if self.has_focus_in(p)), 0)
        self.take(panels[(at + by) % len(panels)])

    # -- a panel went away

    def on_approval_dock_gone(self) -> None:
        self._gone(self.approvals)

    def on_choice_card_gone(self, message: ChoiceCard.Gone) -> None:
        self._gone(message.card)

    def on_queue_strip_gone(self) -> None:
        self._gone(self.queue)

    def _gone(self, panel: Widget) -> None:
        if self.focused is None or self.has_focus_in(panel):
            self.to_composer()
