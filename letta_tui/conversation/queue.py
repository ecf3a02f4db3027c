"""The queue strip: the server's queue, what was removed from it, and sends held by this client."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from letta_tui.conversation.places import SendState
from letta_tui.protocol.frames import Frame
from letta_tui.seam.state import QueueItemView


@dataclass(frozen=True, slots=True)
class Removal:
    client_message_id: str
    disposition: Literal["dequeued", "cancelled"]


class Queue:
    """The queue of one runtime."""

    def __init__(self, agent_id: str, conversation_id: str) -> None: ...

    def connected(self, connection_id: str) -> None:
        """A new connection: the snapshot is stale until the next one; ``known`` becomes false."""
        raise NotImplementedError

    @property
    def known(self) -> bool:
        """A snapshot of this connection was seen."""
        raise NotImplementedError

    @property
    def client_message_ids(self) -> tuple[str, ...]:
        """Ids in the server's queue, in its order."""
        raise NotImplementedError

    def apply(self, frame: Frame) -> tuple[Removal, ...]:
        """Take an ``update_queue`` frame; returns the removals it names (each once)."""
        raise NotImplementedError

    def cancelling(self, item_id: str, on: bool = True) -> None:
        """Cancel was asked for (or was refused: ``on`` False)."""
        raise NotImplementedError

    def item(self, item_id: str) -> QueueItemView | None:
        raise NotImplementedError

    def views(self, sends: Sequence[SendState] = (), mine: Collection[str] = ()) -> tuple[QueueItemView, ...]:
        """The strip: the server's items in order, then what waits here in order of sending.

        ``sends``: open ledger sends of this conversation, oldest first. ``mine``: further client
        message ids the ledger knows.
        """
        raise NotImplementedError
