"""What the style names of lines look like, taken from the theme through component classes."""

from __future__ import annotations

from rich.style import Style
from textual.widget import Widget

_COMPONENTS: dict[str, str] = {
    "text": "color: $foreground;",
    "dim": "color: $foreground 55%;",
    "strong": "text-style: bold;",
    "em": "text-style: italic;",
    "strike": "text-style: strike;",
    "code": "color: $text-accent; background: $foreground 8%;",
    "link": "color: $text-primary; text-style: underline;",
    "target": "color: $foreground 55%;",
    "quote": "color: $foreground 75%;",
    "done": "color: $foreground 55%;",
    "bar": "color: $primary 60%;",
    "marker": "color: $text-primary;",
    "rule": "color: $foreground 25%;",
    "heading1": "color: $text-primary; text-style: bold underline;",
    "heading2": "color: $text-primary; text-style: bold;",
    "heading3": "color: $foreground; text-style: bold;",
    "table-head": "color: $foreground; text-style: bold;",
    "table-line": "color: $foreground 25%;",
    "code-text": "color: $foreground; background: $foreground 6%;",
    "code-mark": "color: $foreground 45%; background: $foreground 6%;",
    "code-comment": "color: $foreground 50%; background: $foreground 6%; text-style: italic;",
    "code-keyword": "color: $text-primary; background: $foreground 6%;",
    "code-type": "color: $text-secondary; background: $foreground 6%;",
    "code-function": "color: $text-accent; background: $foreground 6%;",
    "code-builtin": "color: $text-secondary; background: $foreground 6%;",
    "code-string": "color: $text-success; background: $foreground 6%;",
    "code-number": "color: $text-warning; background: $foreground 6%;",
    "code-operator": "color: $foreground 75%; background: $foreground 6%;",
    "code-removed": "color: $text-error; background: $foreground 6%;",
    "code-added": "color: $text-success; background: $foreground 6%;",
    "user": "color: $foreground; text-style: bold;",
    "user-bar": "color: $accent;",
    "cursor-bar": "color: $primary;",
    "tool": "color: $foreground; text-style: bold;",
    "argument": "color: $foreground 80%;",
    "output": "color: $foreground 70%;",
    "fold": "color: $text-primary;",
    "quiet": "color: $foreground 45%;",
    "good": "color: $text-success;",
    "bad": "color: $text-error;",
    "pending": "color: $text-warning;",
    "away": "color: $text-accent;",
    "found": "color: $background; background: $warning;",
}

COMPONENT_CLASSES = frozenset(f"transcript--{name}" for name in _COMPONENTS)
CSS = "\n".join(f"TranscriptView > .transcript--{name} {{ {rules} }}" for name, rules in _COMPONENTS.items())


class Palette:
    """Style names resolved once per theme."""

    def __init__(self, widget: Widget) -> None:
        self._widget = widget
        self._cache: dict[str, Style] = {}
        self._base: Style | None = None

    def clear(self) -> None:
        """The theme changed."""
        self._cache.clear()
        self._base = None

    @property
    def base(self) -> Style:
        if self._base is None:
            self._base = self._widget.rich_style
        return self._base

    def __getitem__(self, name: str) -> Style:
        style = self._cache.get(name)
        if style is None:
            style = self.base
            for part in name.lstrip("~").split("+"):
                key = part.replace(".", "-")
                if key == "code-pad":
                    key = "code-text"
                if key in _COMPONENTS:
                    style += self._component(key)
            self._cache[name] = style
        return style

    def _component(self, name: str) -> Style:
        """Only what the component itself says, with its transparency worked out."""
        styles = self._widget.get_component_styles(f"transcript--{name}")
        ground = self._widget.background_colors[1]
        back = None
        if styles.has_rule("background") and styles.background.a > 0:
            ground = ground + styles.background
            back = ground.rich_color
        front = None
        if styles.has_rule("color"):
            automatic = styles.has_rule("auto_color") and styles.auto_color
            color = ground.get_contrast_text(styles.color.a) if automatic else styles.color
            front = (ground + color).rich_color
        return Style(color=front, bgcolor=back) + styles.text_style
