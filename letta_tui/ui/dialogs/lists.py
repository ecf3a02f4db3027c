"""The lists of conversations, agents, models and modes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from textual.timer import Timer

from letta_tui.seam.channel import WorkerPort
from letta_tui.seam.intents import ListAgents, ListConversations, ListDevices, ListModels
from letta_tui.seam.state import AgentItem, ConversationItem, DeviceItem
from letta_tui.seam.updates import AgentsListed, ConversationsListed, DevicesListed, ModelsListed, Update
from letta_tui.ui.dialogs.picker import Item, Picker
from letta_tui.ui.field import Field
from letta_tui.ui.keys import bindings, only
from letta_tui.ui.options import ProfileChoice
from letta_tui.ui.text.sanitise import one_line
from letta_tui.ui.times import ago

NEW = "\x00new"


def _name(item: ConversationItem) -> str:
    """The title; without one what was written there last says more than a number."""
    return item.title or one_line(item.last_sent, 48) or item.conversation_id


class ConversationPicker(Picker):
    """Returns "agent conversation", :data:`NEW`, or "manage agent conversation"."""

    BINDINGS = bindings("conversations")

    def __init__(
        self, port: WorkerPort, clock: Callable[[], float], agent_id: str | None = None, agent_name: str = ""
    ) -> None:
        of_whom = f" of {one_line(agent_name, 40)}" if agent_name else ""
        super().__init__(f"Conversations{of_whom}", loading="Asking the server…")
        self._agent_id = agent_id
        self._port = port
        self._clock = clock
        self._archived = False
        self._found: tuple[ConversationItem, ...] = ()
        self._asked = ""
        self._timer: Timer | None = None

    def foot_words(self) -> str:
        return "Enter open · Tab more · Ctrl+N new · Ctrl+O archived · Esc back"

    def on_mount(self) -> None:
        super().on_mount()
        self._ask()

    def _ask(self) -> None:
        self._asked = self.query_one("#filter", Field).value.strip()
        self._port.send(ListConversations(self._agent_id, self._asked, self._archived))

    def on_input_changed(self, event: Field.Changed) -> None:
        super().on_input_changed(event)
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(0.25, self._ask_if_new)

    def _ask_if_new(self) -> None:
        if self.query_one("#filter", Field).value.strip() != self._asked:
            self._ask()

    def apply_update(self, update: Update) -> None:
        if isinstance(update, ConversationsListed):
            self.words(update.error)
            self._found = update.items
            items = tuple(self._item(i) for i in update.items)
            none = "There are none here." if self._asked else "There are none yet: Ctrl+N starts one."
            self.fill(items, empty="" if items else none)

    def _item(self, each: ConversationItem) -> Item:
        notes = [each.note]  # first: the end is cut off where there is little room
        if each.open_sends:
            notes.append(f"{each.open_sends} not settled")
        if each.archived and each.note != "archived":
            notes.append("archived")
        notes.append(each.agent_name)
        if each.updated is not None:
            notes.append(ago(self._clock() - each.updated))
        return Item(
            f"{each.agent_id} {each.conversation_id}",
            f"“{_name(each)}”" if each.last_sent and not each.title else _name(each),
            " · ".join(n for n in notes if n),
            mark="▸" if each.current else "!" if each.note == "approval waiting" else " ",
        )

    def action_new(self) -> None:
        self.dismiss(NEW)

    def action_more(self) -> None:
        if (item_id := self.highlighted_id) is not None:
            self.dismiss(f"manage {item_id}")

    def action_archived(self) -> None:
        self._archived = not self._archived
        self._ask()

    def title_of(self, conversation_id: str) -> str:
        found = next((i for i in self._found if i.conversation_id == conversation_id), None)
        return _name(found) if found else conversation_id

    def is_archived(self, conversation_id: str) -> bool:
        return any(i.archived for i in self._found if i.conversation_id == conversation_id)


def manage_picker(title: str, archived: bool) -> Picker:
    """What can be done with a conversation."""
    return Picker(
        f"“{one_line(title, 60)}”",
        (
            Item("open", "Open"),
            Item("rename", "Rename"),
            Item("unarchive", "Take out of the archive")
            if archived
            else Item("archive", "Archive", "it can be found again with Ctrl+O"),
            Item("fork", "Fork", "a copy to go on with; this one stays as it is"),
            Item("compact", "Compact", "the server summarises the older part"),
            Item("forget", "Forget here", "erases what this computer stored; the server keeps its copy"),
            Item(
                "delete", "Hide", "this server deletes no conversation: archived, in no list", style="$error"
            ),
        ),
        searchable=False,
    )


def confirm(title: str, words: str, yes: str, more: str = "") -> Picker:
    """A question whose harmless answer comes first; returns "yes" for the other one, "more" for a third."""
    third = (Item("more", more, style="$error"),) if more else ()
    return Picker(
        title,
        (Item("no", "No, leave it as it is"), Item("yes", yes, style="$error"), *third),
        words=words,
        searchable=False,
    )


class AgentPicker(Picker):
    """Returns an agent's id, :data:`NEW`, or "manage agent"."""

    BINDINGS = only("conversations", "more")

    def __init__(self, port: WorkerPort) -> None:
        super().__init__("Agents", loading="Asking the server…", foot="Enter open · Tab more · Esc back")
        self._port = port
        self._found: tuple[AgentItem, ...] = ()

    def on_mount(self) -> None:
        super().on_mount()
        self._port.send(ListAgents())

    def apply_update(self, update: Update) -> None:
        if isinstance(update, AgentsListed):
            self.words(update.error)
            self._found = update.items
            known = tuple(
                Item(a.agent_id, a.name or a.agent_id, a.model, mark="▸" if a.current else " ")
                for a in update.items
            )
            self.fill((*known, Item(NEW, "A new agent…", mark="+")))

    def action_more(self) -> None:
        if (item_id := self.highlighted_id) is not None and item_id != NEW:
            self.dismiss(f"manage {item_id}")

    def name_of(self, agent_id: str) -> str:
        return next((a.name for a in self._found if a.agent_id == agent_id and a.name), agent_id)


def manage_agent_picker(name: str) -> Picker:
    return Picker(
        f"“{one_line(name, 60)}”",
        (
            Item("open", "Its conversations"),
            Item("rename", "Rename"),
            Item("delete", "Delete", "on the server, with its memory, for good", style="$error"),
        ),
        searchable=False,
    )


def character_picker() -> Picker:
    """Presets the server has for a new agent; "" in the answer is none of them."""
    return Picker(
        "What kind of agent?",
        (
            Item("plain", "A plain one", "with the server's ordinary memory"),
            Item("memo", "Memo", "the server's preset that keeps notes about you"),
            Item("tutorial", "Tutorial", "explains itself as it goes"),
            Item("blank", "Blank", "an empty memory"),
            Item("linus", "Linus", "blunt"),
            Item("kawaii", "Kawaii", "playful"),
        ),
        searchable=False,
    )


def profile_picker(choices: tuple[ProfileChoice, ...]) -> Picker:
    return Picker(
        "Profiles",
        tuple(
            Item(
                c.name,
                c.name,
                c.trouble or c.where,
                mark="▸" if c.current else " ",
                style="$warning" if c.trouble else "",
            )
            for c in choices
        ),
        words="The window goes on with another server; a turn that runs here can be left running.",
        chosen=next((c.name for c in choices if c.current), ""),
    )


class DevicePicker(Picker):
    """Returns a device id, or "sandbox"."""

    def __init__(self, port: WorkerPort, clock: Callable[[], float]) -> None:
        super().__init__("Machines", loading="Asking the service…")
        self._port = port
        self._clock = clock

    def on_mount(self) -> None:
        super().on_mount()
        self._port.send(ListDevices())

    def apply_update(self, update: Update) -> None:
        if not isinstance(update, DevicesListed):
            return
        self.words(update.error)
        items = [self._item(d) for d in update.items]
        if update.sandbox:
            mark = "▸" if update.in_sandbox else "+"
            items.append(Item("sandbox", "A managed sandbox", "made and kept by the service", mark=mark))
        self.fill(tuple(items), empty="" if items else "There are none.")

    def _item(self, device: DeviceItem) -> Item:
        if device.online:
            state = "online"
        elif device.seen is None:
            state = "offline"
        else:
            state = f"offline, seen {ago(self._clock() - device.seen)}"
        where = f"{device.folder} ({device.branch})" if device.branch else device.folder
        note = " · ".join(part for part in (state, where) if part)
        style = "" if device.online else "$quiet"
        return Item(device.device_id, device.name, note, mark="▸" if device.current else " ", style=style)


class ModelPicker(Picker):
    """Returns a model's handle."""

    def __init__(self, port: WorkerPort, current: str = "", title: str = "Models") -> None:
        super().__init__(title, loading="Asking the server…", chosen=current)
        self._port = port
        self._current = current

    def on_mount(self) -> None:
        super().on_mount()
        self._port.send(ListModels())

    def apply_update(self, update: Update) -> None:
        if isinstance(update, ModelsListed):
            self.words(update.error)
            self.fill(
                tuple(
                    Item(m.handle, m.label or m.handle, m.handle if m.label and m.label != m.handle else "",
                         mark="▸" if m.handle == self._current else " ")
                    for m in update.items
                ),
                empty="" if update.items else "The server knows no models: /setup connects a provider.",
            )  # fmt: skip


def mode_picker(current: str) -> Picker:
    modes = (
        Item("standard", "Ask first", "reading is free, the rest is asked about"),
        Item("acceptEdits", "Edit without asking", "files are changed without a question"),
        Item("strict", "Ask for everything"),
        Item("unrestricted", "Ask for nothing", "every command runs at once", style="$error"),
    )
    return Picker(
        "What runs without being asked",
        tuple(replace(item, mark="▸" if item.id == current else " ") for item in modes),
        searchable=False,
        chosen=current,
    )
