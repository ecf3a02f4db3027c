"""The transcript of one conversation, from stream frames, history pages and ledger sends. No I/O.

Use, in the worker::

    t = Transcript(agent_id, conversation_id)
    t.connected(connection_id)          # after every (re)connect, before its frames
    put(*t.apply(frame))                # every frame of the socket, in order
    asked = t.mark()                    # just before asking for a history page
    put(*t.merge_history(messages, asked=asked, order="desc", newest=True, has_more=...))
    put(*t.put_send(SendState(...)))    # after every change of a ledger row
    if t.unsettled: ...                 # a turn ended: read the newest page once more and merge it

Every method returns the updates for the view, in order; they can be empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from letta_tui.conversation.places import SendState
from letta_tui.seam.state import Row
from letta_tui.seam.updates import TextAppended, TranscriptChanged

Change = TranscriptChanged | TextAppended


class FrameLike(Protocol):
    """What the reducers need of a frame: ``letta_tui.protocol.frames.Frame`` has it."""

    @property
    def raw(self) -> Mapping[str, Any]: ...


class Transcript:
    """Rows of one conversation. Frames of other runtimes and of subagents are ignored."""

    def __init__(self, agent_id: str, conversation_id: str) -> None: ...

    @property
    def rows(self) -> tuple[Row, ...]:
        """Every row as it should be on the screen now."""
        raise NotImplementedError

    @property
    def unsettled(self) -> bool:
        """Something on the screen is not known to equal history: read the newest page when idle."""
        raise NotImplementedError

    @property
    def oldest_id(self) -> str | None:
        """The history id to page ``before`` for older rows; None while no page was merged."""
        raise NotImplementedError

    @property
    def newest_id(self) -> str | None:
        """The history id of the newest row known from history (an anchor for sends)."""
        raise NotImplementedError

    @property
    def more_above(self) -> bool:
        raise NotImplementedError

    def snapshot(self) -> TranscriptChanged:
        """All rows with ``reset``: for a view that starts, or after a switch of conversation."""
        raise NotImplementedError

    def restore(self, rows: Sequence[Row], as_of: float) -> list[Change]:
        """Paint cached rows of an earlier session; the first merge of history replaces them in place."""
        raise NotImplementedError

    def connected(self, connection_id: str) -> list[Change]:
        """A new connection: sequence memory is dropped and growing text waits for the history."""
        raise NotImplementedError

    def apply(self, frame: FrameLike) -> list[Change]:
        """Apply a frame of the current connection; applying it again changes nothing."""
        raise NotImplementedError

    def mark(self) -> int:
        """Take it just before asking for a history page and give it back with the answer."""
        raise NotImplementedError

    def covers(self, messages: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the page joins rows known from history, so that no older page is needed to close a gap."""
        raise NotImplementedError

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
        has older rows than the stretch.
        """
        raise NotImplementedError

    def put_send(self, send: SendState) -> list[Change]:
        """Show, mark or take away the user row of a ledger send (rule in :mod:`.places`)."""
        raise NotImplementedError

    def decided(
        self,
        tool_call_id: str,
        behavior: Literal["allow", "deny"],
        by: Literal["you", "elsewhere", "the server"],
        reason: str = "",
    ) -> list[Change]:
        """Who decided about a tool call: sets ``decided_by`` and the state."""
        raise NotImplementedError

    def awaiting(self, tool_call_ids: Sequence[str]) -> list[Change]:
        """The tool calls whose approval is pending now (from ``Approvals``)."""
        raise NotImplementedError

    def notice(
        self, key: str, text: str, *, kind: Literal["notice", "error", "away"] = "notice"
    ) -> list[Change]:
        """Put (or replace, by ``key``) a row of the client's own at the end."""
        raise NotImplementedError
