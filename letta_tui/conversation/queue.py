"""The queue strip: the server's queue, what was removed from it, and sends that wait at this client."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from letta_tui.conversation import content
from letta_tui.conversation.places import SendState, place_of
from letta_tui.conversation.runtimes import concerns
from letta_tui.protocol.events import QueueItem
from letta_tui.protocol.frames import Frame
from letta_tui.seam.state import QueueItemView

_KEYS_KEPT = 2_000
_PAUSED = "Paused by the stop. It runs with your next message, or when you resume the queue."


@dataclass(frozen=True, slots=True)
class Removal:
    """An input left the server's queue: for a turn, or because somebody took it out."""

    client_message_id: str
    disposition: Literal["dequeued", "cancelled"]


class Queue:
    """The queue of one runtime."""

    def __init__(self, agent_id: str, conversation_id: str) -> None:
        self._runtime = (agent_id, conversation_id)
        self._items: tuple[QueueItem, ...] = ()
        self._cancelling: set[str] = set()
        self._keys: OrderedDict[str, None] = OrderedDict()
        self._connection_id = ""
        self._known = False

    def connected(self, connection_id: str) -> None:
        """A new connection: the snapshot is stale until the next one; ``known`` becomes false."""
        if connection_id != self._connection_id:
            self._connection_id = connection_id
            self._known = False
            self._keys.clear()
            self._cancelling.clear()

    @property
    def known(self) -> bool:
        """A snapshot of this connection was seen."""
        return self._known

    @property
    def client_message_ids(self) -> tuple[str, ...]:
        """Ids in the server's queue, in its order."""
        return tuple(i.client_message_id for i in self._items if i.client_message_id)

    @property
    def paused(self) -> bool:
        """Something in the queue waits for ``resume_queue`` or the next input."""
        return any(i.paused for i in self._items)

    def apply(self, frame: Frame) -> tuple[Removal, ...]:
        """Take an ``update_queue`` frame; returns the removals it names (each once)."""
        state = frame.queue
        if state is None or not concerns(frame, *self._runtime):
            return ()
        key = frame.idempotency_key
        if key is not None:
            if key in self._keys:
                return ()
            self._keys[key] = None
            if len(self._keys) > _KEYS_KEPT:
                self._keys.popitem(last=False)
        self._known = True
        self._items = state.items
        here = {i.item_id for i in state.items}
        self._cancelling &= here
        removals: list[Removal] = []
        for gone in state.removed:
            if gone.disposition == "cancelled":
                removals.append(Removal(gone.client_message_id, "cancelled"))
            elif gone.disposition == "dequeued":
                removals.append(Removal(gone.client_message_id, "dequeued"))
        return tuple(removals)

    def cancelling(self, item_id: str, on: bool = True) -> None:
        """Cancel was asked for (or was refused: ``on`` False)."""
        if on:
            self._cancelling.add(item_id)
        else:
            self._cancelling.discard(item_id)

    def item(self, item_id: str) -> QueueItemView | None:
        """The server's item with this id."""
        return next((v for v in self.views() if v.item_id == item_id and not v.held_here), None)

    def views(self, sends: Sequence[SendState] = (), mine: Collection[str] = ()) -> tuple[QueueItemView, ...]:
        """The strip: the server's items in order, then what waits here in order of sending.

        ``sends``: open ledger sends of this conversation, oldest first. ``mine``: further client
        message ids the ledger knows. A send is never in the strip and in the transcript at once.
        """
        by_id = {s.client_message_id: s for s in sends}
        views = [self._server_item(i, by_id, mine) for i in self._items]
        queued = set(self.client_message_ids)
        for send in sends:
            if send.client_message_id not in queued and place_of(send) == "strip":
                views.append(self._waiting(send))
        return tuple(views)

    def _server_item(
        self, item: QueueItem, sends: dict[str, SendState], mine: Collection[str]
    ) -> QueueItemView:
        send = sends.get(item.client_message_id or "")
        text = send.text if send is not None and send.text else content.user_text(item.raw.get("content"))
        is_note, words = content.notification(text)
        return QueueItemView(
            item_id=item.item_id or item.client_message_id or "",
            client_message_id=item.client_message_id,
            text=words if is_note else text or item.text or f"({item.kind or 'message'})",
            paused=item.paused,
            mine=send is not None or item.client_message_id in mine,
            cancelling=item.item_id in self._cancelling,
            note=_PAUSED if item.paused else "",
        )

    @staticmethod
    def _waiting(send: SendState) -> QueueItemView:
        note = send.note
        if not note and send.delivery in ("unconfirmed", "accepted"):
            note = "On its way to the server."
        return QueueItemView(
            item_id=send.client_message_id,
            client_message_id=send.client_message_id,
            text=send.text,
            held_here=send.held or send.delivery == "prepared",
            note=note,
        )
