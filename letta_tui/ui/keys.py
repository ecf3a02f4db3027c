"""Every key of the program in one table: the bindings, the key bar and the help screen are made from it.

Choice of keys. A chord that answers an approval must not be text, must reach a program inside tmux and
over ssh, and must not be a key that fingers know from editing: Ctrl+Y is "yank" and "redo", Ctrl+N is
"next line", Alt+letters arrive as Esc and a letter. The function keys F8 and F9 are none of these; where
a keyboard has no function keys, Tab and a letter do the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from textual.binding import Binding, BindingType

Place = Literal[
    "everywhere",
    "conversation",
    "composer",
    "line",
    "approval",
    "queue",
    "transcript",
    "recovery",
    "list",
    "conversations",
    "form",
    "details",
    "page",
]


@dataclass(frozen=True, slots=True)
class Key:
    """``keys``: comma separated, as Textual spells them. ``bar``: shown in the key bar when it works."""

    keys: str
    action: str
    words: str
    place: Place
    bar: str = ""
    priority: bool = False


KEYS: tuple[Key, ...] = (
    Key("f1", "help", "This help", "everywhere", "help", priority=True),
    Key(
        "f2",
        "conversations",
        "Conversations: open, new, search, rename, archive, hide",
        "conversation",
        "chats",
        priority=True,
    ),
    Key("f3,ctrl+f", "find", "Search in this conversation", "conversation", "find", priority=True),
    Key(
        "f4",
        "details",
        "Everything about the waiting tool call, on the whole screen",
        "conversation",
        "details",
        priority=True,
    ),
    Key("f6", "put_away", "Put away the card about what happened", "conversation", "put away", priority=True),
    Key("ctrl+t", "jump_left", "To the line where you left", "conversation", "where I left", priority=True),
    Key(
        "f7",
        "take_card",
        "Move to the card that waits for an answer, and back",
        "conversation",
        "card",
        priority=True,
    ),
    Key("f8", "chord_allow", "Allow the tool call on the card", "conversation", "allow", priority=True),
    Key("f9", "chord_deny", "Deny the tool call on the card", "conversation", "deny", priority=True),
    Key(
        "tab",
        "next_panel",
        "Move between composer, cards, queue and transcript",
        "conversation",
        priority=True,
    ),
    Key("shift+tab", "previous_panel", "The same, backwards", "conversation", priority=True),
    Key(
        "escape",
        "escape",
        "Leave a card, a search or a selection; else stop the running turn",
        "conversation",
        priority=True,
    ),
    Key("pageup", "page(-1)", "Scroll the transcript up", "conversation", priority=True),
    Key("pagedown", "page(1)", "Scroll the transcript down", "conversation", priority=True),
    Key("ctrl+home", "jump_top", "To the beginning of the conversation", "conversation", priority=True),
    Key("ctrl+end", "jump_bottom", "To the end, and follow it", "conversation", priority=True),
    Key("alt+up", "jump_user(-1)", "To the message you sent before", "conversation", priority=True),
    Key("alt+down", "jump_user(1)", "To the message you sent after", "conversation", priority=True),
    Key("ctrl+g", "resume_queue", "Release paused messages", "conversation", "resume", priority=True),
    Key("ctrl+r", "reconnect", "Connect again now", "conversation", "reconnect", priority=True),
    Key("ctrl+c", "copy", "Copy what is selected with the mouse", "conversation"),
    Key("ctrl+q", "quit", "Quit; asks while a turn is running", "everywhere", "quit", priority=True),
    Key("ctrl+z", "suspend_process", "Suspend to the shell; fg comes back", "everywhere", priority=True),
    # the composer
    Key("enter", "submit", "Send", "composer"),
    Key(
        "shift+enter,ctrl+j,alt+enter,ctrl+enter",
        "newline",
        "New line (Shift+Enter where the terminal can, Ctrl+J everywhere)",
        "composer",
    ),
    Key("up", "up", "Line up; from the first line: earlier messages", "composer"),
    Key("down", "down", "Line down; from the last line: later messages", "composer"),
    Key(
        "ctrl+c",
        "interrupt",
        "Copy the selection; else put the draft away; else quit on the second press",
        "composer",
    ),
    Key("ctrl+underscore,super+z", "undo", "Undo (Ctrl+_)", "composer"),
    Key("ctrl+y,super+y", "redo", "Redo", "composer"),
    Key("left", "cursor_left", "Left", "composer"),
    Key("right", "cursor_right", "Right", "composer"),
    Key("ctrl+left,alt+b", "cursor_word_left", "Word left", "composer"),
    Key("ctrl+right,alt+f", "cursor_word_right", "Word right", "composer"),
    Key("home,ctrl+a", "cursor_line_start", "Start of the line", "composer"),
    Key("end,ctrl+e", "cursor_line_end", "End of the line", "composer"),
    Key("shift+left", "cursor_left(True)", "Select left", "composer"),
    Key("shift+right", "cursor_right(True)", "Select right", "composer"),
    Key("shift+up", "cursor_up(True)", "Select up", "composer"),
    Key("shift+down", "cursor_down(True)", "Select down", "composer"),
    Key("shift+home", "cursor_line_start(True)", "Select to the start of the line", "composer"),
    Key("shift+end", "cursor_line_end(True)", "Select to the end of the line", "composer"),
    Key("ctrl+shift+left", "cursor_word_left(True)", "Select a word to the left", "composer"),
    Key("ctrl+shift+right", "cursor_word_right(True)", "Select a word to the right", "composer"),
    Key("f5", "select_all", "Select all", "composer"),
    Key("backspace", "delete_left", "Delete to the left", "composer"),
    Key("delete,ctrl+d", "delete_right", "Delete to the right", "composer"),
    Key("ctrl+w,ctrl+backspace,alt+backspace", "delete_word_left", "Delete the word to the left", "composer"),
    Key("alt+delete,alt+d", "delete_word_right", "Delete the word to the right", "composer"),
    Key("ctrl+u", "delete_to_start_of_line", "Delete to the start of the line", "composer"),
    Key("ctrl+k", "delete_to_end_of_line_or_delete_line", "Delete to the end of the line", "composer"),
    Key("ctrl+x", "cut", "Cut", "composer"),
    Key("ctrl+v", "paste", "Paste what was copied here", "composer"),
    # one line of text: a search, a reason, a name
    Key("enter", "submit", "Take it: search, next line, go on", "line"),
    Key("left", "cursor_left", "Left", "line"),
    Key("right", "cursor_right", "Right", "line"),
    Key("ctrl+left,alt+b", "cursor_left_word", "Word left", "line"),
    Key("ctrl+right,alt+f", "cursor_right_word", "Word right", "line"),
    Key("home,ctrl+a", "home", "Start", "line"),
    Key("end,ctrl+e", "end", "End", "line"),
    Key("shift+left", "cursor_left(True)", "Select left", "line"),
    Key("shift+right", "cursor_right(True)", "Select right", "line"),
    Key("shift+home", "home(True)", "Select to the start", "line"),
    Key("shift+end", "end(True)", "Select to the end", "line"),
    Key("f5", "select_all", "Select all", "line"),
    Key("backspace", "delete_left", "Delete to the left", "line"),
    Key("delete,ctrl+d", "delete_right", "Delete to the right", "line"),
    Key("ctrl+w,ctrl+backspace,alt+backspace", "delete_left_word", "Delete the word to the left", "line"),
    Key("ctrl+u", "delete_left_all", "Delete to the start", "line"),
    Key("ctrl+k", "delete_right_all", "Delete to the end", "line"),
    Key("ctrl+c", "copy", "Copy the selection", "line"),
    Key("ctrl+x", "cut", "Cut", "line"),
    Key("ctrl+v", "paste", "Paste what was copied here", "line"),
    # the approval card, after the focus was moved to it
    Key("y,a", "allow", "Allow", "approval", priority=True),
    Key("n", "deny", "Deny", "approval", priority=True),
    Key("r", "reason", "Deny with a reason: Enter sends it, Esc goes back", "approval", priority=True),
    Key("1,2,3,4,5,6,7,8,9", "suggest", "Allow, with the server's suggestion of that number", "approval"),
    Key("up", "scroll_up", "Scroll the card up", "approval"),
    Key("down", "scroll_down", "Scroll the card down", "approval"),
    # the queue
    Key("up", "move(-1)", "Previous waiting message", "queue"),
    Key("down", "move(1)", "Next waiting message", "queue"),
    Key("x,delete,backspace", "cancel", "Take the waiting message back", "queue"),
    # the transcript: no letters, so that text typed there goes to the composer
    Key("up", "cursor(-1)", "Row up", "transcript"),
    Key("down", "cursor(1)", "Row down", "transcript"),
    Key("enter,space", "activate", "Unfold or fold the row; of a message: what became of it", "transcript"),
    Key("right", "unfold", "Unfold; once more: all of a long output", "transcript"),
    Key("left", "fold", "Fold", "transcript"),
    Key("home", "top", "To the beginning", "transcript"),
    Key("end", "bottom", "To the end, and follow it", "transcript"),
    Key("ctrl+c", "copy", "Copy what is selected with the mouse, else the row", "transcript"),
    # cards with choices
    Key("up", "choice(-1)", "The message above", "recovery"),
    Key("down", "choice(1)", "The message below", "recovery"),
    # lists
    Key("enter", "choose", "Open", "list"),
    Key("escape", "leave", "Close without doing anything", "list", priority=True),
    Key("up", "move(-1)", "Up", "list", priority=True),
    Key("down", "move(1)", "Down", "list", priority=True),
    Key("pageup", "move(-10)", "Ten up", "list", priority=True),
    Key("pagedown", "move(10)", "Ten down", "list", priority=True),
    Key(
        "tab", "more", "What else can be done with the conversation or agent", "conversations", priority=True
    ),
    Key("ctrl+n", "new", "A new conversation", "conversations", priority=True),
    Key("ctrl+o", "archived", "Show the archived ones, or no longer", "conversations", priority=True),
    Key("tab", "app.focus_next", "Next field", "form", priority=True),
    Key("shift+tab", "app.focus_previous", "Field before", "form", priority=True),
    Key("escape", "leave", "Back", "form", priority=True),
    Key("escape", "leave", "Back", "details", priority=True),
    # a page to read
    Key("up", "scroll_up", "Scroll up", "page"),
    Key("down", "scroll_down", "Scroll down", "page"),
    Key("pageup", "page_up", "A page up", "page"),
    Key("pagedown", "page_down", "A page down", "page"),
    Key("home", "scroll_home", "To the beginning", "page"),
    Key("end", "scroll_end", "To the end", "page"),
)

_NAMES = {
    "escape": "Esc", "pageup": "PgUp", "pagedown": "PgDn", "enter": "Enter", "tab": "Tab", "up": "↑",
    "down": "↓", "left": "←", "right": "→", "backspace": "Backspace", "delete": "Del", "home": "Home",
    "end": "End", "underscore": "_", "space": "Space", "ctrl": "Ctrl", "shift": "Shift", "alt": "Alt",
    "super": "Cmd", "left_square_bracket": "[", "right_square_bracket": "]",
}  # fmt: skip


def key_name(key: str) -> str:
    """A key as a person reads it: ``ctrl+home`` is ``Ctrl+Home``."""
    parts = key.split("+")
    return "+".join(_NAMES.get(p, p.upper() if len(p) == 1 and len(parts) > 1 else _title(p)) for p in parts)


def _title(part: str) -> str:
    return part.upper() if part[0] == "f" and part[1:].isdigit() else part


def names(keys: str) -> str:
    """Several keys, readable: the first two say enough in a narrow column."""
    return " ".join(key_name(k) for k in keys.split(","))


def bindings(*places: Place) -> list[BindingType]:
    """The bindings of ``places`` for a ``BINDINGS`` table."""
    made: list[BindingType] = []
    for key in KEYS:
        if key.place not in places:
            continue
        if key.action == "suggest":
            for digit in key.keys.split(","):
                made.append(Binding(digit, f"suggest({digit})", key.words, show=False, priority=True))
            continue
        made.append(
            Binding(key.keys, key.action, key.bar or key.words, show=bool(key.bar), priority=key.priority)
        )
    return made


def text_keys(place: Place) -> frozenset[str]:
    """The keys of ``place`` that would be text in a field."""
    found = {part for key in KEYS if key.place == place for part in key.keys.split(",")}
    return frozenset(part for part in found if len(part) == 1 or part == "space")


def only(place: Place, *actions: str) -> list[BindingType]:
    """Some of the bindings of ``place``, for a screen that has no use for the others."""
    return [b for b in bindings(place) if isinstance(b, Binding) and b.action in actions]
