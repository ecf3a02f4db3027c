"""The transcript view: a scrolling list of rows, drawn by Textual's line API."""

from __future__ import annotations

from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView

from letta_tui.seam.state import Row
from letta_tui.seam.updates import TextAppended, TranscriptChanged


class TranscriptView(ScrollView, can_focus=True):
    """Shows the rows it is fed through :meth:`apply`; everything else is moving around in them.

    It stays at the bottom until the person scrolls up (``following``); text that then arrives raises
    ``new_below``. It copies nothing by itself: it posts :class:`CopyRequested` with the text.
    """

    following: reactive[bool] = reactive(True)
    new_below: reactive[bool] = reactive(False)

    class NearTop(Message):
        """The person is near the top and there are older rows to load (posted once per arrival there)."""

    class CopyRequested(Message):
        """The person asked to copy ``text``; empty when there was nothing to copy: say so."""

        def __init__(self, text: str, what: str) -> None:
            super().__init__()
            self.text = text
            self.what = what  # "selection", "message", "" (nothing)

    class FollowChanged(Message):
        """``following`` or ``new_below`` changed."""

        def __init__(self, following: bool, new_below: bool) -> None:
            super().__init__()
            self.following = following
            self.new_below = new_below

    class RowActivated(Message):
        """Enter or a click on a row that does not fold (a user row with a send behind it, for example)."""

        def __init__(self, row: Row) -> None:
            super().__init__()
            self.row = row

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows as they are now."""
        return ()

    @property
    def cursor_row(self) -> Row | None:
        """The row the keyboard is on, if any."""
        return None

    def apply(self, update: TranscriptChanged | TextAppended) -> None:
        """Take an update; cheap, painting comes later and at most 30 times a second."""

    def get_selection_text(self) -> str:
        """The visible text under the mouse selection without decorations, or ''."""
        return ""

    def copy_text(self) -> tuple[str, str]:
        """(text, what): the selection, else the cursor row's source; ('', '') when there is neither."""
        return "", ""

    def jump_top(self) -> None:
        """To the first row."""

    def jump_bottom(self) -> None:
        """To the end, following it again."""

    def jump_previous_user(self) -> bool:
        """Put the previous user row at the top; False when there is none."""
        return False

    def jump_next_user(self) -> bool:
        """Put the next user row at the top; False when there is none."""
        return False

    def jump_to(self, key: str) -> bool:
        """Put row ``key`` at the top and the cursor on it; False when it is not here."""
        return False

    def find(self, text: str, backwards: bool = True) -> bool:
        """Jump to the next row, from the cursor, whose text contains ``text`` (case folded); wraps."""
        return False

    def find_clear(self) -> None:
        """Forget the search and its highlights."""

    def toggle_fold(self, key: str | None = None) -> bool:
        """Fold or unfold row ``key`` (None: the cursor row); False when it does not fold."""
        return False

    def fold_all(self, folded: bool) -> None:
        """Fold or unfold every row that folds, now and later."""
