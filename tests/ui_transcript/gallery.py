"""An app with nothing but the transcript, and a conversation that has every kind of row in it."""

from __future__ import annotations

from textual.app import App, ComposeResult

from letta_tui.seam.state import Row, ToolView
from letta_tui.seam.updates import Splice, TranscriptChanged
from letta_tui.ui.transcript import TranscriptView

MARKDOWN = """# What I found

The **ledger** is written *before* the socket; see [the design](https://example.org/design) and `store.py`.

1. open the file
2. commit, then write
   - with `synchronous=EXTRA`
   - never in **WAL**
3. read it back

- [x] power-cut images
- [ ] full disk

> Nothing is lost that was once on disk.

| mode | images | lost |
|:-----|-------:|-----:|
| DELETE + EXTRA | 3,698 | 0 |
| WAL + NORMAL | 161 | 132 |

```python
def prepare(self, text: str) -> Send:
    \"\"\"On disk before one byte is on the wire.\"\"\"
    with self.transaction() as tx:  # BEGIN IMMEDIATE
        return tx.insert(text, state="prepared", attempts=0)
```

日本語の文章は、どこでも折り返せます。 👩‍👩‍👧 ❤️ é
"""

LISTING = "\n".join(f"file-{number:03}.txt  {number * 37} bytes" for number in range(120))


def rows() -> tuple[Row, ...]:
    """One of everything."""
    return (
        Row("s", "summary", "Earlier we talked about the ledger and its pragmas."),
        Row("u1", "user", "How safe is the ledger?\nPlease look at the code.", delivery="delivered"),
        Row("r1", "reasoning", "The person wants to know about durability. " * 6),
        Row("t1", "tool", tool=ToolView("c1", "Bash", '{"command": "ls -la src/ledger"}', "done", LISTING)),
        Row("t2", "tool", tool=ToolView("c2", "Read", '{"file_path": "/src/ledger/store.py"}', "running")),
        Row(
            "t3",
            "tool",
            tool=ToolView("c3", "Write", '{"file_path": "/etc/passwd"}', "denied", "", "you", "not there"),
        ),
        Row(
            "t4",
            "tool",
            tool=ToolView("c4", "Fetch", '{"url": "https://x.y"}', "failed", "timed out", seconds=30.0),
        ),
        Row("a1", "assistant", MARKDOWN),
        Row("w", "away", "you were away from 14:02 to 14:40 · 2 turns ended"),
        Row("n", "notice", "The conversation was compacted."),
        Row("e", "error", "The provider refused the key (401)."),
        Row("u2", "user", "And now?", delivery="unknown", marks=("no longer in the server's history",)),
        Row(
            "u3",
            "user",
            "Then send this one after it, if it is not too long for the line that it stands on.",
            delivery="queued",
        ),
    )


class Gallery(App[None]):
    """The view alone."""

    CSS = "TranscriptView { height: 1fr; }"
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, update: TranscriptChanged | None = None, theme: str = "textual-dark") -> None:
        super().__init__()
        self.first = update
        self.start_theme = theme
        self.asked: list[object] = []

    def compose(self) -> ComposeResult:
        yield TranscriptView(id="transcript")

    def on_mount(self) -> None:
        self.theme = self.start_theme
        if self.first is not None:
            self.view.apply(self.first)
        self.view.focus()

    @property
    def view(self) -> TranscriptView:
        return self.query_one(TranscriptView)

    def on_transcript_view_near_top(self, message: TranscriptView.NearTop) -> None:
        self.asked.append(message)

    def on_transcript_view_copy_requested(self, message: TranscriptView.CopyRequested) -> None:
        self.asked.append(message)

    def on_transcript_view_row_activated(self, message: TranscriptView.RowActivated) -> None:
        self.asked.append(message)


def everything() -> TranscriptChanged:
    return TranscriptChanged((Splice(0, 0, rows()),), reset=True)
