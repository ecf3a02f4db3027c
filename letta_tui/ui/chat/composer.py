"""The composer: where a message is written, kept and handed over."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static

from letta_tui.ui.chat import slash
from letta_tui.ui.chat.draft import Draft
from letta_tui.ui.chat.history import History
from letta_tui.ui.text.sanitise import one_line

SAVE_AFTER = 0.4  # seconds without a key before the draft is handed over to be stored
SAVE_AT_LEAST_EVERY = 8  # changes, however fast they come


class Composer(Vertical):
    """A growing field with a list of commands above it and one line for what must be said about it.

    ``submit(text)`` hands a message over and gives back its token, or says why it cannot be sent.
    Nothing is removed from the field before the token has been settled.
    """

    DEFAULT_CSS = """
    Composer {
        height: auto; padding: 0;
        & #field { height: auto; border: round $border; background: $background; }
        & #field:focus-within { border: round $primary; }
        & #note { height: auto; max-height: 3; padding: 0 2; display: none; }
        & #note.-shown { display: block; }
        & #note.-error { color: $error; }
        & #note.-warning { color: $warning; }
        & #note.-info { color: $quiet; }
        & #completion { height: auto; max-height: 8; padding: 0 2; display: none; }
    }
    """

    def __init__(
        self,
        *,
        submit: Callable[[str], tuple[str, str]],
        save: Callable[[str], None],
        command: Callable[[slash.Command, str], None],
        copy: Callable[[str], None],
        leave: Callable[[], None],
    ) -> None:
        super().__init__(id="composer")
        self._submit = submit
        self._save = save
        self._command = command
        self._copy = copy
        self._leave = leave
        self.history = History()
        self.draft = Draft(self)
        self._token = ""
        self._told_unknown = ""  # an unknown command the person has been told about
        self._leaving = False  # Ctrl+C was pressed on an empty field
        self._saved: str | None = ""  # what was handed over last; None: store the next in any case
        self._parting: str | None = None  # the text that stood here when another conversation was asked for
        self._said = False  # there is a remark
        self._said_about = ""  # the text that the remark is about; it goes when that changes
        self._timer: Timer | None = None
        self._changes = 0
        self._walking = False
        self._choice = 0

    def compose(self) -> ComposeResult:
        yield Static("", id="completion", markup=False)
        yield Static("", id="note", markup=False)
        with Vertical(id="field"):
            yield self.draft

    # -- what the screen says

    def settled(self, token: str, ok: bool, error: str) -> None:
        """The word on a submitted text: it is on disk and goes away, or it stays with the reason."""
        if token != self._token or not self._token:
            return
        self._token = ""
        if ok:
            self.history.add(self.draft.locked_text)
            self.draft.take_locked()
            self.say("")
            self._saved = None  # what is written now replaces the stored draft, whatever that holds
            self.save_now()
        else:
            self.draft.unlock()
            self.say(
                error or "This could not be stored, so it was not sent. The text is still here.", "error"
            )
            self.save_now()

    def part(self) -> None:
        """The person goes to another conversation; what stands here has been stored with this one."""
        self._parting = self.draft.text

    def arrive(self) -> None:
        """The other conversation is here. The draft stayed behind, unless it was written on meanwhile."""
        if self._parting is not None and not self._token and self.draft.text == self._parting:
            self._saved = ""  # nothing is stored for this conversation by emptying the field
            self.draft.put("")
        self._parting = None

    def load(self, text: str) -> None:
        """Put a stored draft or a message taken back into the field, in front of what is being written."""
        now = self.draft.free_text
        if now == text:
            return
        if now == self._parting:
            now = ""
            self._parting = None
        self.draft.put(f"{text}\n{now}" if now.strip() else text)
        self._saved = self.draft.free_text if not now else ""

    def say(self, words: str, level: str = "info") -> None:
        self._said_about = self.draft.text
        if not words and not self._said:
            return  # each key comes by here, and a changed note has the whole screen laid out
        self._said = bool(words)
        note = self.query_one("#note", Static)
        note.update(Content(words))
        note.set_classes(f"-{level}" + (" -shown" if words else ""))

    def hush(self) -> None:
        """A key was pressed: what was said before it has been read."""
        if self.query_one("#note").has_class("-shown"):
            self.say("")

    def placeholder(self, words: str) -> None:
        self.draft.placeholder = Content(words)

    def save_now(self) -> None:
        """Hand the draft over at once if it is not what was handed over last."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._changes = 0
        text = self.draft.free_text if self._token else self.draft.text
        if text != self._saved:
            self._saved = text
            self._save(text)

    @property
    def text(self) -> str:
        return self.draft.text

    # -- what the field asks

    def enter(self) -> None:
        text = self.draft.free_text
        if self._completing() and not (self._choice == 0 and text[1:].lower() in slash.BY_NAME):
            name = self._choice_name()
            self.complete()
            if slash.BY_NAME[name].argument:
                return  # there is more to write
            text = self.draft.free_text
        if self._token:
            if text.strip():
                self.say("One moment: the message before this one is still being stored.", "warning")
            return
        if not text.strip():
            return
        meaning = slash.read(text)
        if isinstance(meaning, slash.Run):
            self.draft.put("")
            self.say("")
            self.save_now()
            self.history.add(text)
            self._command(meaning.command, meaning.argument)
            return
        if isinstance(meaning, slash.Unknown) and self._told_unknown != text:
            self._told_unknown = text
            self.say(
                f"/{one_line(meaning.name, 30)} is no command here (F1 lists them). "
                "Enter again sends it as a message.",
                "warning",
            )
            return
        body = meaning.text if isinstance(meaning, slash.Text | slash.Unknown) else text
        token, refused = self._submit(body)
        if refused:
            self.say(refused, "error")
            return
        self._token = token
        self._told_unknown = ""
        self.history.stop()
        self.draft.lock_all()

    def interrupt(self) -> None:
        """Ctrl+C: copy what is selected; else put the draft away, saying so; else quit when pressed twice."""
        if selected := self.draft.selected_text:
            self._copy(selected)
            return
        if self.screen.selections:  # with the mouse, in the transcript
            self._command(slash.BY_NAME["copy"], "")
            return
        text = self.draft.free_text
        if text.strip():
            self.history.add(text)
            self.draft.put("")
            self.say("The draft was put away: ↑ brings it back. Nothing was sent.", "info")
            self._leaving = False
            return
        if self._leaving:
            self._leaving = False
            self._leave()
            return
        self._leaving = True
        self.say("Press Ctrl+C once more to quit.", "info")

    def walk(self, back: bool) -> bool:
        if self._token:
            return False
        text = self.history.back(self.draft.text) if back else self.history.forth()
        if text is None:
            return False
        self._walking = True
        self.draft.put(text)
        return True

    def touched(self) -> None:
        """The text changed."""
        if self._walking:
            self._walking = False
        else:
            self.history.stop()
        self._leaving = False
        if self._said and self.draft.text != self._said_about:
            self.say("")
        self._choice = 0
        self._show_completion()
        self._changes += 1
        if self._changes >= SAVE_AT_LEAST_EVERY:
            self.save_now()
            return
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(SAVE_AFTER, self.save_now)

    def left(self) -> None:
        self.save_now()

    # -- completion of commands

    def _completing(self) -> tuple[slash.Command, ...]:
        return () if self._token else slash.completions(self.draft.free_text)

    def _choice_name(self) -> str:
        found = self._completing()
        return found[self._choice % len(found)].name if found else ""

    def complete_move(self, back: bool) -> bool:
        found = self._completing()
        if len(found) < 2:
            return False
        self._choice = (self._choice + (-1 if back else 1)) % len(found)
        self._show_completion()
        return True

    def complete(self) -> bool:
        """Write the chosen command into the field; False when there is none to choose from."""
        found = self._completing()
        if not found:
            return False
        command = found[self._choice % len(found)]
        wanted = f"/{command.name}" + (" " if command.argument else "")
        if self.draft.free_text == wanted:
            return False
        self.draft.put(wanted)
        return True

    def _show_completion(self) -> None:
        found = self._completing()
        panel = self.query_one("#completion", Static)
        panel.display = bool(found)
        if not found:
            return
        rows = 7 if self.app.size.height >= 20 else 3
        first = min(max(0, self._choice - rows + 1), max(0, len(found) - rows))
        lines = []
        for number, command in enumerate(found[first : first + rows], first):
            name = f"/{command.name}" + (f" [{command.argument}]" if command.argument else "")
            chosen = number == self._choice
            lines.append(
                Content.assemble(
                    ("▸ " if chosen else "  ", "$primary"),
                    (name.ljust(24), "bold $primary" if chosen else "$foreground"),
                    (command.words, "$quiet"),
                )
            )
        panel.update(Content("\n").join(lines))
