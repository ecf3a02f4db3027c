"""The first run: connect a provider, choose a model, name an agent. One plain page per step."""

from __future__ import annotations

import re

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from letta_tui.seam.channel import WorkerPort
from letta_tui.seam.intents import ConnectProvider, CreateAgent, ListModels, ListProviders
from letta_tui.seam.state import FormField, ModelItem, ProviderItem
from letta_tui.seam.updates import ModelsListed, ProviderConnected, ProvidersListed, StatusChanged, Update
from letta_tui.ui.dialogs.picker import Item
from letta_tui.ui.field import Field
from letta_tui.ui.keys import bindings, only
from letta_tui.ui.text.lines import cells
from letta_tui.ui.text.sanitise import one_line, safe

CONNECTED = "\x00connected"
_STEPS = ("provider", "model", "name")
_STEP_WORDS = {"provider": "Provider", "model": "Model", "name": "Agent"}
_USUAL = ("openai-compatible", "ollama", "lmstudio", "lm-studio", "anthropic", "openai", "openrouter")


def _usual(provider: ProviderItem) -> int:
    """What most people have comes first, the rest in the server's order."""
    name = provider.provider_id.casefold()
    return _USUAL.index(name) if name in _USUAL else len(_USUAL)


def _note(provider: ProviderItem) -> str:
    """The server's description without what every one of them says."""
    words = provider.description.removeprefix("Connect ").removesuffix(".")
    return "API key" if re.fullmatch(r"an? .{1,60} API key", words) else words


def _example(field: FormField) -> str:
    """What to write there: the server's words, else those for an address."""
    address = "url" in field.name.casefold() and not field.secret
    return one_line(field.placeholder) or ("https://host.example/v1" if address else "")


class ProviderForm(ModalScreen[bool], inherit_bindings=False):
    """The server's own fields for a provider. Keys are hidden, go to the server and nowhere else."""

    BINDINGS = bindings("form")

    DEFAULT_CSS = """
    ProviderForm {
        align: center middle; background: $background 60%;
        & #box { width: 90%; max-width: 76; height: auto; max-height: 95%; border: round $border;
                 background: $surface; padding: 0 1; }
        & #title { text-style: bold; height: auto; }
        & #about { color: $quiet; height: auto; }
        & .label { height: 1; margin: 1 0 0 0; }
        & #result { height: auto; margin: 1 0 0 0; }
        & #foot { color: $quiet; }
    }
    """

    def __init__(self, port: WorkerPort, provider: ProviderItem) -> None:
        super().__init__()
        self._port = port
        self._provider = provider
        self._busy = False

    def compose(self) -> ComposeResult:
        provider = self._provider
        with VerticalScroll(id="box", can_focus=False):
            yield Static(Content(one_line(provider.label)), id="title")
            about = safe(provider.description)
            secret = any(f.secret for f in provider.fields)
            note = "Keys are handed to the server; this program stores none." if secret else ""
            if about or note:
                yield Static(Content("\n".join(t for t in (about, note) if t)), id="about")
            for number, field in enumerate(provider.fields):
                label = one_line(field.label) + ("" if field.required else " (may be left empty)")
                yield Static(Content(label), classes="label")
                yield Field(field.default, _example(field), password=field.secret, id=f"field-{number}")
            yield Static("", id="result", markup=False)
            several = "Enter next, at the last one connect · Tab moves" if len(provider.fields) > 1 else ""
            yield Static(Content(f"{several or 'Enter connects'} · Esc back"), id="foot")

    def on_mount(self) -> None:
        inputs = self.query(Field)
        if inputs:
            inputs.first().focus()
        else:
            self._connect()

    def on_input_submitted(self, event: Field.Submitted) -> None:
        event.stop()
        inputs = list(self.query(Field))
        at = next(n for n, each in enumerate(inputs) if each is event.input)
        if at + 1 < len(inputs):
            inputs[at + 1].focus()
        else:
            self._connect()

    def _connect(self) -> None:
        if self._busy:
            return
        inputs = list(self.query(Field))
        for field, each in zip(self._provider.fields, inputs, strict=True):
            if field.required and not each.value.strip():
                self._say(f"“{one_line(field.label)}” is needed.", "$warning")
                each.focus()
                return
        self._busy = True
        self._say("Asking the server to connect…", "$quiet")
        values = tuple(
            (f.name, i.value.strip()) for f, i in zip(self._provider.fields, inputs, strict=True) if i.value
        )
        self._port.send(ConnectProvider(self._provider.provider_id, self._provider.auth_method_id, values))

    def _say(self, words: str, colour: str) -> None:
        self.query_one("#result", Static).update(Content.styled(safe(words), colour))

    def apply_update(self, update: Update) -> None:
        if isinstance(update, ProviderConnected) and update.provider_id == self._provider.provider_id:
            self._busy = False
            if update.ok:
                self.dismiss(True)
            else:
                self._say(update.error or "The server could not connect to it.", "$error")

    def action_leave(self) -> None:
        self.dismiss(False)


class SetupScreen(ModalScreen[None], inherit_bindings=False):
    """Three steps, each a list or a line; Esc goes one back. ``step``: where to begin;
    ``character``: the server's preset the agent is made from, "" for none."""

    BINDINGS = only("list", "leave", "choose", "move(-1)", "move(1)")
    AUTO_FOCUS = ""

    DEFAULT_CSS = """
    SetupScreen {
        background: $background; align: center top;
        & #setup-page { width: 100%; max-width: 88; height: 100%; padding: 1 3; }
        & #setup-title { height: 1; }
        & #setup-steps { height: 1; margin: 0 0 1 0; }
        & #setup-reason { height: auto; color: $warning; margin: 0 0 1 0; }
        & #setup-words { height: auto; text-style: bold; margin: 0 0 1 0; }
        & #setup-list { height: 1fr; }
        & #setup-lines { height: auto; }
        & Field { max-width: 60; display: none; margin: 0 0 1 0; }
        & #setup-foot { height: auto; color: $quiet; }
        &.-low #setup-page { padding: 0 1; }
        &.-low #setup-words { margin: 0; }
    }
    """

    def __init__(self, port: WorkerPort, reason: str, step: str = "provider", character: str = "") -> None:
        super().__init__()
        self._port = port
        self._reason = reason
        self._step = step
        self._steps = _STEPS[_STEPS.index(step) :]
        self._character = character
        self._providers: tuple[ProviderItem, ...] | None = None
        self._models: tuple[ModelItem, ...] | None = None
        self._error = ""
        self._model = ""
        self._at = 0
        self._creating = False
        self._needle = ""  # what was typed to search the list with

    def compose(self) -> ComposeResult:
        with Vertical(id="setup-page"):
            yield Static(self._title(), id="setup-title")
            yield Static("", id="setup-steps", markup=False)
            yield Static(Content(safe(self._reason)), id="setup-reason")
            yield Static("", id="setup-words", markup=False)
            yield Field("Letta", id="setup-name")
            with VerticalScroll(id="setup-list", can_focus=False):
                yield Static("", id="setup-lines", markup=False)
            yield Static("", id="setup-foot", markup=False)

    def _title(self) -> Content:
        first = "provider" in self._steps
        words = "  three short steps" if first else ""
        return Content.assemble(
            ("Welcome to letta-tui" if first else "A new agent", "bold $primary"), (words, "$quiet")
        )

    def on_mount(self) -> None:
        self._enter_step(self._step)

    def _enter_step(self, step: str) -> None:
        self._step, self._at, self._error, self._creating = step, 0, "", False
        self._needle = ""
        field = self.query_one("#setup-name", Field)
        field.display = step == "name"
        if step == "provider":
            self._port.send(ListProviders())
        elif step == "model":
            self._port.send(ListModels(force=True))
        else:
            field.focus()
        if step != "name":
            self.set_focus(None)
        self._draw()

    def _items(self) -> list[Item]:
        needle = self._needle.casefold()
        return [item for item in self._all() if needle in f"{item.label} {item.note}".casefold()]

    def _all(self) -> list[Item]:
        if self._step == "provider":
            items = [
                Item(
                    p.provider_id,
                    p.label,
                    "connected" if p.connected else _note(p),
                    "✓" if p.connected else " ",
                )
                for p in sorted(self._providers or (), key=_usual)
            ]
            if any(p.connected for p in self._providers or ()):
                items.insert(0, Item(CONNECTED, "Go on with what is connected"))
            return items
        if self._step == "model":
            return [
                Item(m.handle, m.label or m.handle, m.handle if m.label else "") for m in self._models or ()
            ]
        return []

    def _draw(self) -> None:
        parts: list[tuple[str, str]] = []
        at = self._steps.index(self._step)
        for number, name in enumerate(self._steps):
            mark, style = (
                ("✓", "$success")
                if number < at
                else ("●", "bold $primary")
                if number == at
                else ("○", "$quiet")
            )
            parts += [(" ── ", "$border")] if number else []
            parts.append((f"{mark} {_STEP_WORDS[name]}", style))
        self.query_one("#setup-steps", Static).update(Content.assemble(*parts))
        self.query_one("#setup-reason").display = bool(self._reason) and self._step == "provider"
        words = {
            "provider": "Where do the model's answers come from?",
            "model": "Which model should the agent use?",
            "name": "What is the agent called?",
        }[self._step]
        loaded = self._providers if self._step == "provider" else self._models
        items = self._items()
        lines: list[Content] = []
        if self._error:
            lines.append(Content.styled(safe(self._error), "$error"))
        elif self._step != "name" and loaded is None:
            lines.append(Content.styled("Asking the server…", "$quiet"))
        elif self._step != "name" and not items:
            none = f"None has “{one_line(self._needle)}” in its name." if self._needle else ""
            if self._step == "model" and not none:
                none = "The server found no model there. Check the provider's address and key: Esc goes back."
            lines.append(Content.styled(none or "The server names none. Esc goes back.", "$warning"))
        elif self._step == "name" and self._creating:
            lines.append(Content.styled("Making the agent…", "$quiet"))
        low = self.size.height < 20
        self.set_class(low, "-low")
        room = max(3, self.size.height - (8 if low else 12))
        wide = max(20, min(self.size.width, 88) - (4 if low else 8))
        first = max(0, min(self._at - room + 1, len(items) - room))
        longest = max((cells(item.label) for item in items), default=0)
        column = min(longest, 40, wide // 2)
        for number, item in enumerate(items[first : first + room], first):
            chosen = number == self._at
            label = one_line(item.label, column)
            line = Content.assemble(
                ("▸ " if chosen else "  ", "$primary"),
                (f"{item.mark} " if item.mark else "", "$success"),
                (label + " " * (column - cells(label) + 2), "bold" if chosen else ""),
                (one_line(item.note, max(8, wide - column - 7)), "$quiet"),
            )
            if chosen:
                line = line.pad_right(max(0, wide - line.cell_length)).stylize("on $chosen")
            lines.append(line)
        if len(items) > first + room:
            lines.append(Content.styled(f"    … {len(items) - first - room} more", "$quiet"))
        self.query_one("#setup-words", Static).update(Content(words))
        self.query_one("#setup-lines", Static).update(Content("\n").join(lines) if lines else Content(""))
        back = "Esc closes" if self._step == self._steps[0] else "Esc one back"
        move = "" if self._step == "name" else "↑↓ choose · type to search · "
        if self._needle:
            words = f"Searching for “{one_line(self._needle)}”. Backspace widens it."
            self.query_one("#setup-words", Static).update(Content(words))
            back = "Esc shows all"
        self.query_one("#setup-foot", Static).update(Content(f"{move}Enter goes on · {back} · Ctrl+Q quits"))

    def on_resize(self) -> None:
        self._draw()

    def apply_update(self, update: Update) -> None:
        if isinstance(update, ProvidersListed):
            self._providers, error = update.items, update.error
            if self._step == "provider":
                self._error = error
        elif isinstance(update, ModelsListed):
            self._models, error = update.items, update.error
            if self._step == "model":
                self._error = error
        elif isinstance(update, StatusChanged) and self._creating and update.status.conversation_id:
            self.dismiss(None)
            return
        else:
            return
        self._at = min(self._at, max(0, len(self._items()) - 1))
        self._draw()

    def trouble(self, words: str) -> None:
        """Making the agent did not work."""
        self._creating = False
        self._error = words
        self._draw()

    def action_move(self, by: int) -> None:
        self._at = max(0, min(len(self._items()) - 1, self._at + by))
        self._draw()

    def action_choose(self) -> None:
        items = self._items()
        if self._step == "name" or self._at >= len(items):
            return
        item_id = items[self._at].id
        if self._step == "model":
            self._model = item_id
            self._enter_step("name")
        elif item_id == CONNECTED:
            self._enter_step("model")
        else:
            provider = next(p for p in self._providers or () if p.provider_id == item_id)
            self.app.push_screen(ProviderForm(self._port, provider), self._connected)

    def _connected(self, ok: bool | None) -> None:
        if ok:
            self._enter_step("model")

    def on_input_submitted(self, event: Field.Submitted) -> None:
        event.stop()
        name = event.value.strip()
        if self._step == "name" and name and not self._creating:
            self._creating = True
            self._error = ""
            self._port.send(CreateAgent(name, self._model, self._character))
            self._draw()

    def on_key(self, event: events.Key) -> None:
        if self._step != "name" and event.is_printable and event.character:
            event.stop()
            self._search(self._needle + event.character)
        elif self._step != "name" and event.key == "backspace" and self._needle:
            event.stop()
            self._search(self._needle[:-1])

    def _search(self, needle: str) -> None:
        self._needle, self._at = needle.lstrip(), 0
        self._draw()

    def action_leave(self) -> None:
        if self._needle:
            self._search("")
        elif self._step == "name":
            self._enter_step("model")
        elif self._step == "model" and "provider" in self._steps:
            self._enter_step("provider")
        else:
            self.dismiss(None)
