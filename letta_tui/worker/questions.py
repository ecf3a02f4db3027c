"""Decisions only the person can take, and what follows from each answer."""

from __future__ import annotations

from letta_tui.conversation.words import choice
from letta_tui.seam.intents import AnswerQuestion
from letta_tui.seam.state import Action, QuestionView
from letta_tui.worker.connecting import Connector
from letta_tui.worker.desk import AskFailed, Desk
from letta_tui.worker.managing import Manager
from letta_tui.worker.ports import KeeperTrouble


class Questions:
    def __init__(self, desk: Desk, connector: Connector, manager: Manager) -> None:
        self._desk = desk
        self._connector = connector
        self._manager = manager

    def wedged(self, words: str) -> None:
        """The conversation refuses every input until its server restarts (a turn was cut off earlier)."""
        room = self._desk.room
        if room is None or self._desk.question is not None:
            return
        owned = self._desk.link is not None and self._desk.link.embedded
        self._desk.set_question(
            question(
                "wedged",
                "This conversation is stuck on the server",
                f"The server says: {words.rstrip('. ')}. Every message fails until the server restarts.",
                ("restart", "fork", "keep") if owned else ("fork", "keep"),
            )
        )

    def answer(self, intent: AnswerQuestion) -> None:
        """Only the question that stands, and only one of its choices."""
        desk, room = self._desk, self._desk.room
        asked = desk.question
        if asked is None or asked.id != intent.question_id:
            return
        if intent.action not in {choice.action for choice in asked.choices}:
            return
        if intent.action == "open_other":
            return  # the view opens its picker; the question stands until something is opened
        desk.set_question(None)
        if intent.action == "new":
            self._manager.new_conversation(None)
        elif intent.action == "reconnect":
            link = desk.link
            if link is not None:
                desk.tasks.spawn(link.client.close(), "reconnect")
            self._connector.reconnect_now()
        elif intent.action == "restart":
            desk.tasks.spawn(self._restart(), "restart")
        elif intent.action == "fork" and room is not None:
            desk.tasks.spawn(self._fork(room.place.agent_id, room.place.conversation_id), "fork")

    async def _restart(self) -> None:
        keeper = self._desk.config.keeper
        if keeper is None:
            return
        self._desk.tell("Restarting the server.")
        try:
            await keeper.restart_server()
            self._desk.tell("The server was restarted.")
        except KeeperTrouble as trouble:
            self._desk.tell(f"The server could not be restarted: {trouble.words}", "error")
        self._connector.reconnect_now()

    async def _fork(self, agent_id: str, conversation_id: str) -> None:
        try:
            await self._manager.fork(agent_id, conversation_id)
        except AskFailed as failed:
            self._desk.tell(f"The conversation could not be copied: {failed.words}", "error")


def question(kind: str, title: str, body: str, actions: tuple[Action, ...]) -> QuestionView:
    return QuestionView(kind, title, body, tuple(choice(action) for action in actions))


def ask_person(desk: Desk, kind: str, title: str, body: str, actions: tuple[Action, ...]) -> None:
    """Nothing is sent in the open conversation until this is answered."""
    if desk.room is not None:
        desk.room.blocked = title + "."
    desk.set_connection(phase="ready", words=title + ".", can_send=False, why_not=title + ".")
    # What the server said of a conversation that it did not open is nothing to go by.
    desk.set_status(mode="", cwd="", model="")
    desk.set_question(question(kind, title, body, actions))
