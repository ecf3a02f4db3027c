"""Stream deltas into rows. A delta applied again changes nothing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from letta_tui.conversation import content, pieces
from letta_tui.conversation.book import Book
from letta_tui.conversation.entries import Entry
from letta_tui.conversation.growing import GrowingText
from letta_tui.conversation.pieces import Piece
from letta_tui.conversation.remarks import END_WORDS, Remark, remark_of
from letta_tui.conversation.rowlist import Change
from letta_tui.protocol.events import Delta, LoopStatus, TurnFinished
from letta_tui.seam.updates import TextAppended

_KEYS_KEPT = 20_000
_RUNS_KEPT = 64


class Stream:
    """The frames of one connection after another. Sequence numbers mean something only within a run."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._keys: OrderedDict[str, None] = OrderedDict()
        self._seqs: OrderedDict[str, set[int]] = OrderedDict()
        self._highest: dict[str, int] = {}
        self._turn = 0
        self._errors = 0  # error rows of the turn that runs or ran last
        self._worked = False
        self._ended: set[str] = set()
        self._saw_idle = False  # on this connection: what runs now began while it watched

    def connected(self) -> list[Change]:
        """Sequence memory is dropped; texts that may still grow wait for history."""
        book = self._book
        self._keys.clear()
        self._seqs.clear()
        self._highest.clear()
        book.joined = self._saw_idle = False
        book.over_at = None
        for entry in book.unsettled.values():
            if entry.tool is None:
                entry.text.broken()
        return []

    def seen(self, key: str | None) -> bool:
        """Whether an event with this idempotency key was applied on this connection."""
        if not key:
            return False
        if key in self._keys:
            return True
        self._keys[key] = None
        if len(self._keys) > _KEYS_KEPT:
            self._keys.popitem(last=False)
        return False

    def delta(self, delta: Delta) -> list[Change]:
        if delta.subagent_id or delta.raw.get("subagent_id"):
            return []
        contiguous = self._sequence(delta)
        if contiguous is None:
            return []
        what = delta.message_type
        if what == "stop_reason":
            return self._book.end_texts(delta.run_id or None)
        remark = remark_of(delta, self._turn)
        if remark is not None:
            return self._remark(remark)
        self._working(delta)
        if what == "client_tool_start":
            return self._tool_start(delta.raw)
        if what == "client_tool_end":
            return self._tool_end(delta.raw)
        if what == "approval_classification_end":
            return self._classified(delta.raw)
        changes: list[Change] = []
        for piece in pieces.read(delta.raw):
            if piece.what == "text":
                changes += self._text(piece, delta, contiguous)
            elif piece.what == "user":
                changes += self._user(piece)
            elif piece.what == "call":
                changes += self._call(piece, request=what == "approval_request_message")
            elif piece.what == "result":
                changes += self._result(piece)
            else:
                changes += self._summary(piece)
        return changes

    def loop(self, status: LoopStatus) -> list[Change]:
        book = self._book
        if status.idle:
            self._saw_idle = True
            if book.over_at is None:
                book.over_at = book.clock
            return book.end_texts()
        book.over_at = None
        changes: list[Change] = []
        for call_id in status.executing_tool_call_ids:
            entry = book.find_tool(call_id)
            if entry is not None and entry.tool is not None and entry.tool.state != "running":
                entry.tool.move("running")
                changes += book.rows.touched(entry)
        return changes

    def finished(self, end: TurnFinished, error: str) -> list[Change]:
        book = self._book
        if end.stop_reason == "requires_approval":
            return book.end_texts()  # of a run, not of the turn
        book.over_at = book.clock
        changes = book.end_texts()
        if end.turn_id and end.turn_id in self._ended:
            return changes
        self._ended.add(end.turn_id)
        words = error if end.stop_reason not in ("cancelled", "end_turn") else ""
        kind_is_error = True
        if not words or self._errors:
            words, kind_is_error = END_WORDS.get(end.stop_reason, ""), False
        if words and not (self._errors and not kind_is_error):
            changes += self._remark(
                Remark(f"end:{end.turn_id or end.run_id}", "error" if kind_is_error else "notice", words)
            )
        self._errors = 0
        if self._worked:
            self._turn += 1
            self._worked = False
        return changes

    # Sequence.

    def _sequence(self, delta: Delta) -> bool | None:
        """None: applied already. Else whether a text that begins with this delta was seen from its start.

        It was when the run is watched, or began while this connection watched, or history's head was read.
        A run counts from 0 or from 1, so that 1 alone says nothing.
        """
        run, seq = delta.run_id or "", delta.seq_id
        watched = self._book.joined or self._saw_idle or bool(self._seqs)
        if seq is None:
            return watched
        known = self._seqs.get(run)
        if known is None:
            known = self._seqs[run] = set()
            self._highest[run] = seq - 1
            if len(self._seqs) > _RUNS_KEPT:
                old, _ = self._seqs.popitem(last=False)
                self._highest.pop(old, None)
        if seq in known:
            return None
        if seq > self._highest[run] + 1:
            for entry in self._book.unsettled.values():
                if entry.run_id == run and entry.final_at is None and entry.tool is None:
                    entry.text.gap()
        known.add(seq)
        self._highest[run] = max(self._highest[run], seq)
        return watched or seq == 0

    def _working(self, delta: Delta) -> None:
        if delta.message_type in ("usage_statistics", "ping", "user_message"):
            return
        if not self._worked:
            self._worked, self._errors = True, 0
        self._book.over_at = None

    # Rows.

    def _text(self, piece: Piece, delta: Delta, contiguous: bool) -> list[Change]:
        book = self._book
        fallback = f"run-{delta.run_id}"
        if not piece.id and not piece.otid:
            piece = Piece(piece.what, piece.kind, fallback, "", piece.text, piece.when)
        entry = book.find_text(piece)
        if not piece.text:
            return []
        changes: list[Change] = []
        new = entry is None
        if entry is None:
            entry = book.new_text(piece, fallback)
            entry.text = GrowingText(whole=contiguous, held=not contiguous)
            changes += book.end_texts(delta.run_id or None, besides=entry)
        elif entry.final_at is not None:
            # It grows again. Before history was read on this connection its position is not known.
            entry.dirty = True
            if not book.joined and not entry.text.held:
                entry.text.broken()
        book.rows.name(entry, piece.kind, piece.otid, piece.id)
        entry.otid = entry.otid or piece.otid
        entry.run_id = delta.run_id or ""
        entry.final_at = None
        entry.exact = False
        book.unsettled[entry.key] = entry
        if entry.when is None:
            entry.when = piece.when
        added = entry.text.append(piece.text, book.clock)
        if new:
            return changes + book.rows.append(entry)
        if entry.dirty:
            return changes + book.rows.touched(entry)
        return [*changes, TextAppended(entry.key, added)] if added else changes

    def _user(self, piece: Piece) -> list[Change]:
        book = self._book
        if not piece.visible:
            return []
        entry = book.find_user(piece)
        if entry is not None:
            book.rows.name(entry, "user", piece.otid, piece.id)
            entry.echoed = True
            return []
        entry = book.new_user(piece)
        entry.text = GrowingText(piece.text)
        entry.when = piece.when
        entry.echoed = True
        return book.rows.append(entry)

    def _tool(self, call_id: str) -> tuple[Entry, bool]:
        entry = self._book.find_tool(call_id)
        if entry is not None:
            return entry, False
        return self._book.new_tool(call_id), True

    def _show(self, entry: Entry, new: bool) -> list[Change]:
        self._book.unsettled[entry.key] = entry
        if new:
            return self._book.end_texts() + self._book.rows.append(entry)
        return self._book.rows.touched(entry)

    def _call(self, piece: Piece, *, request: bool) -> list[Change]:
        entry, new = self._tool(piece.call_id)
        assert entry.tool is not None
        before = entry.tool.size, entry.tool.name, entry.tool.complete
        entry.tool.fragment(piece.name, piece.text, request=request)
        if entry.when is None:
            entry.when = piece.when
        changed = before != (entry.tool.size, entry.tool.name, entry.tool.complete)
        if new or (changed and entry.tool.worth_telling):
            return self._show(entry, new)
        return []

    def _result(self, piece: Piece) -> list[Change]:
        entry, new = self._tool(piece.call_id)
        tool = entry.tool
        assert tool is not None
        before = tool.view()
        if piece.partial:
            tool.output(piece.text)
        else:
            if tool.finished and not new and entry.in_history:
                return []
            tool.returned(piece.text, failed=piece.failed)
        tool.name = tool.name or piece.name
        after = tool.view()
        if new:
            return self._show(entry, new)
        if before == after:
            return []
        same_but_longer = before.result and after.result.startswith(before.result)
        if same_but_longer and before.state == after.state and before.reason == after.reason:
            self._book.unsettled[entry.key] = entry
            return [TextAppended(entry.key, after.result[len(before.result) :])]
        return self._show(entry, new)

    def _tool_start(self, raw: Mapping[str, Any]) -> list[Change]:
        call_id = raw.get("tool_call_id")
        if not isinstance(call_id, str) or not call_id:
            return []
        entry, new = self._tool(call_id)
        assert entry.tool is not None
        before = entry.tool.view()
        name, arguments = raw.get("tool_name"), raw.get("tool_args")
        entry.tool.start(
            name if isinstance(name, str) else "",
            arguments if isinstance(arguments, str) else "",
            content.seconds(raw.get("date")),
        )
        return self._show(entry, new) if new or before != entry.tool.view() else []

    def _tool_end(self, raw: Mapping[str, Any]) -> list[Change]:
        call_id = raw.get("tool_call_id")
        entry = self._book.find_tool(call_id) if isinstance(call_id, str) else None
        if entry is None or entry.tool is None or entry.tool.finished:
            return []
        before = entry.tool.view()
        entry.tool.finish(failed=raw.get("status") == "error", when=content.seconds(raw.get("date")))
        return self._show(entry, False) if before != entry.tool.view() else []

    def _classified(self, raw: Mapping[str, Any]) -> list[Change]:
        changes: list[Change] = []
        denied = raw.get("auto_denied_tool_call_ids")
        for call_id in denied if isinstance(denied, list) else []:
            if isinstance(call_id, str) and call_id not in self._book.decisions:
                self._book.decisions[call_id] = ("deny", "the server", "")
                entry = self._book.find_tool(call_id)
                if entry is not None and entry.tool is not None:
                    entry.tool.decide(self._book.decisions[call_id])
                    changes += self._show(entry, False)
        return changes

    def _summary(self, piece: Piece) -> list[Change]:
        book = self._book
        entry = book.rows.named("summary", piece.id)
        if entry is None:
            entry = book.new_entry(piece.kind, "summary", piece.id or f"at-{book.clock}")
            book.rows.name(entry, "summary", piece.id)
            entry.when = piece.when
            entry.text = GrowingText(piece.text)
            return book.rows.append(entry)
        if entry.text.text == piece.text:
            return []
        entry.text = GrowingText(piece.text)
        return book.rows.touched(entry)

    def _remark(self, remark: Remark) -> list[Change]:
        book = self._book
        entry = book.rows.get(remark.key)
        if remark.kind == "error":
            self._errors += 1
        if entry is not None:
            if entry.text.text == remark.text and entry.kind == remark.kind:
                return []
            entry.text, entry.kind = GrowingText(remark.text), remark.kind
            return book.rows.touched(entry)
        last = book.rows.last
        if remark.kind == "error" and last is not None and last.own and last.text.text == remark.text:
            # The same error, said again as the retry's last word or as the turn's end.
            if last.kind == remark.kind:
                return []
            last.kind = remark.kind
            return book.rows.touched(last)
        entry = book.new_entry(remark.kind, *remark.key.split(":", 1))
        entry.own = True
        entry.when = remark.when
        entry.text = GrowingText(remark.text)
        return book.rows.append(entry)
