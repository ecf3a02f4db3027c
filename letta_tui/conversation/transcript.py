"""The transcript of one conversation, from stream frames, history pages and ledger sends. No I/O.

Use, in the worker::

    t = Transcript(agent_id, conversation_id)
    t.connected(connection_id)          # after every (re)connect, before its frames
    put(*t.apply(frame))                # every frame of the socket, in order
    asked = t.mark()                    # just before asking for a history page
    put(*t.merge_history(messages, asked=asked, order="desc", newest=True, has_more=...))
    put(*t.put_send(SendState(...)))    # after every change of a ledger row
    if t.unsettled: ...                 # a turn ended: read the newest page once more and merge it

Every method returns the updates for the view, in order; they can be empty. Text that grew while the
connection was away, or that was joined in the middle, is shown once history's head was merged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from letta_tui.conversation.book import Book
from letta_tui.conversation.content import error_text
from letta_tui.conversation.entries import Decider, Entry
from letta_tui.conversation.growing import GrowingText
from letta_tui.conversation.merging import Merger
from letta_tui.conversation.pieces import Piece
from letta_tui.conversation.places import SendState, place_of
from letta_tui.conversation.rowlist import Change
from letta_tui.conversation.runtimes import concerns
from letta_tui.conversation.streaming import Stream
from letta_tui.protocol.frames import Frame
from letta_tui.seam.state import Row
from letta_tui.seam.updates import TranscriptChanged

_CACHED_KINDS = frozenset({"user", "assistant", "reasoning", "tool", "summary"})


class Transcript:
    """Rows of one conversation. Frames of other runtimes and of subagents are ignored."""

    def __init__(self, agent_id: str, conversation_id: str) -> None:
        self._runtime = (agent_id, conversation_id)
        self._book = Book()
        self._stream = Stream(self._book)
        self._merger = Merger(self._book)
        self._connection_id = ""

    @property
    def rows(self) -> tuple[Row, ...]:
        """Every row as it should be on the screen now."""
        return tuple(e.row() for e in self._book.rows)

    def __len__(self) -> int:
        return len(self._book.rows)

    def __bool__(self) -> bool:
        return True

    @property
    def unsettled(self) -> bool:
        """Something streamed is not known to equal history: when idle, read the newest page and merge it."""
        return bool(self._book.unsettled)

    @property
    def oldest_id(self) -> str | None:
        """The history id to page ``before`` for older rows; None while no page was merged."""
        return self._merger.oldest_id

    @property
    def newest_id(self) -> str | None:
        """The history id of the newest row known from history (an anchor for sends)."""
        return self._merger.newest_id

    @property
    def more_above(self) -> bool:
        """The server has rows older than the first one here."""
        return self._book.rows.more_above

    def snapshot(self) -> TranscriptChanged:
        """All rows with ``reset``: for a view that starts, or after a switch of conversation."""
        return self._book.rows.snapshot()

    def restore(self, rows: Sequence[Row], as_of: float) -> list[Change]:
        """Paint cached rows of an earlier session; the first merge of history replaces them in place."""
        book = self._book
        for row in rows:
            if row.kind not in _CACHED_KINDS or book.rows.get(row.key) is not None:
                continue
            entry = Entry(row.key, row.kind, 0)
            entry.text = GrowingText(row.text)
            entry.when, entry.cmid = row.when, row.client_message_id
            entry.marks, entry.confirmed_at = row.marks, 0
            entry.in_history = row.delivery in (None, "delivered") and not row.live
            family, _, name = row.key.partition(":")
            if row.tool is not None:
                entry.tool = book.tool_of(row.tool)
            elif family == "user":
                entry.otid = name
                book.attach(entry)
            book.rows.register(entry)
            book.rows.name(entry, family, name)
            book.rows.append(entry)
        book.rows.as_of = as_of
        return [book.rows.snapshot()]

    def connected(self, connection_id: str) -> list[Change]:
        """A new connection: sequence memory is dropped and growing text waits for the history."""
        if connection_id == self._connection_id:
            return []
        self._connection_id = connection_id
        return self._stream.connected()

    def apply(self, frame: Frame) -> list[Change]:
        """Apply a frame of the current connection; applying it again changes nothing."""
        if not concerns(frame, *self._runtime) or frame.type not in (
            "stream_delta",
            "update_loop_status",
            "turn_finished",
        ):
            return []
        if self._stream.seen(frame.idempotency_key):
            return []
        self._book.clock += 1
        if (delta := frame.delta) is not None:
            return self._stream.delta(delta)
        if (loop := frame.loop_status) is not None:
            return self._stream.loop(loop)
        if (end := frame.turn_finished) is not None:
            return self._stream.finished(end, error_text(end.error) or error_text(frame.raw.get("error")))
        return []

    def mark(self) -> int:
        """Take it just before asking for a history page and give it back with the answer."""
        return self._book.clock

    def covers(self, messages: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the page joins rows known from history, so that no older page is needed to close a gap."""
        return self._merger.covers(messages)

    @property
    def remembered(self) -> bool:
        """Cached rows are shown that no page of history was merged with yet."""
        return self._merger.remembered

    def merge_history(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        asked: int,
        order: Literal["desc", "asc"] = "desc",
        newest: bool,
        has_more: bool,
    ) -> list[Change]:
        """Rebase on a gapless stretch of history (one page, or several joined).

        ``newest``: the stretch reaches to the head (asked without ``before``). ``has_more``: the server
        has older rows than the stretch. A newest stretch that does not join what is known (see
        :meth:`covers`) while the server has more takes its place: read on before merging to avoid that.
        """
        oldest_first = list(messages) if order == "asc" else list(reversed(messages))
        return self._merger.merge(oldest_first, asked, newest, has_more)

    def put_send(self, send: SendState) -> list[Change]:
        """Show, mark or take away the user row of a ledger send (rule in :mod:`.places`)."""
        book = self._book
        otid = send.otid or send.client_message_id
        book.sends[otid] = send
        entry = book.rows.named("user", otid)
        if entry is not None and not entry.in_history and not entry.echoed and place_of(send) != "transcript":
            return book.rows.remove(entry)
        if entry is not None:
            if entry.send == send:
                return []
            entry.send = send
            if not entry.in_history and send.text and entry.text.text != send.text:
                entry.text = GrowingText(send.text)
            return book.rows.touched(entry)
        if place_of(send) != "transcript":
            return []
        entry = book.new_user(Piece("user", "user", "", otid, send.text, send.when))
        entry.text = GrowingText(send.text)
        entry.when = send.when
        return book.rows.append(entry)

    def decided(
        self, tool_call_id: str, behavior: Literal["allow", "deny"], by: Decider, reason: str = ""
    ) -> list[Change]:
        """Who decided about a tool call: sets ``decided_by`` and the state."""
        self._book.decisions[tool_call_id] = (behavior, by, reason)
        entry = self._book.find_tool(tool_call_id)
        if entry is None or entry.tool is None:
            return []
        before = entry.tool.view()
        entry.tool.decide((behavior, by, reason))
        return self._book.rows.touched(entry) if before != entry.tool.view() else []

    def awaiting(self, tool_call_ids: Collection[str]) -> list[Change]:
        """The tool calls whose approval is pending now (``Approvals.tool_call_ids``), after any change."""
        book = self._book
        before, book.awaiting = book.awaiting, frozenset(tool_call_ids)
        changes: list[Change] = []
        for call_id in sorted(before ^ book.awaiting):
            entry = book.find_tool(call_id)
            if entry is None or entry.tool is None or entry.tool.settled:
                continue
            state = entry.tool.state
            if call_id in book.awaiting:
                entry.tool.move("awaiting")
            elif state == "awaiting":
                entry.tool.move("requested")
            if entry.tool.state != state:
                changes += book.rows.touched(entry)
        return changes

    def away(self, text: str, left: float) -> list[Change]:
        """A line where the person left: above the first row that is later than ``left`` (wall clock)."""
        book = self._book
        old = book.rows.get("own:away")
        changes = book.rows.remove(old) if old is not None else []
        entry = book.new_entry("away", "own", "away")
        entry.own, entry.when, entry.text = True, left, GrowingText(text)
        entries = list(book.rows)
        later = (n for n, e in enumerate(entries) if e.when is not None and e.when > left)
        at = next(later, len(entries))
        return changes + book.rows.reorder([*entries[:at], entry, *entries[at:]])

    def notice(
        self,
        key: str,
        text: str,
        *,
        kind: Literal["notice", "error", "away"] = "notice",
        when: float | None = None,
    ) -> list[Change]:
        """Put a row of the client's own at the end, or replace the one with this ``key``."""
        book = self._book
        entry = book.rows.get(f"own:{key}")
        if entry is None:
            entry = book.new_entry(kind, "own", key)
            entry.own, entry.when, entry.text = True, when, GrowingText(text)
            return book.rows.append(entry)
        if entry.text.text == text and entry.kind == kind:
            return []
        entry.text, entry.kind = GrowingText(text), kind
        return book.rows.touched(entry)
