"""A gapless stretch of history into the transcript: rebase, never append."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from letta_tui.conversation import pieces, rebase
from letta_tui.conversation.book import Book
from letta_tui.conversation.entries import GONE, RAN_TWICE, UNKEPT, Entry
from letta_tui.conversation.growing import GrowingText
from letta_tui.conversation.pieces import Piece
from letta_tui.conversation.rowlist import Change


class Merger:
    """Remembers which history rows were seen, so that pages can be joined and gaps noticed."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._ids: set[str] = set()
        self._asked = -1  # of the newest merge that reached the head
        self._runs: dict[str, list[Entry]] = {}  # user rows by otid, for otids with several rows
        self.oldest_id: str | None = None
        self.newest_id: str | None = None

    def covers(self, messages: Sequence[Mapping[str, Any]]) -> bool:
        if self._ids:
            return any(m.get("id") in self._ids for m in messages)
        if not self.remembered:
            return True
        # Only cached rows: they do not keep the ids of history, but the names a row is found by.
        found = (self._find(piece) for message in messages for piece in pieces.read(message))
        return any(entry is not None and entry.in_history for entry in found)

    @property
    def remembered(self) -> bool:
        """Cached rows are shown, and no page was merged with them yet."""
        return not self._ids and any(entry.in_history for entry in self._book.rows)

    def _find(self, piece: Piece) -> Entry | None:
        book = self._book
        if piece.what == "text":
            return book.find_text(piece)
        if piece.what == "user":
            return book.find_user(piece)
        if piece.what in ("call", "result"):
            return book.find_tool(piece.call_id)
        return book.rows.named("summary", piece.id)

    def merge(
        self, messages: Sequence[Mapping[str, Any]], asked: int, newest: bool, has_more: bool
    ) -> list[Change]:
        """``messages`` oldest first."""
        book, rows = self._book, self._book.rows
        if newest and asked < self._asked:
            return []  # an answer that was overtaken by a later one
        flags = rows.more_above, rows.as_of
        joins = self.covers(messages)
        was = {id(e) for e in rows if e.in_history}
        history = self._read(messages, asked)
        inside = {id(e) for e in history}
        dropped: list[Entry] = []
        shown = list(rows)
        if newest and not joins and has_more and was and not was & inside:
            # The stretch does not reach back to what is shown: older rows are paged in again from it.
            cut = max(n for n, e in enumerate(shown) if id(e) in was) + 1
            dropped = [e for e in shown[:cut] if id(e) not in inside]
            shown = [e for e in shown[:cut] if id(e) in inside] + shown[cut:]
            self._ids.clear()
            self.oldest_id = None
        if newest:
            self._asked = asked
            self._settle(shown, inside, was, asked, has_more)
        oldest = self.oldest_id
        self._note_ids(messages, newest)
        merged = rebase.order(
            shown,
            history,
            newest=newest,
            was_in_history=lambda e: id(e) in was,
            pending=lambda e: book.pending(e, asked),
        )
        self._mark_repeats(merged)
        if newest:
            book.joined = True
            rows.as_of = None
        first = messages[0].get("id") if messages else None
        if not has_more or self.oldest_id != oldest or first == self.oldest_id:
            rows.more_above = has_more
        if dropped:
            rows.forget(dropped)
            for entry in dropped:
                book.unsettled.pop(entry.key, None)
        changes = rows.reorder(merged)
        if not changes and flags != (rows.more_above, rows.as_of):
            return [rows.flags()]
        return changes

    def _note_ids(self, messages: Sequence[Mapping[str, Any]], newest: bool) -> None:
        ids = [i for m in messages if isinstance(i := m.get("id"), str)]
        if not ids:
            return
        if ids[0] not in self._ids:
            self.oldest_id = ids[0]  # a gapless stretch whose first row is new reaches further back
        if newest:
            self.newest_id = ids[-1]
        self._ids.update(ids)

    # Reading.

    def _read(self, messages: Sequence[Mapping[str, Any]], asked: int) -> list[Entry]:
        """The rows of the stretch in order, each once, brought up to what history says."""
        book = self._book
        history: list[Entry] = []
        taken: set[int] = set()
        open_calls: list[Entry] = []
        over = book.over_at is not None and book.over_at <= asked
        for message in messages:
            for piece in pieces.read(message):
                entry = self._piece(piece, asked)
                if piece.what in ("text", "user"):
                    for call in open_calls:
                        self._close(call)
                    open_calls = []
                if entry is None:
                    continue
                if piece.what == "call":
                    open_calls.append(entry)
                elif piece.what == "result":
                    open_calls = [e for e in open_calls if e is not entry]
                entry.in_history = True
                entry.confirmed_at = max(entry.confirmed_at, asked)
                entry.mark(GONE, False)
                entry.mark(UNKEPT, False)
                if id(entry) not in taken:
                    taken.add(id(entry))
                    history.append(entry)
        if over:
            for call in open_calls:
                self._close(call)
        return history

    def _close(self, entry: Entry) -> None:
        if (
            entry.tool is not None
            and not entry.tool.settled
            and entry.tool.call_id not in self._book.awaiting
        ):
            entry.tool.close()
            entry.dirty = True

    def _piece(self, piece: Piece, asked: int) -> Entry | None:
        if piece.what == "text":
            return self._text(piece, asked)
        if piece.what == "user":
            return self._user(piece)
        if piece.what in ("call", "result"):
            return self._tool(piece)
        return self._summary(piece)

    def _text(self, piece: Piece, asked: int) -> Entry | None:
        book = self._book
        entry = book.find_text(piece)
        if entry is None:
            if not piece.text:
                return None
            entry = book.new_text(piece, f"at-{book.clock}")
            entry.text = GrowingText(piece.text)
        else:
            book.rows.name(entry, piece.kind, piece.otid, piece.id)
            final = entry.final_at is not None and entry.final_at <= asked
            before = entry.text.text
            entry.text.merge(piece.text, asked, final=final)
            entry.exact = final
            entry.dirty = entry.dirty or entry.text.text != before
        entry.take(piece)
        return entry

    def _user(self, piece: Piece) -> Entry | None:
        book = self._book
        entry = book.find_user(piece)
        if entry is not None and entry.history_id and piece.id and entry.history_id != piece.id:
            # The same input a second time under its one otid: another row.
            entry = book.rows.named("user", piece.id)
            if entry is None and piece.visible:
                entry = book.new_entry(piece.kind, "user", f"{piece.otid}:{piece.id}")
                entry.otid = piece.otid
                entry.text = GrowingText(piece.text)
                book.rows.name(entry, "user", piece.id)
                book.attach(entry)
        if entry is None:
            if not piece.visible:
                return None
            entry = book.new_user(piece)
        if piece.visible and entry.text.text != piece.text:
            entry.text = GrowingText(piece.text)
            entry.dirty = True
        if entry.kind != piece.kind and piece.visible:
            entry.kind, entry.dirty = piece.kind, True
        entry.history_id = piece.id
        book.rows.name(entry, "user", piece.id)
        if piece.otid:
            entry.otid = piece.otid
            same = self._runs.setdefault(piece.otid, [])
            if entry not in same:
                same.append(entry)
        book.attach(entry)
        entry.take(piece)
        return entry

    def _tool(self, piece: Piece) -> Entry:
        book = self._book
        entry = book.find_tool(piece.call_id) or book.new_tool(piece.call_id)
        tool = entry.tool
        assert tool is not None
        before = tool.sign()
        if piece.what == "call":
            tool.whole_call(piece.name, piece.text)
            if entry.when is None:
                entry.take(piece)
        else:
            tool.name = tool.name or piece.name
            tool.returned(piece.text, failed=piece.failed)
        entry.dirty = entry.dirty or before != tool.sign()
        return entry

    def _summary(self, piece: Piece) -> Entry:
        book = self._book
        entry = book.rows.named("summary", piece.id)
        if entry is None:
            entry = book.new_entry(piece.kind, "summary", piece.id or f"at-{book.clock}")
            book.rows.name(entry, "summary", piece.id)
        if entry.text.text != piece.text:
            entry.text, entry.dirty = GrowingText(piece.text), True
        entry.take(piece)
        return entry

    # What history does not hold.

    def _settle(
        self,
        shown: list[Entry],
        inside: set[int],
        was: set[int],
        asked: int,
        has_more: bool,
    ) -> None:
        """Rows within the stretch's reach that it does not hold are marked; nothing is taken away."""
        book = self._book
        reached = not has_more
        for entry in shown:
            if id(entry) in inside:
                reached = True
                continue
            if entry.text.held:
                entry.text.release()
                entry.dirty = True
            if not reached or entry.own:
                continue
            if id(entry) in was:
                if entry.confirmed_at <= asked and UNKEPT not in entry.marks:
                    entry.mark(GONE)
            elif entry.kind != "user" and not book.pending(entry, asked):
                entry.mark(UNKEPT)
                self._close(entry)
        over = book.over_at is not None and book.over_at <= asked
        for key, entry in list(book.unsettled.items()):
            if entry.tool is not None:
                if over and not entry.tool.settled:
                    self._close(entry)
                if entry.tool.settled and (over or id(entry) in inside):
                    del book.unsettled[key]
            elif entry.final_at is not None and entry.final_at <= asked:
                del book.unsettled[key]

    def _mark_repeats(self, merged: list[Entry]) -> None:
        several = {otid: rows for otid, rows in self._runs.items() if len(rows) > 1}
        if not several:
            return
        first: set[str] = set()
        for entry in merged:
            if entry.kind == "user" and entry.otid in several:
                entry.mark(RAN_TWICE, entry.otid in first)
                first.add(entry.otid)
