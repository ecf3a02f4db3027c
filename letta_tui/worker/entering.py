"""Coming into a conversation: its room on the screen, with what was last known of it, and the draft."""

from __future__ import annotations

from letta_tui.ledger.values import Place, Remembered
from letta_tui.seam.updates import DraftLoaded
from letta_tui.transport.endpoint import server_key
from letta_tui.worker import windows
from letta_tui.worker.cache import MOST_ROWS, with_the_ledgers_word
from letta_tui.worker.config import Target
from letta_tui.worker.desk import Desk, Link
from letta_tui.worker.picking import OpenIt, Pick, Stored, pick
from letta_tui.worker.publishing import Publisher, state_of
from letta_tui.worker.room import Room


class Entrance:
    def __init__(self, desk: Desk, publisher: Publisher) -> None:
        self._desk = desk
        self._publisher = publisher
        self._draft_of: Place | None = None

    def choose(self, server: str, target: Target) -> Pick:
        """Which conversation, by the command line and by what is stored for this server."""
        ledger, window = self._desk.ledger, self._desk.config.window_id
        last = ledger.last_used(server, None, window)
        of_agent = ledger.last_used(server, target.agent_id, window) if target.agent_id else None
        return pick(target, _stored(last), _stored(of_agent))

    def preview(self, target: Target) -> None:
        """Before there is a connection: the room one comes back to, from ledger and cache.

        The server's answer decides later whether it is the right one. Nothing is shown when another
        conversation was asked for than the one this would be.
        """
        desk, config = self._desk, self._desk.config
        if config.endpoint is not None:
            key: str | None = server_key(config.endpoint)
        else:
            key = next(
                (c.place.server_key for c in desk.ledger.conversations() if c.endpoint_kind == "embedded"),
                None,
            )
        if key is None:
            return
        chosen = self.choose(key, target)
        if not isinstance(chosen, OpenIt) or not chosen.agent_id:
            return
        place = Place(key, chosen.agent_id, chosen.conversation_id)
        remembered = desk.ledger.conversation(place)
        if remembered is None:
            return
        room = self._make_room(place, relaunched=True)
        desk.set_status(
            agent_id=place.agent_id,
            agent_name=remembered.agent_name,
            conversation_id=place.conversation_id,
            conversation_title=remembered.title,
            mode=text_of(remembered.state.get("mode")),
            cwd=text_of(remembered.state.get("cwd")),
        )
        desk.set_connection(can_send=True)
        room.sends = {send.client_message_id: send for send in desk.ledger.open_sends(place)}
        self._publisher.touch()

    def enter(self, link: Link, place: Place, *, relaunched: bool) -> Room:
        """The room for ``place``: the one that is there if it is the same conversation, else a new one."""
        desk = self._desk
        room = desk.room
        if room is None or room.place != place:
            room = self._make_room(place, relaunched=relaunched)
        room.connection_id = link.connection_id
        room.ready = False
        room.blocked = ""
        room.held = False
        room.hold_given_up = False
        room.queue_read = room.loop_read = None
        room.loop = room.device = None
        room.runs_seen.clear()
        desk.put(*room.transcript.connected(link.connection_id))
        room.queue.connected(link.connection_id)
        room.approvals.connected(link.connection_id)
        room.turn.connected(link.connection_id)
        room.sends = {send.client_message_id: send for send in desk.ledger.open_sends(place)}
        desk.set_status(agent_id=place.agent_id, conversation_id=place.conversation_id)
        self._publisher.touch()
        return room

    def _make_room(self, place: Place, *, relaunched: bool) -> Room:
        """A new room on the screen, with the cached rows of the conversation if there are any."""
        desk = self._desk
        room = desk.room = Room.of(place, relaunched=relaunched)
        self._publisher.forget()
        cached = desk.cache.load(place) if relaunched else None
        if cached is not None:
            sends = desk.ledger.sends(place, limit=MOST_ROWS)
            rows = with_the_ledgers_word(cached[0], sends)
            room.transcript.restore(rows, cached[1])
            shown = {row.client_message_id for row in rows}
            for send in sends:
                # A window that was killed kept nothing: what the ledger has learnt since is shown too.
                if send.client_message_id in shown or send.updated.wall > cached[1]:
                    room.transcript.put_send(state_of(send))
        desk.put(room.transcript.snapshot())
        self._load_draft(place)
        return room

    def _load_draft(self, place: Place) -> None:
        """This window's draft, or one that a window that is gone left behind."""
        if self._draft_of == place:
            return
        self._draft_of = place
        ledger, window = self._desk.ledger, self._desk.config.window_id
        draft = ledger.draft(window, place)
        if draft is None:
            others = [
                other for other in ledger.drafts(place) if not windows.is_alive(ledger, other.window_id)
            ]
            if others:
                draft = ledger.adopt_draft(others[0].window_id, window, place)
        if draft is None or not draft.text:
            return
        sent = [s for s in ledger.sends(place, limit=5) if s.created.wall >= draft.saved.wall]
        if any(send.text.strip() == draft.text.strip() for send in sent):
            # Submitted, and the program ended before the draft could be cleared: one place is enough.
            ledger.save_draft(window, place, "")
            return
        self._desk.put(DraftLoaded(draft.text))


def text_of(value: object) -> str:
    """A stored value as text; "" for anything else."""
    return value if isinstance(value, str) else ""


def _stored(remembered: Remembered | None) -> Stored | None:
    if remembered is None:
        return None
    return Stored(remembered.place.agent_id, remembered.place.conversation_id)
