"""What the slash commands and the lists do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, get_args

from letta_tui.seam.intents import (
    ForgetConversation,
    ManageAgent,
    ManageConversation,
    Management,
    Mode,
    NewConversation,
    OpenConversation,
    Redact,
    SetCwd,
    SetMode,
    SetModel,
    UseDevice,
)
from letta_tui.ui.chat.slash import Command
from letta_tui.ui.options import Theme
from letta_tui.ui.text.sanitise import one_line

if TYPE_CHECKING:
    from letta_tui.ui.chat.screen import ChatScreen

_MODES: dict[str, Mode] = {mode: mode for mode in get_args(Mode)}
_AT_ONCE: dict[str, Management] = {
    "archive": "archive",
    "unarchive": "unarchive",
    "fork": "fork",
    "compact": "compact",
}
_NOTIFICATIONS: dict[str, tuple[Literal["on", "bell", "off"], str]] = {
    "on": ("on", "bell and notification"),
    "bell": ("bell", "the bell only"),
    "off": ("off", "none"),
}
_THEMES: dict[str, Theme] = {"dark": "dark", "light": "light", "auto": ""}

_UNRESTRICTED = "Every command and every change then runs at once, without a question, with your rights."


class Commands:
    """Every ``command_…`` method is one slash command; the argument is what was written behind it."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._port = screen.port

    def run(self, command: Command, argument: str) -> None:
        getattr(self, f"command_{command.action}")(argument)

    # -- conversations

    def command_new(self, argument: str) -> None:
        self._screen.part()
        self._port.send(NewConversation())

    def command_conversations(self, argument: str) -> None:
        self._conversations_of(None)

    def _conversations_of(self, only_agent: str | None, name: str = "") -> None:
        from letta_tui.ui.dialogs.lists import NEW, ConversationPicker, manage_picker

        picker = ConversationPicker(self._port, self._screen.options.clock, only_agent, name)

        def chosen(what: str | None) -> None:
            if what is None:
                return
            if what == NEW:
                self._screen.part()
                self._port.send(NewConversation(only_agent))
            elif what.startswith("manage "):
                _, agent, conversation = what.split(" ", 2)
                title = picker.title_of(conversation)
                self._screen.app.push_screen(
                    manage_picker(title, picker.is_archived(conversation)),
                    lambda action: self._manage(action, agent, conversation, title),
                )
            else:
                agent, conversation = what.split(" ", 1)
                self._open(agent, conversation)

        self._screen.app.push_screen(picker, chosen)

    def _open(self, agent: str, conversation: str) -> None:
        self._screen.part()
        self._port.send(OpenConversation(agent, conversation))

    def _manage(self, action: str | None, agent: str, conversation: str, title: str) -> None:
        if action == "open":
            self._open(agent, conversation)
        elif action == "rename":
            self._rename(agent, conversation, title)
        elif action == "forget":
            self._forget(agent, conversation, title)
        elif action == "delete":
            self._sure(
                f"Hide “{one_line(title, 50)}”?",
                "The server has no command that deletes a conversation. It is archived and hidden there, "
                "with everything in it. What this program stored about it stays, unless it is forgotten.",
                "Archive and hide it",
                lambda forget: self._port.send(
                    ManageConversation(agent, conversation, "delete", forget=forget)
                ),
                more="Archive and hide it, and forget it here",
            )
        elif action is not None and (what := _AT_ONCE.get(action)):
            self._port.send(ManageConversation(agent, conversation, what))

    def _rename(self, agent: str, conversation: str, title: str) -> None:
        from letta_tui.ui.dialogs.picker import Ask

        def named(text: str | None) -> None:
            if text:
                self._port.send(ManageConversation(agent, conversation, "rename", text))

        self._screen.app.push_screen(Ask("A title for this conversation", title), named)

    def _sure(self, title: str, words: str, yes: str, then: Callable[[bool], None], more: str = "") -> None:
        """``then`` is told whether it was ``more`` that was chosen."""
        from letta_tui.ui.dialogs.lists import confirm

        def answered(answer: str | None) -> None:
            if answer in ("yes", "more"):
                then(answer == "more")

        self._screen.app.push_screen(confirm(title, words, yes, more), answered)

    def _here(self) -> tuple[str, str] | None:
        status = self._screen.status
        if not status.conversation_id:
            self._screen.say("There is no conversation open yet.", "warning")
            return None
        return status.agent_id, status.conversation_id

    def command_rename(self, argument: str) -> None:
        if (here := self._here()) is None:
            return
        if argument:
            self._port.send(ManageConversation(*here, "rename", argument))
        else:
            self._rename(*here, self._screen.status.conversation_title)

    def command_fork(self, argument: str) -> None:
        if (here := self._here()) is not None:
            self._port.send(ManageConversation(*here, "fork"))

    def command_compact(self, argument: str) -> None:
        if (here := self._here()) is not None:
            self._port.send(ManageConversation(*here, "compact"))

    # -- agents, models, circumstances

    def command_agents(self, argument: str) -> None:
        from letta_tui.ui.dialogs.lists import NEW, AgentPicker, manage_agent_picker

        picker = AgentPicker(self._port)

        def chosen(what: str | None) -> None:
            if what == NEW:
                self._new_agent()
            elif what and what.startswith("manage "):
                agent = what.removeprefix("manage ")
                name = picker.name_of(agent)
                self._screen.app.push_screen(
                    manage_agent_picker(name), lambda action: self._manage_agent(action, agent, name)
                )
            elif what:
                self._conversations_of(what, picker.name_of(what))

        self._screen.app.push_screen(picker, chosen)

    def _new_agent(self) -> None:
        from letta_tui.ui.dialogs.lists import character_picker

        def chosen(character: str | None) -> None:
            if character:
                self.open_setup("", step="model", character="" if character == "plain" else character)

        self._screen.app.push_screen(character_picker(), chosen)

    def _manage_agent(self, action: str | None, agent: str, name: str) -> None:
        from letta_tui.ui.dialogs.picker import Ask

        if action == "open":
            self._conversations_of(agent, name)
        elif action == "rename":

            def named(text: str | None) -> None:
                if text:
                    self._port.send(ManageAgent(agent, "rename", text))

            self._screen.app.push_screen(Ask("A name for this agent", name), named)
        elif action == "delete":
            self._sure(
                f"Delete the agent “{one_line(name, 50)}”?",
                "The server deletes it with its memory and its conversations. This cannot be taken back.",
                "Delete the agent",
                lambda forget: self._port.send(ManageAgent(agent, "delete", forget=forget)),
                more="Delete the agent, and forget its conversations here",
            )

    def command_profile(self, argument: str) -> None:
        choices = self._screen.options.profiles
        if not choices:
            self._screen.say(
                "There are no profiles here; `letta-tui profiles` shows the config file.", "warning"
            )
            return

        def chosen(name: str | None) -> None:
            if name and not any(c.current and c.name == name for c in choices):
                self._screen.letta.change_profile(name)

        if argument:
            if argument in {c.name for c in choices}:
                chosen(argument)
            else:
                names = ", ".join(c.name for c in choices)
                self._screen.say(f"There is no profile of that name. Choose one of {names}.", "warning")
            return
        from letta_tui.ui.dialogs.lists import profile_picker

        self._screen.app.push_screen(profile_picker(choices), chosen)

    def command_device(self, argument: str) -> None:
        from letta_tui.ui.dialogs.lists import DevicePicker

        def chosen(device: str | None) -> None:
            if device:
                self._screen.save_draft()
                self._port.send(UseDevice(device))

        self._screen.app.push_screen(DevicePicker(self._port, self._screen.options.clock), chosen)

    def command_model(self, argument: str) -> None:
        if argument:
            self._port.send(SetModel(argument))
            return
        from letta_tui.ui.dialogs.lists import ModelPicker

        def chosen(handle: str | None) -> None:
            if handle:
                self._port.send(SetModel(handle))

        self._screen.app.push_screen(ModelPicker(self._port, self._screen.status.model), chosen)

    def command_mode(self, argument: str) -> None:
        if argument:
            named = {name.lower(): name for name in _MODES}.get(argument.lower())
            if named is None:
                self._screen.say(
                    f"There is no mode “{one_line(argument, 30)}”: {', '.join(_MODES)}.", "warning"
                )
                return
            self._set_mode(named)
            return
        from letta_tui.ui.dialogs.lists import mode_picker

        self._screen.app.push_screen(mode_picker(self._screen.status.mode), self._set_mode)

    def _set_mode(self, mode: str | None) -> None:
        wanted = _MODES.get(mode or "")
        if wanted is None or wanted == self._screen.status.mode:
            return
        if wanted == "unrestricted":
            self._sure("Ask for nothing?", _UNRESTRICTED, "Run everything without asking",
                       lambda _: self._port.send(SetMode("unrestricted")))  # fmt: skip
            return
        self._port.send(SetMode(wanted))

    def command_cwd(self, argument: str) -> None:
        if argument:
            self._port.send(SetCwd(argument))
            return
        from letta_tui.ui.dialogs.picker import Ask

        def named(path: str | None) -> None:
            if path:
                self._port.send(SetCwd(path))

        self._screen.app.push_screen(Ask("The folder the agent works in", self._screen.status.cwd), named)

    def command_setup(self, argument: str) -> None:
        self.open_setup("")

    def open_setup(self, reason: str, step: str = "provider", character: str = "") -> None:
        from letta_tui.ui.dialogs.setup import SetupScreen

        self._screen.app.push_screen(SetupScreen(self._port, reason, step, character))

    # -- this window

    def command_find(self, argument: str) -> None:
        self._screen.find_bar.open(argument)

    def command_copy(self, argument: str) -> None:
        text, what = self._screen.transcript.copy_text()
        if not text:
            answers = [r for r in self._screen.transcript.rows if r.kind == "assistant" and r.text]
            text, what = (answers[-1].text, "message") if answers else ("", "")
        self._screen.copy(text, what)

    def command_notifications(self, argument: str) -> None:
        if argument not in _NOTIFICATIONS:
            self._screen.say("/notifications takes on, bell or off.", "warning")
            return
        self._screen.letta.notifications, words = _NOTIFICATIONS[argument]
        self._screen.say(f"Notifications of this window while it is not looked at: {words}.")

    def command_theme(self, argument: str) -> None:
        screen = self._screen
        theme = _THEMES.get(argument or ("light" if screen.letta.current_theme.dark else "dark"))
        if theme is None:
            screen.say("/theme takes dark, light or auto.", "warning")
            return
        screen.letta.use_theme(theme)

        def remember() -> None:
            if wrong := screen.options.remember_theme(theme):
                screen.app.call_from_thread(screen.say, wrong, "warning")

        screen.run_worker(remember, thread=True)  # the disk may be slow

    def command_help(self, argument: str) -> None:
        self._screen.letta.action_help()

    def command_quit(self, argument: str) -> None:
        self._screen.run_worker(self._screen.letta.action_quit())

    # -- erasing

    def command_redact(self, argument: str) -> None:
        from letta_tui.ui.dialogs.picker import Item, Picker

        rows = [r for r in self._screen.transcript.rows if r.client_message_id and r.delivery != "redacted"]
        known = {r.client_message_id: r.text for r in rows}
        known.update({s.client_message_id: s.text for s in self._screen.sends})
        items = tuple(Item(key or "", one_line(text, 60)) for key, text in reversed(list(known.items())))
        if not items:
            self._screen.say("There is no message of yours here to redact.", "warning")
            return

        def chosen(message_id: str | None) -> None:
            if message_id:
                self._sure(
                    "Erase the text of this message?",
                    "It is erased from the records, caches and drafts of this computer. "
                    "The server keeps its copy.",
                    "Erase it here",
                    lambda _: self._port.send(Redact(message_id)),
                )

        self._screen.app.push_screen(Picker("Which message?", items), chosen)

    def command_forget(self, argument: str) -> None:
        if (here := self._here()) is not None:
            self._forget(*here, self._screen.status.conversation_title)

    def _forget(self, agent: str, conversation: str, title: str) -> None:
        self._sure(
            f"Forget “{one_line(title, 50)}” here?" if title else "Forget this conversation here?",
            "What this program stored about it is erased. The server's copy is not touched.",
            "Forget it",
            lambda _: self._port.send(ForgetConversation(agent, conversation)),
        )
