"""What the keys of the conversation do, besides moving the focus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from letta_tui.seam.channel import WorkerPort
from letta_tui.seam.intents import Abort, PutAwayNotes, Reconnect, ResumeQueue
from letta_tui.seam.state import ConnectionView, StatusView
from letta_tui.ui.chat.commands import Commands
from letta_tui.ui.chat.doing import LINKED
from letta_tui.ui.chat.focus import FocusScreen
from letta_tui.ui.chat.welcome import FindBar


class ActionScreen(FocusScreen):
    """Every ``action_…`` here is a key of the place "conversation" in :mod:`letta_tui.ui.keys`."""

    port: WorkerPort
    status: StatusView
    connection: ConnectionView
    commands: Commands
    find_bar: FindBar

    def say(self, words: str, level: str = "info") -> None:
        raise NotImplementedError

    def show_status(self, status: StatusView) -> None:
        raise NotImplementedError

    @property
    def turn_running(self) -> bool:
        return self.status.activity != "idle"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        shown: dict[str, Callable[[], bool]] = {
            "chord_allow": lambda: self.approvals.takes_chords,
            "chord_deny": lambda: self.approvals.takes_chords,
            "details": lambda: self.approvals.current is not None,
            "take_card": lambda: bool(self.cards()),
            "resume_queue": lambda: self.queue.any_paused,
            "put_away": lambda: self.recovery.has_notes,
            "jump_left": lambda: self.recovery.has_notes and self._left_line() is not None,
            "reconnect": lambda: self.connection.phase in ("lost", "failed"),
        }
        test = shown.get(action)
        return True if test is None else test()

    # -- approvals

    def action_chord_allow(self) -> None:
        self._say_if(self.approvals.chord("allow", self.letta.key_time))

    def action_chord_deny(self) -> None:
        self._say_if(self.approvals.chord("deny", self.letta.key_time))

    def _say_if(self, words: str) -> None:
        if words:
            self.say(words, "warning")

    def action_details(self) -> None:
        from letta_tui.ui.dialogs.details import DetailsScreen

        if (approval := self.approvals.current) is not None:
            self.app.push_screen(DetailsScreen(approval))

    # -- leaving and stopping

    def action_escape(self) -> None:
        """The nearest first: a question in a card, a search, a selection, a card; only then the turn."""
        if any(self.has_focus_in(card) and card.step_back() for card in self.cards()):
            return
        if self.find_bar.display:
            self.close_find()
        elif self.selections:
            self.clear_selection()
        elif self.focused is not self.composer.draft:
            self.to_composer()
        elif self.composer.draft.selected_text:
            self.composer.draft.move_cursor(self.composer.draft.cursor_location)
        elif self.turn_running and self.connection.phase not in LINKED:
            self.say("There is no connection now, so nothing can be stopped.", "warning")
        elif self.turn_running and self.status.activity != "cancelling":
            self.port.send(Abort())
            # Shown at once; the worker's next word replaces it.
            words = "stopping, waiting for the end"
            self.show_status(replace(self.status, activity="cancelling", activity_words=words))

    # -- the transcript

    def action_page(self, by: int) -> None:
        if by < 0:
            self.transcript.scroll_page_up(animate=False)
        else:
            self.transcript.scroll_page_down(animate=False)

    def action_jump_top(self) -> None:
        self.transcript.jump_top()

    def action_jump_bottom(self) -> None:
        self.transcript.jump_bottom()

    def action_jump_user(self, by: int) -> None:
        found = self.transcript.jump_previous_user() if by < 0 else self.transcript.jump_next_user()
        if not found and by > 0:
            self.transcript.jump_bottom()

    def _left_line(self) -> str | None:
        return next((row.key for row in reversed(self.transcript.rows) if row.kind == "away"), None)

    def action_jump_left(self) -> None:
        if (key := self._left_line()) is not None:
            self.transcript.jump_to(key)

    def action_find(self) -> None:
        self.find_bar.open()

    def close_find(self) -> None:
        self.find_bar.close()
        self.transcript.find_clear()
        self.to_composer()

    def on_find_bar_search(self, message: FindBar.Search) -> None:
        self.find_bar.found(self.transcript.find(message.text, backwards=message.backwards))

    # -- the rest

    def action_copy(self) -> None:
        self.commands.command_copy("")

    def action_put_away(self) -> None:
        self.port.send(PutAwayNotes())

    def action_resume_queue(self) -> None:
        self.port.send(ResumeQueue())

    def action_reconnect(self) -> None:
        self.port.send(Reconnect())

    def action_conversations(self) -> None:
        self.commands.command_conversations("")
