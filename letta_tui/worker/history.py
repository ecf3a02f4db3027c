"""Reading history: the newest page first, then back as far as something has to be found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from letta_tui.conversation.content import notification, user_text
from letta_tui.conversation.reconcile import HistoryRead, HistoryRow
from letta_tui.ledger.values import Send
from letta_tui.protocol import HistoryPage, commands
from letta_tui.worker.desk import AskFailed, Desk, Link, ask
from letta_tui.worker.room import Room

_KINDS = {
    "user_message": "user",
    "assistant_message": "assistant",
    "reasoning_message": "reasoning",
    "tool_call_message": "tool",
    "approval_request_message": "tool",
    "tool_return_message": "tool",
    "summary_message": "summary",
}
MOST_PAGES = 200  # a server that pages in circles is left after this many
MOST_BEHIND = 2_000  # rows a cached transcript may be behind; an older one is replaced, not joined
DEEP_PAGE = 200  # rows a page when reading further back
LONG_PAGE = 2_000  # rows a page on the way to the beginning: the server takes its time by the page
PAGE_TEXT = 1_000_000  # characters a page should not have more of


class History:
    """Pages of the room's conversation, merged into its transcript as they come."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._loading_older = False
        self._row_size = 0.0  # characters a row had in the last page

    async def page(
        self, link: Link, room: Room, *, limit: int, before: str | None = None
    ) -> tuple[HistoryPage, int, int]:
        """One page, with the transcript's mark and the answer's arrival number. Raises ``AskFailed``."""
        asked = room.transcript.mark()
        frame = await ask(link.client, commands.messages_list(room.runtime, limit=limit, before=before))
        page = frame.history_page
        if page is None:
            raise AskFailed("The server's answer about the history could not be read.")
        if page.messages:
            self._row_size = sum(len(str(message)) for message in page.messages) / len(page.messages)
        return page, asked, frame.arrival

    def _rows(self, most: int) -> int:
        """Rows to ask for at once, ``most`` unless they are long."""
        return max(20, min(most, int(PAGE_TEXT / self._row_size))) if self._row_size else DEEP_PAGE

    async def newest(self, link: Link, room: Room) -> HistoryRead:
        """Read and merge the newest rows, and as many pages as it takes to join what was known before."""
        return await self.back_to(link, room, (), join=True)

    async def back_to(
        self, link: Link, room: Room, sends: Iterable[Send], *, join: bool = False
    ) -> HistoryRead:
        """Read from the head back to the oldest anchor of ``sends``, merging each page as it comes.

        ``join``: also until the pages meet rows that were known before. Without anchors one page is enough.
        """
        desk = self._desk
        wanted = {send.anchor.row_id for send in sends if send.anchor is not None}
        unanchored = any(send.anchor is None for send in sends)
        rows: list[HistoryRow] = []
        summary = False
        page, asked, arrival = await self.page(link, room, limit=desk.config.page_size)
        joined = list(page.messages)
        covered = not join
        cursors: set[str] = set()
        for _ in range(MOST_PAGES):
            rows.extend(_row(message) for message in page.messages)
            summary = summary or any(row.kind == "summary" for row in rows)
            covered = covered or room.transcript.covers(page.messages)
            if _reached(wanted, rows, page.has_more) and covered and not unanchored:
                break
            if not page.has_more or not page.next_before or page.next_before in cursors:
                break
            if unanchored and len(rows) >= 4 * desk.config.page_size:
                break  # no anchor to look for: what is not near the head cannot be searched for ever
            if room.transcript.remembered and len(rows) >= MOST_BEHIND:
                break
            cursors.add(page.next_before)
            page, _, _ = await self.page(link, room, limit=DEEP_PAGE, before=page.next_before)
            joined.extend(page.messages)
        desk.put(
            *room.transcript.merge_history(
                joined, asked=asked, order="desc", newest=True, has_more=page.has_more
            )
        )
        room.history_known = True
        return HistoryRead(
            order=arrival,
            rows=tuple(reversed(rows)),
            to_head=True,
            from_start=not page.has_more,
            compacted=summary,
        )

    async def older(self, link: Link, room: Room, *, to_start: bool = False) -> bool:
        """Load what is above: a page, or as many as it takes until a row is seen (``to_start``: long ones).

        False when there is nothing more or a page is being loaded.
        """
        if self._loading_older:
            return False
        self._loading_older = True
        try:
            while (before := room.transcript.oldest_id) is not None and room.transcript.more_above:
                limit = self._rows(LONG_PAGE if to_start else DEEP_PAGE)
                page, asked, _ = await self.page(link, room, limit=limit, before=before)
                if room.transcript.oldest_id != before:
                    return True  # a merge meanwhile went further back: this page no longer joins at its end
                changes = room.transcript.merge_history(
                    page.messages,
                    asked=asked,
                    order="desc",
                    newest=False,
                    has_more=page.has_more and bool(page.messages),
                )
                self._desk.put(*changes)
                if changes:
                    break
        finally:
            self._loading_older = False
        return room.transcript.more_above


def _row(message: Mapping[str, Any]) -> HistoryRow:
    def said(name: str) -> str:
        value = message.get(name)
        return value if isinstance(value, str) else ""

    kind = _KINDS.get(said("message_type"), said("message_type"))
    if kind == "event_message" and said("event_type") == "compaction":
        kind = "summary"
    if kind == "user":
        text = user_text(message.get("content"))
        kind = "reminder" if not text else "notification" if notification(text)[0] else "user"
    return HistoryRow(row_id=said("id"), otid=said("otid"), kind=kind)


def _reached(wanted: set[str], rows: list[HistoryRow], has_more: bool) -> bool:
    """Whether every anchor is among ``rows``. The anchor "" is the beginning of the conversation."""
    if not wanted:
        return True
    seen = {row.row_id for row in rows}
    return all((not has_more) if anchor == "" else anchor in seen for anchor in wanted)
