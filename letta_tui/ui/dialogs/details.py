"""Everything about one tool call, on the whole screen. Nothing is decided here."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from letta_tui.seam.state import ApprovalView
from letta_tui.ui.dialogs.page import Page
from letta_tui.ui.diff import approval_lines, argument_lines
from letta_tui.ui.keys import bindings
from letta_tui.ui.text.sanitise import one_line


class DetailsScreen(ModalScreen[None], inherit_bindings=False):
    """The whole diff and every argument."""

    BINDINGS = bindings("details")

    DEFAULT_CSS = """
    DetailsScreen {
        background: $background; layout: vertical;
        & #details-head { height: auto; max-height: 3; padding: 0 1; background: $surface; }
        & Page { height: 1fr; padding: 0 1; }
        & #details-lines { height: auto; width: auto; min-width: 100%; }
        & #details-foot { height: 1; padding: 0 1; background: $surface; color: $quiet; }
    }
    """

    def __init__(self, approval: ApprovalView) -> None:
        super().__init__()
        self._approval = approval

    def compose(self) -> ComposeResult:
        view = self._approval
        yield Static(
            Content.assemble(
                (one_line(view.tool_name, 60), "bold $accent"), "  ", (one_line(view.headline, 300), "")
            ),
            id="details-head",
        )
        with Page():
            yield Static("", id="details-lines", markup=False)
        yield Static(
            Content("↑↓ PgUp PgDn scroll · Esc back to the card, where it is answered"), id="details-foot"
        )

    def on_mount(self) -> None:
        self.query_one(Page).focus()
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        view = self._approval
        lines = approval_lines(view, max(20, self.app.size.width - 3))
        if any(d.hunks for d in view.diffs):
            lines += [Content(""), Content.styled("Arguments", "bold"), *argument_lines(view.arguments)]
        self.query_one("#details-lines", Static).update(Content("\n").join(lines))

    def action_leave(self) -> None:
        self.dismiss(None)
