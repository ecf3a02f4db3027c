"""Tools of the person's own: offered with every start, run when the server calls, at most once each.

The decisions are in ``letta_tui.tools.deciding``; what was decided, run and answered is in the ledger before
the next step is taken.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from pathlib import Path

from letta_tui.conversation.headlines import headline, pretty
from letta_tui.ledger.errors import LedgerError
from letta_tui.ledger.values import Place, ToolCall
from letta_tui.protocol import Delta, Frame, commands
from letta_tui.protocol.events import ControlRequest, ExternalToolCall
from letta_tui.seam.intents import Decide
from letta_tui.seam.state import ApprovalView
from letta_tui.seam.updates import Attention
from letta_tui.tools.deciding import (
    Ask,
    Ignore,
    Refuse,
    Repeat,
    Run,
    arrived,
    is_ours,
    lost_note,
    plan,
    returns,
)
from letta_tui.tools.running import run
from letta_tui.tools.values import SERVER_WAITS, Outcome, Tool
from letta_tui.transport.connection import TransportError
from letta_tui.worker import windows
from letta_tui.worker.approving import Decider
from letta_tui.worker.crashpoints import reached
from letta_tui.worker.desk import Desk, Link
from letta_tui.worker.offering import Offering
from letta_tui.worker.publishing import Publisher
from letta_tui.worker.room import Room

log = logging.getLogger(__name__)

MARGIN = 15.0  # seconds before the server stops waiting at which a call is given up here

Key = tuple[Place, str]


@dataclass(slots=True)
class _Asked:
    """A card of ours. ``answer`` gets the decision, or None when the server waits no more."""

    link: Link
    place: Place
    view: ApprovalView
    answer: asyncio.Future[Decide | None]


class Toolbox:
    def __init__(self, desk: Desk, publisher: Publisher, decider: Decider) -> None:
        self._desk = desk
        self._publisher = publisher
        self._decider = decider
        self.offering = Offering(desk)
        self._work: dict[Key, asyncio.Task[None]] = {}
        self._asks: dict[Key, _Asked] = {}
        self._stopped: set[Key] = set()
        self._written: dict[tuple[Place, str], ToolCall] = {}  # by tool call id, until its return is seen

    # --- the server asks for a permission ---

    def allow_by_config(self, request: ControlRequest) -> bool:
        """Answer for a tool that needs nobody's word; true when nobody is to be asked."""
        room = self._desk.room
        tool = self.offering.get(request.tool_name)
        if room is None or tool is None or tool.approval != "auto":
            return False
        if room.device is not None and room.device.mode == "strict":
            return False
        if request.request_id not in room.auto:
            room.auto.add(request.request_id)
            if room.ready:
                self._desk.tasks.spawn(self._allow(room, request.request_id), "allow")
        return True

    def ready(self, room: Room) -> None:
        """Decisions can be written now: answer what came before."""
        for view in room.approvals.pending:
            if view.request_id in room.auto:
                self._desk.tasks.spawn(self._allow(room, view.request_id), "allow")

    async def _allow(self, room: Room, request_id: str) -> None:
        await self._decider.decide(Decide(request_id, "allow"), "the config")
        view = room.approvals.get(request_id)
        if view is not None and view.state != "deciding":
            room.auto.discard(request_id)  # it did not count: the person is asked
            self._publisher.touch()

    # --- the server calls ---

    def take(self, link: Link, frame: Frame) -> None:
        """A call, of the conversation on the screen or of another one that this connection has started."""
        call, runtime = frame.external_tool_call, frame.runtime or self._desk.runtime
        if call is None or runtime is None:
            return
        place = Place(link.server_key, runtime.agent_id or "", runtime.conversation_id)
        key = (place, call.request_id)
        if key not in self._work:
            task = self._work[key] = self._desk.tasks.spawn(self._serve(link, place, call), "tool")
            task.add_done_callback(lambda _: self._over(key))

    def _over(self, key: Key) -> None:
        self._work.pop(key, None)
        self._stopped.discard(key)

    async def _serve(self, link: Link, place: Place, call: ExternalToolCall) -> None:
        desk, loop = self._desk, asyncio.get_running_loop()
        deadline = loop.time() + SERVER_WAITS - MARGIN
        tool = self.offering.get(call.tool_name)
        try:
            record, new = desk.ledger.tool_asked(
                place,
                call.request_id,
                tool_call_id=call.tool_call_id,
                tool_name=call.tool_name,
                arguments=call.input,
                connection_id=link.connection_id,
                window_id=desk.config.window_id,
            )
            under_the_id = desk.ledger.tool_calls(place, tool_call_id=call.tool_call_id)
            chosen = plan(
                tool,
                record,
                new=new,
                working=False,
                earlier=[one for one in under_the_id if one.request_id != call.request_id],
                approvals=desk.ledger.approvals(place),
                window_id=desk.config.window_id,
            )
            if isinstance(chosen, Ask):
                answer = await self._ask(link, record, deadline)
                if answer is None:
                    return  # the server waits no more; recovery tells
                chosen = answer
            match chosen:
                case Run(allowed_by) if tool is not None:
                    await self._run(link, record, tool, allowed_by, deadline)
                case Repeat(known):
                    if record.state == "asked":
                        desk.ledger.tool_moved(place, call.request_id, "declined", words="Answered before.")
                    await self._deliver(link, replace(record, result=known.result, is_error=known.is_error))
                case Refuse(words):
                    if record.state == "asked":
                        desk.ledger.tool_moved(place, call.request_id, "declined", words=words)
                    await self._send(link, call.request_id, Outcome(words, failed=True))
                case Run() | Ignore() | Ask():
                    pass
        except LedgerError as error:
            desk.tell(error.words, "error")
            await self._send(
                link, call.request_id, Outcome(f"{call.tool_name} was not run: {error.words}", failed=True)
            )

    async def _run(self, link: Link, call: ToolCall, tool: Tool, allowed_by: str, deadline: float) -> None:
        ledger, place, request_id = self._desk.ledger, call.place, call.request_id
        reached("tool.before_record")
        ledger.tool_moved(place, request_id, "running", allowed_by=allowed_by)
        reached("tool.after_record")
        seconds = max(1.0, min(tool.timeout, deadline - asyncio.get_running_loop().time()))
        try:
            if tool.source:
                outcome = await self.offering.call(tool, call.input, seconds=seconds)
            else:
                outcome = await run(tool, call.input, seconds=seconds, cwd=self._folder())
        except asyncio.CancelledError:
            if (place, request_id) not in self._stopped:
                raise  # this program ends; a relaunch tells what is not known
            outcome = Outcome(f"The person stopped the turn; {tool.name} was ended meanwhile.", failed=True)
        reached("tool.after_run")
        ended = ledger.tool_moved(place, request_id, "finished", result=outcome.text, is_error=outcome.failed)
        reached("tool.after_result")
        await self._deliver(link, ended)

    def _folder(self) -> Path | None:
        """The conversation's folder, where it is on this machine."""
        folder = Path(self._desk.status.cwd) if self._desk.status.cwd else None
        return folder if folder is not None and folder.is_dir() else None

    async def _deliver(self, link: Link, call: ToolCall) -> None:
        desk = self._desk
        if await self._send(link, call.request_id, Outcome(call.result, failed=call.is_error)):
            if call.state == "finished":
                call = desk.ledger.tool_moved(call.place, call.request_id, "written")
                self._written[(call.place, call.tool_call_id)] = call
            reached("tool.after_answer")
            return
        room = desk.room
        if call.state == "finished" and room is not None and room.place == call.place and room.ready:
            self._lose(room, call)  # while recovery goes on, it tells
            self._publisher.touch()

    async def _send(self, link: Link, request_id: str, outcome: Outcome) -> bool:
        try:
            await link.client.send(
                commands.external_tool_result(request_id, outcome.text, is_error=outcome.failed)
            )
        except TransportError as lost:
            log.info("the answer of a tool was not written: %s", lost.words)
            return False
        return True

    # --- cards of our own ---

    async def _ask(self, link: Link, call: ToolCall, deadline: float) -> Run | Refuse | None:
        """Ask the person, since the server did not; None when it waits no more."""
        key = (call.place, call.request_id)
        view = ApprovalView(
            request_id=call.request_id,
            tool_call_id=call.tool_call_id,
            tool_name=call.tool_name,
            headline=headline(call.tool_name, call.input),
            arguments=pretty(dict(call.input)),
            own=True,
        )
        loop = asyncio.get_running_loop()
        asked = self._asks[key] = _Asked(link, call.place, view, loop.create_future())
        room = self._desk.room
        here = room is not None and room.place == call.place
        elsewhere = "" if here else " in another conversation"
        self._desk.call(Attention("approval", f"{call.tool_name} waits for your decision{elsewhere}"))
        self._show()
        try:
            async with asyncio.timeout_at(deadline):
                intent = await asked.answer
        except TimeoutError:
            return Refuse(f"Nobody decided about {call.tool_name} in time, so it was not run.")
        finally:
            self._asks.pop(key, None)
            self._show()
        if intent is None:
            return None
        if intent.behavior == "allow":
            return Run("you")
        return Refuse(f"The person did not allow {call.tool_name}. {intent.message}".rstrip())

    def decide(self, intent: Decide) -> bool:
        """The person's word about a card of ours; False when the card is the server's."""
        asked = next((one for (_, rid), one in self._asks.items() if rid == intent.request_id), None)
        if asked is None:
            return False
        if asked.answer.done():
            return True
        desk, view = self._desk, asked.view
        try:
            desk.ledger.decide(
                asked.place,
                view.request_id,
                tool_call_id=view.tool_call_id,
                tool_name=view.tool_name,
                decision=intent.behavior,
                message=intent.message,
                window_id=desk.config.window_id,
            )
            # Nobody else has to take it.
            desk.ledger.approval_moved(asked.place, view.request_id, "acknowledged")
        except LedgerError as error:
            desk.tell(error.words, "error")
            return True
        asked.answer.set_result(intent)
        if desk.room is not None and desk.room.place == asked.place:
            desk.put(*desk.room.transcript.decided(view.tool_call_id, intent.behavior, "you", intent.message))
        return True

    def _show(self) -> None:
        room = self._desk.room
        if room is not None:
            room.asks = [asked.view for asked in self._asks.values() if asked.place == room.place]
            self._publisher.touch()

    # --- turns and connections end ---

    def stop(self, place: Place) -> None:
        """The turn was stopped: whatever is waited for or runs there is ended."""
        for key, asked in list(self._asks.items()):
            if key[0] == place and not asked.answer.done():
                asked.answer.set_result(Decide(key[1], "deny", "The turn was stopped."))
        for key, task in list(self._work.items()):
            if key[0] == place and key not in self._asks and key not in self._stopped:
                self._stopped.add(key)
                task.cancel()

    def down(self, link: Link) -> None:
        """The server drops the calls of a connection that ends."""
        for asked in self._asks.values():
            if asked.link is link and not asked.answer.done():
                asked.answer.set_result(None)

    def returned(self, room: Room, delta: Delta) -> None:
        """A tool's return in the stream: proves that an answer arrived, or that it did not."""
        if delta.message_type != "tool_return_message" or not self._written:
            return
        for call_id, text in returns(delta):
            call = self._written.pop((room.place, call_id), None)
            if call is None:
                continue
            try:
                if is_ours(text):
                    self._desk.ledger.tool_moved(call.place, call.request_id, "confirmed")
                else:
                    self._lose(room, call)
            except LedgerError as error:
                self._desk.tell(error.words, "error")

    def recover(self, room: Room) -> list[str]:
        """History was read: what became of calls whose answer was not seen to arrive, as notes."""
        self._show()
        self._mark_cards(room)
        notes: list[str] = []
        mine = self._desk.config.window_id
        for call in self._desk.ledger.tool_calls(room.place, open_only=True):
            if (room.place, call.request_id) in self._work:
                continue
            if call.window_id != mine and windows.is_alive(self._desk.ledger, call.window_id):
                continue
            self._written.pop((room.place, call.tool_call_id), None)
            rows = (row.tool for row in reversed(room.transcript.rows) if row.tool is not None)
            tool = next((one for one in rows if one.call_id == call.tool_call_id), None)
            try:
                if call.state == "asked":
                    note = lost_note(call)
                    self._desk.ledger.tool_moved(room.place, call.request_id, "declined", words=note)
                    notes.append(note)
                elif arrived(tool, call):
                    self._desk.ledger.tool_moved(room.place, call.request_id, "confirmed")
                else:
                    notes.append(lost_note(call))
                    self._desk.ledger.tool_moved(room.place, call.request_id, "lost", words=notes[-1])
            except LedgerError as error:
                self._desk.tell(error.words, "error")
        return notes

    def _mark_cards(self, room: Room) -> None:
        """The server calls a tool only over the connection that its turn began with (0.34.12)."""
        room.own_tools = frozenset(self.offering.names)
        waiting = room.approvals.pending
        room.old_cards = frozenset(card.request_id for card in waiting if card.tool_name in room.own_tools)

    def _lose(self, room: Room, call: ToolCall) -> None:
        note = lost_note(call)
        self._desk.ledger.tool_moved(call.place, call.request_id, "lost", words=note)
        room.notes.append(note)
        self._desk.tell(note, "warning")
