"""A list to choose from, with a line to search in it. Every other list is made of this one."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Region
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from letta_tui.ui.clicks import DOUBLE
from letta_tui.ui.field import Field
from letta_tui.ui.keys import bindings, only
from letta_tui.ui.text.sanitise import one_line


@dataclass(frozen=True, slots=True)
class Item:
    """``id`` is what is returned; ``note`` stands behind the label, ``mark`` in front of it."""

    id: str
    label: str
    note: str = ""
    mark: str = ""
    style: str = ""


class Options(OptionList, inherit_bindings=False):
    """The list itself; the keys are the screen's.

    A click counts when this list was there before it: the second one of a double click may have opened it, or
    another list may have stood there.
    """

    def __init__(self) -> None:
        super().__init__(id="options")
        self._held: list[str | None] = []
        self.since: float | None = None  # painted with these, in monotonic seconds

    def hold(self, options: list[Option]) -> None:
        """Show these."""
        ids = [option.id for option in options]
        if ids != self._held:
            self._held, self.since = ids, None
        self.clear_options()
        self.add_options(options)

    def render_lines(self, crop: Region) -> list[Strip]:
        if self.since is None:
            self.since = monotonic()
        return super().render_lines(crop)

    def on_click(self, event: events.Click) -> None:
        pressed: float = getattr(self.app, "press_time", 0.0)
        if self.since is None or self.since + DOUBLE > pressed:
            event.prevent_default()


class Picker(ModalScreen[str | None], inherit_bindings=False):
    """Returns the id of the chosen item, or None when it was left."""

    BINDINGS = bindings("list")
    AUTO_FOCUS = ""

    DEFAULT_CSS = """
    Picker {
        align: center middle; background: $background 60%;
        & #box { width: 90%; max-width: 88; height: auto; max-height: 90%; border: round $border;
                 background: $surface; padding: 0 1; }
        & #title { text-style: bold; height: auto; }
        & #words { color: $quiet; height: auto; display: none; }
        & #words.-shown { display: block; }
        & Options { height: auto; max-height: 100%; border: none; background: $surface; padding: 0;
                    margin: 1 0 0 0; text-wrap: nowrap; text-overflow: ellipsis;
                    &:focus { border: none; background: $surface; background-tint: $foreground 0%; }
                    & > .option-list--option { padding: 0 1; }
                    & > .option-list--option-hover { background: $panel; }
                    & > .option-list--option-highlighted,
                    &:focus > .option-list--option-highlighted {
                        background: $chosen; color: $foreground; text-style: bold; } }
        & #foot { color: $quiet; height: auto; margin: 1 0 0 0; }
    }
    """

    def __init__(
        self,
        title: str,
        items: tuple[Item, ...] = (),
        *,
        words: str = "",
        searchable: bool = True,
        chosen: str = "",
        loading: str = "",
        foot: str = "",
    ) -> None:
        super().__init__()
        self._title = title
        self._words = words
        self._items = items
        self._searchable = searchable
        self._chosen = chosen
        self._loading = loading
        self._foot = foot

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(Content(one_line(self._title)), id="title")
            yield Static(Content(self._words), id="words", classes="-shown" if self._words else "")
            if self._searchable:
                yield Field(placeholder="type to search", id="filter")
            yield Options()
            yield Static(Content(self.foot_words()), id="foot")

    def on_resize(self) -> None:
        # What stands around the list stays on a low screen: frame, title, words, search, margins, foot.
        around = 6 + (3 if self._words else 0) + self._searchable
        self.options.styles.max_height = max(2, self.app.size.height * 9 // 10 - around)

    def foot_words(self) -> str:
        return self._foot or "Enter choose · Esc back"

    def on_mount(self) -> None:
        self.options.can_focus = not self._searchable
        self.query_one(Field if self._searchable else Options).focus()
        self.fill(self._items)

    @property
    def options(self) -> Options:
        return self.query_one("#options", Options)

    @property
    def highlighted_id(self) -> str | None:
        at = self.options.highlighted
        return None if at is None else self.options.get_option_at_index(at).id

    def entitle(self, title: str) -> None:
        self.query_one("#title", Static).update(Content(one_line(title)))

    def words(self, words: str) -> None:
        """A sentence under the title: an error, or what is being waited for."""
        line = self.query_one("#words", Static)
        line.update(Content(one_line(words, 400)))
        line.set_class(bool(words), "-shown")

    def fill(self, items: tuple[Item, ...], empty: str = "") -> None:
        """Show ``items``, keeping the highlighted one highlighted."""
        keep = self.highlighted_id or self._chosen
        self._items = items
        query = self.query_one("#filter", Field).value.casefold() if self._searchable else ""
        found = [i for i in items if query in f"{i.label} {i.note}".casefold()]
        lines = [Option(self._prompt(i), id=i.id) for i in found]
        if not items and self._loading and not empty:
            lines = [Option(Content.styled(self._loading, "$quiet"), disabled=True)]
        elif not found:
            lines = [Option(Content.styled(empty or "Nothing is called that.", "$quiet"), disabled=True)]
        options = self.options
        options.hold(lines)
        places = {i.id: n for n, i in enumerate(found)}
        if found:
            options.highlighted = places.get(keep, 0)

    def _prompt(self, item: Item) -> Content:
        return Content.assemble(
            (f"{item.mark} " if item.mark else "", "$accent"),
            (one_line(item.label, 60) + "  ", item.style),
            (one_line(item.note, 60), "$quiet"),
        )

    def on_input_changed(self, event: Field.Changed) -> None:
        event.stop()
        self.fill(self._items)

    def on_input_submitted(self, event: Field.Submitted) -> None:
        event.stop()
        self.action_choose()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option.id is not None:
            self.chosen(event.option.id)

    def action_move(self, by: int) -> None:
        options = self.options
        last = options.option_count - 1
        if last >= 0:
            options.highlighted = max(0, min(last, (options.highlighted or 0) + by))

    def action_choose(self) -> None:
        if (item_id := self.highlighted_id) is not None:
            self.chosen(item_id)

    def chosen(self, item_id: str) -> None:
        """An item was chosen; lists with more to ask override this."""
        self.dismiss(item_id)

    def action_leave(self) -> None:
        self.dismiss(None)


class Ask(ModalScreen[str | None], inherit_bindings=False):
    """One line of text; None when it was left."""

    BINDINGS = only("list", "leave")

    DEFAULT_CSS = """
    Ask {
        align: center middle; background: $background 60%;
        & #box { width: 80%; max-width: 70; height: auto; border: round $border; background: $surface;
                 padding: 0 1; }
        & #title { text-style: bold; }
        & Field { margin: 1 0; }
        & #foot { color: $quiet; }
    }
    """

    def __init__(self, title: str, value: str = "") -> None:
        super().__init__()
        self._title = title
        self._value = value

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(Content(one_line(self._title)), id="title")
            yield Field(self._value)
            yield Static(Content("Enter keeps it · Esc back"), id="foot")

    def on_input_submitted(self, event: Field.Submitted) -> None:
        event.stop()
        self.dismiss(event.value.strip() or None)

    def action_leave(self) -> None:
        self.dismiss(None)
