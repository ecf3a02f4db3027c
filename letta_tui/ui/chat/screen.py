"""The conversation screen: puts the parts together and passes what the worker says to the right one."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Container
from textual.timer import Timer

from letta_tui.seam.channel import WorkerPort
from letta_tui.seam.intents import (
    AnswerQuestion,
    CancelQueued,
    LoadOlder,
    ResolveSend,
    SaveDraft,
    Submit,
)
from letta_tui.seam.state import Action, ConnectionView, SendView, StatusView
from letta_tui.seam.updates import (
    ApprovalsChanged,
    ConnectionChanged,
    DraftLoaded,
    NeedsDevice,
    NeedsSetup,
    Notice,
    QuestionChanged,
    QueueChanged,
    RecoveryChanged,
    SendsChanged,
    StatusChanged,
    SubmitSettled,
    TextAppended,
    TranscriptChanged,
    Update,
)
from letta_tui.ui.chat.actions import ActionScreen
from letta_tui.ui.chat.approval import ApprovalDock
from letta_tui.ui.chat.bars import HeaderBar, KeyBar, StatusBar
from letta_tui.ui.chat.commands import Commands
from letta_tui.ui.chat.composer import Composer
from letta_tui.ui.chat.queue import QueueStrip
from letta_tui.ui.chat.recovery import QuestionCard, RecoveryCard
from letta_tui.ui.chat.welcome import FindBar, Welcome
from letta_tui.ui.clicks import Clickable
from letta_tui.ui.keys import bindings
from letta_tui.ui.options import AppOptions
from letta_tui.ui.transcript import TranscriptView


class ChatScreen(ActionScreen):
    """What a person looks at nearly always. Holds the last snapshots it was given and no other truth."""

    BINDINGS = bindings("conversation")
    AUTO_FOCUS = "#draft"

    DEFAULT_CSS = """
    ChatScreen {
        layout: vertical; overflow: hidden;
        & #body { height: 1fr; min-height: 1; }
        &.-low #field { border: none; border-left: thick $border; background: $surface; }
        &.-low #field:focus-within { border: none; border-left: thick $primary; }
        &.-low ApprovalDock { border: none; border-left: thick $accent; &:focus { background: $panel; } }
        &.-low ChoiceCard { border: none; border-left: thick $secondary; &:focus { background: $panel; } }
        & TranscriptView { height: 1fr; padding: 0 1; }
        & #body.empty TranscriptView { display: none; }
        & #body.empty Welcome { display: block; }
    }
    """

    def __init__(self, port: WorkerPort, options: AppOptions) -> None:
        super().__init__(id="chat")
        self.port = port
        self.options = options
        self.status = StatusView()
        self.connection = ConnectionView("starting", "Starting…")
        self.sends: tuple[SendView, ...] = ()
        self.commands = Commands(self)
        self._tokens = 0
        self._turned_away = False  # Enter was refused because nothing could be sent
        self._asked_for_setup = False
        self._asked_for_device = False
        self._clock: Timer | None = None
        self.header = HeaderBar()
        self.body = Container(id="body", classes="empty")
        self.transcript = TranscriptView()
        self.welcome = Welcome(options.hints)
        self.find_bar = FindBar()
        self.recovery = RecoveryCard(self._resolve_send, self.copy)
        self.question = QuestionCard(self._answer_question, self.copy)
        self.approvals = ApprovalDock(port.send)
        self.queue = QueueStrip(lambda item: port.send(CancelQueued(item)))
        self.composer = Composer(
            submit=self._submit,
            save=lambda text: port.send(SaveDraft(text)),
            command=self.commands.run,
            copy=self.copy,
            leave=lambda: self.commands.command_quit(""),
        )
        self.status_bar = StatusBar()
        self.key_bar = KeyBar(lambda: self.approvals.subject)

    def compose(self) -> ComposeResult:
        yield self.header
        with self.body:
            yield self.transcript
            yield self.welcome
        yield self.find_bar
        yield self.recovery
        yield self.question
        yield self.approvals
        yield self.queue
        yield self.composer
        yield self.status_bar
        yield self.key_bar

    def on_mount(self) -> None:
        self.composer.draft.cursor_blink = self.options.blink

    def on_resize(self) -> None:
        self.set_class(self.app.size.height < 20, "-low")
        self._crowd()

    def focus_moved(self) -> None:
        esc_stops = self.focused is self.composer.draft and not self.find_bar.display
        if esc_stops != self.status_bar.esc_stops:
            self.status_bar.esc_stops = esc_stops
            self.status_bar.refresh()

    def watch_selections(self) -> None:
        if self.status_bar.selected != bool(self.selections):
            self.status_bar.selected = bool(self.selections)
            self.status_bar.refresh()

    # -- what the worker says

    def apply(self, update: Update) -> None:
        match update:
            case TranscriptChanged() | TextAppended():
                self._transcript(update)
            case StatusChanged(status):
                self.show_status(status)
            case ConnectionChanged(connection):
                self.connection = connection
                self.header.connection = connection
                self.header.refresh()
                self.status_bar.can_send = connection.can_send
                self.status_bar.contact = self.status_bar.contact.then(connection.phase)
                self.status_bar.refresh()
                if connection.can_send and self._turned_away:
                    self._turned_away = False
                    self.composer.say("It can be sent now: Enter sends.")
                self._show_welcome()
                self.refresh_bindings()
            case ApprovalsChanged(items):
                self.approvals.show(items)
                self._crowd()
                self.refresh_bindings()
            case QueueChanged(items):
                self.queue.show(items)
                self.refresh_bindings()
            case RecoveryChanged(recovery):
                self.recovery.show(recovery)
                self._crowd()
                self.refresh_bindings()
            case QuestionChanged(question):
                self.question.show(question)
                self._crowd()
                self.refresh_bindings()
            case SendsChanged(items):
                self.sends = items
            case SubmitSettled(token, ok, _, error):
                self.composer.settled(token, ok, error)
            case DraftLoaded(text, reason):
                self.composer.load(text)
                if reason == "cancelled":
                    self.composer.say("Taken back: it is here again and will not run.", "info")
            case NeedsSetup(reason):
                self._setup(reason)
            case NeedsDevice(reason):
                self._device(reason)
            case Notice(text, level):
                self.say(text, level)
            case _:
                pass  # lists: the list on top of this screen takes them itself

    def _crowd(self) -> None:
        """Several cards share a low screen: the first has the room."""
        low = self.app.size.height < 32
        self.question.crowd(low and bool(self.approvals.display))
        self.recovery.crowd(low and bool(self.approvals.display or self.question.display))

    def _transcript(self, update: TranscriptChanged | TextAppended) -> None:
        self.transcript.apply(update)
        if isinstance(update, TextAppended):
            return
        if update.as_of != self.status_bar.as_of:
            self.status_bar.as_of = update.as_of
            self.status_bar.now = self.options.clock()
            self.status_bar.refresh()
        if update.reset:
            self.composer.history.forget()
        mine = [r.text for s in update.splices for r in s.rows if r.kind == "user" and r.client_message_id]
        if mine and update.reset:
            self.composer.history.seed(mine)
        empty = not self.transcript.rows
        if self.body.has_class("empty") != empty:
            self.body.set_class(empty, "empty")

    def show_status(self, status: StatusView) -> None:
        if self.status.conversation_id not in ("", status.conversation_id):
            self.composer.arrive()
        self.status = status
        self.header.status = self.status_bar.status = status
        self.status_bar.now = self.options.clock()
        self.header.refresh()
        self.status_bar.refresh()
        self.set_class(status.mode == "unrestricted", "-unrestricted")
        self.composer.placeholder(f"Message {status.agent_name}" if status.agent_name else "")
        if self.turn_running and self._clock is None:
            self._clock = self.set_interval(1.0, self._tick)
        elif not self.turn_running and self._clock is not None:
            self._clock.stop()
            self._clock = None
        self._show_welcome()
        title = " · ".join(t for t in (status.agent_name, status.conversation_title) if t)
        self.letta.set_terminal_title(title)

    def _show_welcome(self) -> None:
        """Nothing invites to write where no conversation is open."""
        words = "" if self.connection.phase == "ready" else self.connection.words
        self.welcome.show(words, bool(self.status.conversation_id))

    def _tick(self) -> None:
        self.status_bar.now = self.options.clock()
        self.status_bar.refresh()

    def _setup(self, reason: str) -> None:
        if not self._asked_for_setup:
            self._asked_for_setup = True
            self.commands.open_setup(reason)

    def _device(self, reason: str) -> None:
        self.say(reason, "warning")
        if not self._asked_for_device:
            self._asked_for_device = True
            self.commands.command_device("")

    def say(self, words: str, level: str = "info") -> None:
        """A remark in the line above the composer."""
        from letta_tui.ui.text.sanitise import safe

        self.composer.say(safe(words), level)

    # -- sending

    def _submit(self, text: str) -> tuple[str, str]:
        if not self.connection.can_send:
            why = self.connection.why_not or self.connection.words
            self._turned_away = True
            return "", f"Not sent, the text stays here: {why}"
        self._turned_away = False
        self._tokens += 1
        token = f"submit-{self._tokens}"
        self.port.send(Submit(token, text))
        self.transcript.jump_bottom()
        return token, ""

    def save_draft(self) -> None:
        if self.is_mounted:
            self.composer.save_now()

    def part(self) -> None:
        """Another conversation was asked for: the draft is stored with this one, and stays there."""
        self.save_draft()
        self.composer.part()

    def save_draft_anyhow(self) -> None:
        """For the way out of an error: nothing may stop it, and nothing but the text matters."""
        try:
            self.port.send(SaveDraft(self.composer.draft.free_text))
        except Exception:  # whatever is broken by now, the error being reported is the one that counts
            return

    def _resolve_send(self, client_message_id: str, action: Action) -> None:
        self.port.send(ResolveSend(client_message_id, action))

    def _answer_question(self, question_id: str, action: Action) -> None:
        if action == "open_other":
            self.commands.command_conversations("")  # the question stands until something is opened
        else:
            self.port.send(AnswerQuestion(question_id, action))

    def copy(self, text: str, what: str = "") -> None:
        """Give ``text`` to the terminal's clipboard and say what can truly be said about it."""
        from letta_tui.ui.terminal.clipboard import copy

        self.say(copy(self.letta, text, what))

    # -- clicks

    def on_screen_resume(self) -> None:
        self.answers_start_over()

    def answers_start_over(self) -> None:
        """Nobody looked at them until now: another screen covered them, or another window had the focus."""
        for part in self.walk_children(Clickable):
            part.start_over()

    def on_clickable_answered(self, event: Clickable.Answered) -> None:
        """A key of the key bar was clicked."""
        chords = {"f8": "allow", "f9": "deny"}
        if event.answer in chords:
            self.approvals.clicked(chords[event.answer], event.subject, event.time)
        else:
            self.letta.simulate_key(event.answer)

    # -- messages of the transcript

    def on_transcript_view_near_top(self, message: TranscriptView.NearTop) -> None:
        self.port.send(LoadOlder(message.to_start))

    def on_transcript_view_copy_requested(self, message: TranscriptView.CopyRequested) -> None:
        self.copy(message.text, message.what)

    def on_transcript_view_follow_changed(self, message: TranscriptView.FollowChanged) -> None:
        self.status_bar.set_class(message.new_below, "-new-below")
        self.status_bar.new_below = message.new_below
        self.status_bar.refresh()

    def on_transcript_view_row_activated(self, message: TranscriptView.RowActivated) -> None:
        """What is known of a message that is not at rest."""
        wanted = message.row.client_message_id
        for send in self.sends:
            if wanted and send.client_message_id == wanted:
                self.say(f"{send.word}: {send.explanation}")
