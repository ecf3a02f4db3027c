"""Each intent of the view to the part whose job it is."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass

from letta_tui.seam import intents as want
from letta_tui.worker.approving import Decider
from letta_tui.worker.calling import Caller
from letta_tui.worker.confining import refusal
from letta_tui.worker.connecting import Connector
from letta_tui.worker.controls import Controls
from letta_tui.worker.desk import AskFailed, Desk
from letta_tui.worker.drafts import Drafts
from letta_tui.worker.history import History
from letta_tui.worker.hosting import Hosting
from letta_tui.worker.listing import Lists
from letta_tui.worker.living import Living
from letta_tui.worker.managing import Manager
from letta_tui.worker.picking import OpenIt
from letta_tui.worker.publishing import Publisher
from letta_tui.worker.questions import Questions
from letta_tui.worker.sending import Sender
from letta_tui.worker.toolbox import Toolbox


@dataclass
class Dispatcher:
    desk: Desk
    sender: Sender
    controls: Controls
    toolbox: Toolbox
    decider: Decider
    questions: Questions
    living: Living
    manager: Manager
    lists: Lists
    hosting: Hosting
    history: History
    connector: Connector
    publisher: Publisher
    drafts: Drafts
    caller: Caller

    def take(self, intent: want.Intent) -> None:
        """Raises ``LedgerError`` when the disk does not take it. What needs the server goes on beside."""
        later: Awaitable[None] | None = None
        if words := refusal(self.desk.config.confined_to, intent):
            self.desk.tell(words, "warning")
            return
        match intent:
            case want.Submit():
                self._put_away_notes()  # whoever writes has seen them
                self.sender.submit(intent)
            case want.SaveDraft(text):
                self.drafts.save(text)
            case want.ResolveSend():
                self.sender.resolve(intent)
            case want.Abort():
                later = _stop(self.controls)
            case want.CancelQueued():
                later = self.controls.cancel_queued(intent)
            case want.ResumeQueue():
                later = self.controls.resume_queue()
            case want.Decide():
                if not self.toolbox.decide(intent):
                    later = self.decider.decide(intent)
            case want.PutAwayNotes():
                self._put_away_notes()
            case want.AnswerQuestion():
                self.questions.answer(intent)
            case want.OpenConversation(agent_id, conversation_id):
                self.living.go(OpenIt(agent_id, conversation_id, "you opened it"))
            case want.NewConversation(agent_id):
                self.manager.new_conversation(agent_id)
            case want.ManageConversation():
                later = self.manager.manage(intent)
            case want.ListConversations():
                later = self.lists.conversations(intent)
            case want.ListAgents():
                later = self.lists.agents()
            case want.ListDevices():
                later = self.hosting.devices(self.desk.config.endpoint)
            case want.UseDevice(device):
                self.living.use_device(device)
            case want.ListProviders():
                later = self.lists.providers()
            case want.ConnectProvider():
                later = self.lists.connect_provider(intent)
            case want.ListModels():
                later = self.lists.models(intent)
            case want.CreateAgent():
                later = self.manager.create_agent(intent)
            case want.ManageAgent():
                later = self.manager.manage_agent(intent)
            case want.SetMode():
                later = self.controls.set_mode(intent)
            case want.SetCwd():
                later = self.controls.set_cwd(intent)
            case want.SetModel():
                later = self.controls.set_model(intent)
            case want.LoadOlder(to_start):
                later = self._older(to_start)
            case want.Reconnect():
                self.connector.reconnect_now()
            case want.Redact():
                self.manager.redact(intent)
            case want.ForgetConversation():
                self.manager.forget(intent)
            case want.FocusChanged(focused):
                self._focused(focused)
            case want.Quit():
                pass  # taken by the loop
        if later is not None:
            self.desk.tasks.spawn(_run(later), type(intent).__name__)

    def _put_away_notes(self) -> None:
        room = self.desk.room
        if room is not None and room.notes and room.settled_once:
            room.notes.clear()
            self.publisher.touch()

    async def _older(self, to_start: bool) -> None:
        desk = self.desk
        if desk.link is None or desk.room is None:
            return
        try:
            await self.history.older(desk.link, desk.room, to_start=to_start)
        except AskFailed as failed:
            desk.tell(
                f"Older messages could not be read; scroll up again to ask once more: {failed.words}",
                "warning",
            )

    def _focused(self, focused: bool) -> None:
        self.caller.focused = focused
        room = self.desk.room
        # Before recovery has told what happened meanwhile, nobody has seen it: a window may start without
        # the focus. And a conversation that could not be opened is none of this client's.
        if focused or room is None or not room.settled_once:
            return
        if self.desk.ledger.conversation(room.place) is not None:
            self.desk.ledger.remember_conversation(room.place, state={"seen_at": self.desk.now()}, used=False)


async def _stop(controls: Controls) -> None:
    await controls.abort()


async def _run(work: Awaitable[None]) -> None:
    await work
