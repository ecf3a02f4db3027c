"""What stream, history and ledger share while they build the transcript: rows, names, sends, decisions."""

from __future__ import annotations

from letta_tui.conversation.entries import Decider, Decision, Entry, Tool
from letta_tui.conversation.pieces import Piece
from letta_tui.conversation.places import SendState, place_of
from letta_tui.conversation.rowlist import Change, RowList
from letta_tui.seam.state import RowKind, ToolView

_DECIDERS: dict[str, Decider] = {
    name: name for name in ("you", "another window", "the config", "elsewhere", "the server")
}


class Book:
    """``clock`` counts frames; ``joined``: history's head was read on this connection."""

    def __init__(self) -> None:
        self.rows = RowList()
        self.clock = 0
        self.joined = False
        self.over_at: int | None = 0  # clock since which nothing runs; None: something may run
        self.sends: dict[str, SendState] = {}  # by otid
        self.decisions: dict[str, Decision] = {}
        self.awaiting: frozenset[str] = frozenset()
        self.unsettled: dict[str, Entry] = {}

    # Finding rows. A piece and the row it belongs to are joined here and nowhere else.

    def find_text(self, piece: Piece) -> Entry | None:
        """By kind and otid, else by kind and id; another otid on a known id is another row."""
        if piece.otid:
            entry = self.rows.named(piece.kind, piece.otid)
            if entry is not None:
                return entry
        entry = self.rows.named(piece.kind, piece.id)
        if entry is not None and piece.otid and entry.otid not in ("", piece.otid):
            return None
        return entry

    def find_user(self, piece: Piece) -> Entry | None:
        return self.rows.named("user", piece.otid) or self.rows.named("user", piece.id)

    def find_tool(self, call_id: str) -> Entry | None:
        return self.rows.get(f"tool:{call_id}")

    # Making rows.

    def new_entry(self, kind: RowKind, family: str, name: str) -> Entry:
        """A row with a key of its own; it is not shown before it is appended or ordered."""
        key, number = f"{family}:{name}", 1
        while self.rows.get(key) is not None:
            number += 1
            key = f"{family}:{name}:{number}"
        entry = Entry(key, kind, self.clock)
        self.rows.register(entry)
        return entry

    def new_text(self, piece: Piece, fallback: str) -> Entry:
        entry = self.new_entry(piece.kind, piece.kind, piece.otid or piece.id or fallback)
        entry.otid = piece.otid
        self.rows.name(entry, piece.kind, piece.otid, piece.id or fallback)
        return entry

    def new_user(self, piece: Piece) -> Entry:
        entry = self.new_entry(piece.kind, "user", piece.otid or piece.id)
        entry.otid = piece.otid
        self.rows.name(entry, "user", piece.otid, piece.id)
        self.attach(entry)
        return entry

    def new_tool(self, call_id: str) -> Entry:
        entry = self.new_entry("tool", "tool", call_id)
        entry.tool = Tool(call_id)
        decision = self.decisions.get(call_id)
        if decision is not None:
            entry.tool.decide(decision)
        if call_id in self.awaiting:
            entry.tool.move("awaiting")
        return entry

    def tool_of(self, view: ToolView) -> Tool:
        """A tool from a cached row. What was under way then is closed unless it shows up again."""
        tool = Tool(view.call_id)
        tool.whole_call(view.name, view.arguments)
        tool.result, tool.state, tool.seconds = view.result, view.state, view.seconds
        tool.finished = tool.settled
        tool.failed = view.state in ("failed", "denied", "closed")
        who = _DECIDERS.get(view.decided_by)
        if who is not None:
            tool.decision = ("deny" if view.state == "denied" else "allow", who, view.reason)
        return tool

    def attach(self, entry: Entry) -> None:
        """Bind a user row to the ledger's send with its otid."""
        send = self.sends.get(entry.otid)
        if send is not None and entry.send != send:
            entry.send = send
            entry.dirty = True

    # Ends.

    def end_texts(self, run_id: str | None = None, besides: Entry | None = None) -> list[Change]:
        """Growing texts (of a run, or all) have ended."""
        changes: list[Change] = []
        for entry in list(self.unsettled.values()):
            if entry is besides or entry.final_at is not None or entry.tool is not None:
                continue
            if run_id is None or entry.run_id == run_id:
                entry.final_at = self.clock
                changes += self.rows.touched(entry)
        return changes

    def pending(self, entry: Entry, asked: int) -> bool:
        """Whether history, asked for at ``asked``, could lack a row only because it was too early."""
        if entry.born > asked:
            return True
        if entry.own or entry.in_history:
            return False
        if entry.send is not None:
            return place_of(entry.send) == "transcript" and entry.send.delivery in (
                "unconfirmed",
                "accepted",
                "started",
            )
        if entry.echoed:
            return True
        if entry.tool is not None:
            return not entry.tool.settled and (self.over_at is None or self.over_at > asked)
        return entry.final_at is None or entry.final_at > asked
