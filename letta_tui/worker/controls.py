"""The running turn and the device: abort, queue, mode, folder, model. Done is what the state shows."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from letta_tui.protocol import DeviceStatus, commands
from letta_tui.seam.intents import CancelQueued, SetCwd, SetMode, SetModel
from letta_tui.seam.state import QueueItemView
from letta_tui.worker.crashpoints import reached
from letta_tui.worker.desk import AskFailed, Desk
from letta_tui.worker.events import Events
from letta_tui.worker.publishing import Publisher
from letta_tui.worker.room import Room
from letta_tui.worker.sending import Sender

CHANGE_SECONDS = 10.0  # until a device status shows a change that has no answer of its own


class Controls:
    def __init__(self, desk: Desk, events: Events, sender: Sender, publisher: Publisher) -> None:
        self._desk = desk
        self._sender = sender
        self._publisher = publisher
        self._stirred = asyncio.Event()
        events.device_changed = self._device_changed

    def _device_changed(self, device: DeviceStatus) -> None:
        self._stirred.set()

    def stir(self) -> None:
        """A turn ended, or the connection did: whoever waits for a state looks again."""
        self._stirred.set()

    # --- the turn ---

    async def abort(self) -> bool:
        """Stop the active turn. The turn is over when the server says so, not when it took the wish."""
        desk, room = self._desk, self._desk.room
        if room is None or desk.link is None:
            desk.tell("There is no connection now, so nothing can be stopped.", "warning")
            return False
        room.turn.aborting(True)
        self._publisher.touch()
        try:
            frame = await desk.ask(commands.abort_message(room.runtime))
        except AskFailed as failed:
            room.turn.aborting(False)
            self._publisher.touch()
            desk.tell(f"The turn could not be stopped: {failed.words}", "warning")
            return False
        if frame.raw.get("aborted") is not True:
            room.turn.aborting(False)
            self._publisher.touch()
            desk.tell("Nothing was running.")
            return False
        return True

    async def stop_and_wait(self, timeout: float = 20.0) -> None:
        """Abort and wait for the end of the turn, for leaving cleanly."""
        room = self._desk.room
        if room is None or not (room.turn.active or room.approvals.pending):
            return
        if not await self.abort():
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while room.turn.active and self._desk.link is not None:
                    self._stirred.clear()
                    await self._stirred.wait()

    # --- the queue ---

    async def cancel_queued(self, intent: CancelQueued) -> None:
        """Take an item out of the queue. Held here: at once. On the server: when the server says so."""
        desk, room = self._desk, self._desk.room
        if room is None or self._sender.take_back(intent.item_id):
            return
        item = room.queue.item(intent.item_id) or next(
            # On its way it goes by its own name, in the server's queue by the server's.
            (one for one in room.queue.views() if one.client_message_id == intent.item_id),
            None,
        )
        if item is None:
            on_its_way = room.sends.get(intent.item_id)
            if on_its_way is not None and on_its_way.delivery in ("unconfirmed", "accepted"):
                room.cancel_asked.add(intent.item_id)  # done when it turns up in the queue
                return
            desk.tell("That message is no longer in the queue.", "warning")
            return
        await self._cancel(room, item)

    def cancel_arrived(self, key: str) -> None:
        """A message whose cancel was asked for while it was on its way has turned up in the queue."""
        room = self._desk.room
        if room is None:
            return
        item = next((one for one in room.queue.views() if one.client_message_id == key), None)
        if item is not None and not item.cancelling:
            self._desk.tasks.spawn(self._cancel(room, item), "cancel")

    async def _cancel(self, room: Room, item: QueueItemView) -> None:
        desk = self._desk
        room.queue.cancelling(item.item_id)
        if item.client_message_id:
            room.cancel_asked.add(item.client_message_id)
        self._publisher.touch()
        reached("queue.before_cancel")
        try:
            await desk.ask(commands.remove_queue_item(room.runtime, item.item_id))
        except AskFailed as failed:
            room.queue.cancelling(item.item_id, False)
            room.cancel_asked.discard(item.client_message_id or "")
            self._publisher.touch()
            words = "the server no longer has it in the queue" if failed.refused else failed.words
            desk.tell(f"It was not cancelled: {words}", "warning")
            return
        reached("queue.after_cancel")
        self._publisher.touch()

    async def resume_queue(self) -> None:
        desk, room = self._desk, self._desk.room
        if room is None:
            return
        try:
            await desk.ask(commands.resume_queue(room.runtime))
        except AskFailed as failed:
            desk.tell(f"The queue was not resumed: {failed.words}", "warning")

    # --- the device ---

    async def set_mode(self, intent: SetMode) -> None:
        room = self._desk.room
        if room is None:
            return
        command = commands.change_device_state(room.runtime, mode=intent.mode)
        if await self._change(room, command, lambda device: device.mode == intent.mode):
            self._desk.ledger.remember_conversation(room.place, state={"mode": intent.mode}, used=False)
            self._desk.set_status(mode=intent.mode)
        else:
            self._desk.tell(
                f"The server did not change the mode to {intent.mode}: choose it again with /mode.", "warning"
            )

    async def set_cwd(self, intent: SetCwd) -> None:
        room = self._desk.room
        if room is None:
            return
        command = commands.change_device_state(room.runtime, cwd=intent.path)
        if await self._change(room, command, lambda device: device.cwd == intent.path):
            self._desk.ledger.remember_conversation(room.place, state={"cwd": intent.path}, used=False)
        else:
            # A folder it does not like is passed over by the server without a word.
            words = f"The server did not go to {intent.path}: /cwd takes a folder that exists on its machine."
            self._desk.tell(words, "warning")

    async def _change(
        self, room: Room, command: dict[str, object], done: Callable[[DeviceStatus], bool]
    ) -> bool:
        """Write a change that has no answer and wait for a device status that shows it."""
        desk = self._desk
        if desk.link is None:
            return False
        link = desk.link
        self._stirred.clear()
        await link.client.send(command)
        with contextlib.suppress(TimeoutError, AskFailed):
            async with asyncio.timeout(CHANGE_SECONDS):
                # Asked for: a status that is unchanged in the server's eyes is not sent by itself.
                await desk.ask(commands.sync(room.runtime))
                while room.device is None or not done(room.device):
                    self._stirred.clear()
                    await self._stirred.wait()
        return room.device is not None and done(room.device)

    async def set_model(self, intent: SetModel) -> None:
        desk, room = self._desk, self._desk.room
        if room is None:
            return
        try:
            frame = await desk.ask(commands.update_model(room.runtime, model_handle=intent.handle))
        except AskFailed as failed:
            desk.tell(f"The model was not changed: {failed.words}", "warning")
            return
        handle = frame.raw.get("model_handle")
        desk.set_status(model=handle if isinstance(handle, str) else intent.handle)
        if frame.raw.get("applied_to") == "agent":
            desk.tell("The model was changed for the agent, in all its conversations.")
