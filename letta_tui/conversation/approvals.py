"""Tool calls that wait for a person, from device status snapshots and control requests."""

from __future__ import annotations

from dataclasses import dataclass

from letta_tui.protocol.frames import Frame
from letta_tui.seam.state import ApprovalView


@dataclass(frozen=True, slots=True)
class Settled:
    """A request that is no longer pending. ``ours``: this client had an answer under way for it."""

    request_id: str
    tool_call_id: str
    ours: bool


class Approvals:
    """The pending set of one runtime. Requests are the same when runtime and request id are."""

    def __init__(self, agent_id: str, conversation_id: str) -> None: ...

    def connected(self, connection_id: str) -> None:
        """A new connection: what was pending stays shown but is not ``confirmed`` until a snapshot."""
        raise NotImplementedError

    @property
    def known(self) -> bool:
        """A device status of this connection was seen."""
        raise NotImplementedError

    @property
    def pending(self) -> tuple[ApprovalView, ...]:
        raise NotImplementedError

    @property
    def tool_call_ids(self) -> tuple[str, ...]:
        raise NotImplementedError

    def get(self, request_id: str) -> ApprovalView | None:
        raise NotImplementedError

    def apply(self, frame: Frame) -> tuple[Settled, ...]:
        """Take any frame; returns what it settled. ``pending`` has the new state."""
        raise NotImplementedError

    def deciding(self, request_id: str) -> bool:
        """A decision is being written; False when the request is not pending or already answered."""
        raise NotImplementedError

    def refused(self, request_id: str, words: str) -> None:
        """The server refused the decision: it may be answered again if it is still in the snapshot."""
        raise NotImplementedError

    def undecided(self, request_id: str, words: str = "") -> None:
        """The write was lost: it is pending again."""
        raise NotImplementedError
