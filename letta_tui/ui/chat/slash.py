"""The slash commands: what they are called and what a typed line means. No screen in here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    action: str  # a method of the conversation screen: ``command_<action>(argument)``
    words: str
    argument: str = ""  # how the argument is called in the list; empty when there is none


COMMANDS: tuple[Command, ...] = (
    Command("new", "new", "Start a new conversation with this agent"),
    Command("conversations", "conversations", "Open another conversation"),
    Command("agents", "agents", "Talk to another agent, make, rename or delete one"),
    Command("profile", "profile", "Go to another server: a profile of the config file", "name"),
    Command("device", "device", "Choose the machine a hosted conversation runs on"),
    Command("model", "model", "Choose the model", "model"),
    Command("mode", "mode", "Choose what runs without being asked", "mode"),
    Command("cwd", "cwd", "Change the folder the agent works in", "folder"),
    Command("rename", "rename", "Give this conversation a title", "title"),
    Command("fork", "fork", "Go on in a copy of this conversation"),
    Command("compact", "compact", "Ask the server to summarise the older part"),
    Command("find", "find", "Search in this conversation", "text"),
    Command("copy", "copy", "Copy the selection, or the last answer"),
    Command("setup", "setup", "Connect a model provider"),
    Command("redact", "redact", "Erase the text of a message from this computer's records"),
    Command("forget", "forget", "Erase what this program stored about this conversation"),
    Command("notifications", "notifications", "Notifications of this window", "on|bell|off"),
    Command(
        "theme",
        "theme",
        "Colours, remembered; auto: as the config file or the terminal says",
        "dark|light|auto",
    ),
    Command("help", "help", "Keys and commands"),
    Command("quit", "quit", "Leave; asks while a turn is running"),
)

BY_NAME = {c.name: c for c in COMMANDS}


@dataclass(frozen=True, slots=True)
class Text:
    """Send ``text``."""

    text: str


@dataclass(frozen=True, slots=True)
class Run:
    command: Command
    argument: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """A line that looks like a command and is none: tell before sending it as text."""

    name: str
    text: str


def read(text: str) -> Text | Run | Unknown:
    """What ``text`` asks for. ``//…`` is a text that begins with one slash."""
    if text.startswith("//"):
        return Text(text[1:])
    if not text.startswith("/"):
        return Text(text)
    first, _, rest = text[1:].partition(" ")
    name = first.strip().lower()
    if "\n" in first or "/" in first or not name:
        return Text(text)  # several lines, a path or a lone slash: no command
    if (command := BY_NAME.get(name)) is not None:
        return Run(command, rest.strip())
    return Unknown(name, text)


def completions(text: str) -> tuple[Command, ...]:
    """The commands ``text`` may become, while only a command's name is being typed."""
    if not text.startswith("/") or text.startswith("//") or any(c in text for c in " \n"):
        return ()
    prefix = text[1:].lower()
    return tuple(c for c in COMMANDS if c.name.startswith(prefix))
