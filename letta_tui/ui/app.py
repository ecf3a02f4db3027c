"""The application: takes updates out of the mailbox and gives them to the screens. It knows nothing else."""

from __future__ import annotations

import os
from contextlib import suppress

from textual import events
from textual.app import App
from textual.screen import Screen
from textual.timer import Timer

from letta_tui.seam.channel import WorkerPort
from letta_tui.seam.intents import FocusChanged, Quit
from letta_tui.seam.updates import Attention, Closed, Update
from letta_tui.ui.chat.draft import Draft
from letta_tui.ui.chat.screen import ChatScreen
from letta_tui.ui.clicks import Press, pressed
from letta_tui.ui.field import Field
from letta_tui.ui.keys import bindings
from letta_tui.ui.options import AppOptions, Theme
from letta_tui.ui.prompt import Keys
from letta_tui.ui.text.sanitise import one_line
from letta_tui.ui.themes import DARK, LIGHT, usual

FRAME = 1 / 30  # seconds; updates are taken no more often than this
CLOSE_PATIENCE = 5.0  # seconds a worker is given to say goodbye after an ordinary quit


class LettaTuiApp(App[int], inherit_bindings=False):
    """``port`` is the worker's side; ``options`` the look.

    ``run()`` returns when the screen has been restored; ``return_code`` is the process's exit code, and
    the sentence of an error has been printed by then.
    """

    ENABLE_COMMAND_PALETTE = False
    ESCAPE_TO_MINIMIZE = False
    TITLE = "letta-tui"
    BINDINGS = bindings("everywhere")
    CSS = """
    ChatScreen { background: $background; color: $foreground; }
    * { scrollbar-size-vertical: 1; scrollbar-color: $border; scrollbar-background: $background; }
    """

    def __init__(self, port: WorkerPort, options: AppOptions | None = None) -> None:
        from letta_tui.ui.terminal import driver_class

        super().__init__(driver_class=driver_class())
        self.port = port
        self.options = options or AppOptions()
        self.notifications = self.options.notifications
        self.keys = Keys()
        self.key_time = 0.0
        """When the key that is being handled was read from the terminal (monotonic seconds)."""
        self.press: Press | None = None
        """The answer on which the button of the mouse last went down."""
        self.press_time = 0.0
        """When it did (monotonic seconds)."""
        self.window_focused = True
        self._frames: Timer | None = None
        self._saying_goodbye = False
        self.next_profile = ""
        """The profile to go on with after this run has ended, when the person chose one."""
        self._terminal_title = ""
        self.written: list[str] = []
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.use_theme(self.options.chosen_theme)
        self.chat = ChatScreen(self.port, self.options)
        self.chat.keys = self.keys

    def get_default_screen(self) -> Screen[object]:
        return self.chat

    def on_mount(self) -> None:
        # Back from the shell, which wrote over the screen: nothing on it can be trusted.
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        # After the first paint: what the worker has to say must not delay it.
        self.call_after_refresh(self._shown)

    def _shown(self) -> None:
        self._frames = self.set_interval(FRAME, self._drain, pause=True)
        self.options.on_shown()
        self.port.on_update(self._wake)

    # -- updates

    def _wake(self) -> None:
        """Called from the worker's thread: updates are waiting."""
        if self._loop is not None and self._frames is not None:
            with suppress(RuntimeError):  # the loop has ended: there is nobody to tell
                self._loop.call_soon_threadsafe(self._frames.resume)

    def _drain(self) -> None:
        if self._frames is not None:
            self._frames.pause()
        updates = self.port.drain()
        if not updates:
            return
        with self.batch_update():
            for update in updates:
                self._route(update)
            self.chat.transcript.flush()

    def _route(self, update: Update) -> None:
        match update:
            case Closed():
                self._worker_closed(update)
                return
            case Attention():
                from letta_tui.ui.terminal.attention import attract

                attract(self, update, self.notifications)
                return
        self.chat.apply(update)
        top = self.screen
        if top is not self.chat and (hook := getattr(top, "apply_update", None)) is not None:
            hook(update)

    # -- keys, focus

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key) and not event.is_forwarded:
            self.key_time = event.time
            self.chat.key_seen(event)
            if not isinstance(self.focused, Draft | Field) and await self._run_bindings(event.key):
                self.keys.shown()
                return
        elif isinstance(event, events.Paste) and not event.is_forwarded:
            self.chat.paste_seen()
        elif isinstance(event, events.MouseDown) and not event.is_forwarded:
            self.press_time = event.time
            self.press = pressed(self.screen, event)
        await super().on_event(event)

    async def _run_bindings(self, key: str) -> bool:
        """Run what ``key`` is bound to where the focus is now.

        Textual looks for most bindings only when a key has bubbled up to the application. Keys that came
        behind it may have been handled by then: Esc and a letter would put the letter to the card that Esc
        was to leave, and Enter and Tab would send the draft.
        """
        return await self._check_bindings(key, priority=True) or await self._check_bindings(key)

    async def _on_key(self, event: events.Key) -> None:
        event.prevent_default()  # bubbled up here: its bindings had their turn, see above

    def on_app_focus(self) -> None:
        self.window_focused = True
        self.chat.answers_start_over()  # a click that brings the window to the front is no answer
        self.port.send(FocusChanged(True))

    def on_app_blur(self) -> None:
        self.window_focused = False
        self.chat.save_draft()
        self.port.send(FocusChanged(False))

    # -- the terminal

    def to_terminal(self, sequence: str) -> None:
        """Write a control sequence of our own making; tests have no terminal and collect it instead."""
        if not sequence:
            return
        if self.is_headless or self._driver is None:
            self.written.append(sequence)
        else:
            self._driver.write(sequence)

    def set_terminal_title(self, title: str) -> None:
        words = one_line(title, 80)
        words = f"{words} · letta-tui" if words else "letta-tui"
        if words != self._terminal_title:
            self._terminal_title = words
            self.to_terminal(f"\x1b]2;{words}\x07")

    def use_theme(self, theme: Theme) -> None:
        """Draw in these colours; "": as the config file says, or else as the terminal tells."""
        theme = theme or self.options.theme or usual(os.environ)
        self.theme = DARK.name if theme == "dark" else LIGHT.name

    # -- leaving

    def action_help(self) -> None:
        from letta_tui.ui.dialogs.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.options))

    async def action_quit(self) -> None:
        if self._saying_goodbye:
            self.exit(0, return_code=0)  # asked a second time: leave without waiting
            return
        if not self.chat.turn_running:
            self.leave("keep")
            return
        self._ask_how_to_leave()

    def change_profile(self, name: str) -> None:
        """End this worker in order and have another started for the profile ``name``."""
        if self._saying_goodbye:
            return
        if wrong := self.options.check_profile(name):
            self.chat.say(wrong, "error")
            return
        self.next_profile = name
        if not self.chat.turn_running:
            self.leave("keep")
            return
        self._ask_how_to_leave()

    def _ask_how_to_leave(self) -> None:
        from letta_tui.ui.dialogs.leave import LeaveDialog

        if isinstance(self.screen, LeaveDialog):
            return
        self.push_screen(LeaveDialog(self.chat.connection), self._leave_answered)

    def _leave_answered(self, what: str | None) -> None:
        if what not in ("keep", "stop"):
            self.next_profile = ""
        if what == "keep" or what == "stop":
            self.leave("stop" if what == "stop" else "keep")

    def leave(self, what: str) -> None:
        """Say goodbye to the worker and wait for its word."""
        self._saying_goodbye = True
        self.chat.save_draft()
        if what == "stop":
            self.chat.say("Stopping the turn, then leaving. Ctrl+Q leaves at once.", "info")
            self.port.send(Quit("stop"))
            return
        self.port.send(Quit("keep"))
        self.set_timer(CLOSE_PATIENCE, lambda: self.exit(0, return_code=0))

    def _worker_closed(self, closed: Closed) -> None:
        if closed.error:
            from rich.text import Text

            self.exit(closed.exit_code or 1, return_code=closed.exit_code or 1, message=Text(closed.error))
        else:
            self.exit(closed.exit_code, return_code=closed.exit_code)

    def _handle_exception(self, error: Exception) -> None:
        """An error of ours: keep the draft, restore the terminal, say one sentence and where to read on."""
        from letta_tui.ui.terminal.crash import report

        self.chat.save_draft_anyhow()
        sentence = report(error, self.options.log_path)
        if self.is_headless:
            super()._handle_exception(error)
            return
        from rich.text import Text

        self.exit(1, return_code=1, message=Text(sentence))
