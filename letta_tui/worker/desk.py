"""What the parts of the worker share: the ledger, the live link, the conversation, the way to the view."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from letta_tui.ledger.store import Ledger
from letta_tui.ledger.values import Place, Stamp
from letta_tui.protocol import Frame, Runtime, ServerInfo
from letta_tui.seam.channel import Mailbox
from letta_tui.seam.state import ConnectionView, QuestionView, RecoveryView, Row, StatusView
from letta_tui.seam.updates import (
    Attention,
    ConnectionChanged,
    Notice,
    QuestionChanged,
    RecoveryChanged,
    StatusChanged,
    Update,
)
from letta_tui.transport.client import Client
from letta_tui.transport.connection import TransportError
from letta_tui.transport.endpoint import Endpoint
from letta_tui.worker.cache import MOST_ROWS, Cache, with_the_ledgers_word
from letta_tui.worker.config import WorkerConfig
from letta_tui.worker.room import Room
from letta_tui.worker.tasks import Tasks

log = logging.getLogger(__name__)

ASK_SECONDS = 30.0  # local servers answer in milliseconds; a busy one may take its time


class AskFailed(Exception):
    """The server said no, or did not answer. ``words`` is one sentence; ``refused`` when it said no."""

    def __init__(self, words: str, *, refused: bool = False) -> None:
        super().__init__(words)
        self.words = words
        self.refused = refused


@dataclass(slots=True)
class Link:
    """One live connection and what is known of the server behind it."""

    client: Client
    endpoint: Endpoint
    server_key: str
    connection_id: str
    embedded: bool
    info: ServerInfo | None = None
    opened: float = 0.0  # monotonic
    life: str = ""  # changes with every start of the server, where a keeper tells it
    scope: Runtime | None = None  # hosted: the one conversation this connection is for
    broke_before: bool = False  # an earlier connection of this worker had ended without our doing

    @property
    def version(self) -> str:
        return self.info.letta_code_version if self.info is not None else ""


@dataclass
class Desk:
    """Everything here is touched only from the worker's event loop."""

    config: WorkerConfig
    mailbox: Mailbox
    ledger: Ledger
    tasks: Tasks
    link: Link | None = None
    room: Room | None = None
    connection: ConnectionView = field(
        default_factory=lambda: ConnectionView(phase="starting", words="Starting.")
    )
    status: StatusView = field(default_factory=StatusView)
    question: QuestionView | None = None
    recovery: RecoveryView | None = None
    cache: Cache = field(default_factory=lambda: Cache(None))
    call: Callable[[Attention], None] = lambda attention: None  # for the person, who may look elsewhere

    # --- clocks and ids ---

    def stamp(self) -> Stamp:
        return self.config.hands.stamp()

    def now(self) -> float:
        return self.config.hands.wall()

    def new_id(self) -> str:
        return self.config.hands.new_id()

    # --- for the next start ---

    def rows_to_keep(self, room: Room) -> tuple[Row, ...]:
        """The newest rows, without what the person erased here: the history that was read still has it.

        Raises ``LedgerError``.
        """
        room.forgotten = room.forgotten or self.ledger.forgotten(room.place)
        if room.forgotten:
            return ()
        sends = self.ledger.sends(room.place, limit=MOST_ROWS)
        return with_the_ledgers_word(room.transcript.rows[-MOST_ROWS:], sends)

    # --- to the view ---

    def put(self, *updates: Update) -> None:
        for update in updates:
            self.mailbox.put(update)

    def tell(self, text: str, level: str = "info") -> None:
        if level == "error":
            self.put(Notice(text, "error"))
        elif level == "warning":
            self.put(Notice(text, "warning"))
        else:
            self.put(Notice(text))

    def set_connection(self, **changes: Any) -> None:
        view = replace(self.connection, **changes)
        if view != self.connection:
            self.connection = view
            self.put(ConnectionChanged(view))

    def set_status(self, **changes: Any) -> None:
        view = replace(self.status, **changes)
        if view != self.status:
            self.status = view
            self.put(StatusChanged(view))

    def set_question(self, question: QuestionView | None) -> None:
        if question != self.question:
            self.question = question
            self.put(QuestionChanged(question))

    def set_recovery(self, recovery: RecoveryView | None) -> None:
        if recovery != self.recovery:
            self.recovery = recovery
            self.put(RecoveryChanged(recovery))

    # --- to the server ---

    @property
    def runtime(self) -> Runtime | None:
        return self.room.runtime if self.room is not None else None

    @property
    def place(self) -> Place | None:
        return self.room.place if self.room is not None else None

    async def ask(self, command: Mapping[str, Any], timeout: float = ASK_SECONDS) -> Frame:
        """Ask the server and return a successful answer. Raises :class:`AskFailed` with words otherwise."""
        link = self.link
        if link is None:
            raise AskFailed("There is no connection to the server now.")
        return await ask(link.client, command, timeout)


async def ask(client: Client, command: Mapping[str, Any], timeout: float = ASK_SECONDS) -> Frame:
    """As :meth:`Desk.ask`, on a client that may not be the desk's."""
    try:
        frame = await client.request(command, timeout)
    except TransportError as error:
        raise AskFailed(error.words) from None
    except TimeoutError:
        raise AskFailed(f"The server did not answer {command.get('type')} within {timeout:.0f} s.") from None
    answer = frame.answer
    if answer is not None and not answer.success:
        raise AskFailed(answer.error or f"The server refused {command.get('type')}.", refused=True)
    return frame
