"""A view without a screen: sits before a worker, applies its updates, and waits for what it should see."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from letta_tui.seam.intents import Intent, Submit
from letta_tui.seam.state import (
    ApprovalView,
    ConnectionView,
    QuestionView,
    QueueItemView,
    RecoveryView,
    Row,
    SendView,
    StatusView,
)
from letta_tui.seam.updates import (
    ApprovalsChanged,
    Closed,
    ConnectionChanged,
    DraftLoaded,
    Notice,
    QuestionChanged,
    QueueChanged,
    RecoveryChanged,
    SendsChanged,
    StatusChanged,
    SubmitSettled,
    TextAppended,
    TranscriptChanged,
    Update,
)
from letta_tui.worker.config import WorkerConfig
from letta_tui.worker.worker import Worker

T = TypeVar("T")


@dataclass
class Seat:
    """``seen`` has every update in order; the other fields are what a view would show now."""

    worker: Worker
    seen: list[Update] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    queue: tuple[QueueItemView, ...] = ()
    approvals: tuple[ApprovalView, ...] = ()
    sends: tuple[SendView, ...] = ()
    connection: ConnectionView | None = None
    status: StatusView = field(default_factory=StatusView)
    recovery: RecoveryView | None = None
    question: QuestionView | None = None
    drafts: list[DraftLoaded] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    settled: dict[str, SubmitSettled] = field(default_factory=dict)
    closed: Closed | None = None
    _tokens: int = 0

    @classmethod
    def start(cls, config: WorkerConfig, open_: Any = None) -> Seat:
        worker = Worker(config, open_=open_)
        seat = cls(worker)
        worker.start()
        return seat

    def send(self, intent: Intent) -> None:
        self.worker.send(intent)

    def say(self, text: str) -> str:
        """Submit a message; returns the token of its ``SubmitSettled``."""
        self._tokens += 1
        token = f"t{self._tokens}"
        self.send(Submit(token, text))
        return token

    async def said(self, text: str) -> str:
        """Submit a message and wait until it is on disk; returns its client message id."""
        token = self.say(text)
        settled = await self.until(lambda: self.settled.get(token), what="SubmitSettled")
        assert settled.ok, settled.error
        return settled.client_message_id

    def look(self) -> None:
        for update in self.worker.drain():
            self.seen.append(update)
            self._apply(update)

    def _apply(self, update: Update) -> None:
        match update:
            case TranscriptChanged(splices, reset):
                if reset:
                    self.rows = []
                for splice in splices:
                    assert 0 <= splice.start <= len(self.rows), (splice.start, len(self.rows))
                    assert splice.start + splice.delete <= len(self.rows)
                    self.rows[splice.start : splice.start + splice.delete] = splice.rows
            case TextAppended(key, text):
                self._append(key, text)
            case QueueChanged(items):
                self.queue = items
            case ApprovalsChanged(items):
                self.approvals = items
            case SendsChanged(items):
                self.sends = items
            case ConnectionChanged(connection):
                self.connection = connection
            case StatusChanged(status):
                self.status = status
            case RecoveryChanged(recovery):
                self.recovery = recovery
            case QuestionChanged(question):
                self.question = question
            case DraftLoaded():
                self.drafts.append(update)
            case Notice(text):
                self.notices.append(text)
            case SubmitSettled(token):
                self.settled[token] = update
            case Closed():
                self.closed = update
            case _:
                pass

    def _append(self, key: str, text: str) -> None:
        from dataclasses import replace

        for at, row in enumerate(self.rows):
            if row.key == key:
                if row.tool is not None:
                    self.rows[at] = replace(row, tool=replace(row.tool, result=row.tool.result + text))
                else:
                    self.rows[at] = replace(row, text=row.text + text)
                return
        raise AssertionError(f"text for a row that is not there: {key}")

    # --- waiting ---

    async def until(self, condition: Callable[[], T], timeout: float = 60, what: str = "") -> T:
        end = time.monotonic() + timeout
        while True:
            self.look()
            value = condition()
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(f"not within {timeout} s: {what or condition}\n{self.describe()}")
            await asyncio.sleep(0.01)

    async def ready(self, timeout: float = 60) -> Seat:
        await self.until(
            lambda: (
                self.connection is not None and self.connection.phase == "ready" and self.connection.can_send
            ),
            timeout,
            "connected and recovered",
        )
        return self

    async def rest(self, timeout: float = 60) -> None:
        """Until nothing runs, waits or is being checked."""
        await self.until(
            lambda: (
                self.status.activity == "idle"
                and not self.queue
                and not self.approvals
                and not any(
                    send.delivery in ("prepared", "unconfirmed", "accepted", "queued", "started")
                    for send in self.sends
                )
            ),
            timeout,
            "at rest",
        )

    async def reply(self, words: str, timeout: float = 60) -> Row:
        """The assistant's row that contains ``words`` and no longer grows."""
        return await self.until(
            lambda: next(
                (r for r in self.rows if r.kind == "assistant" and words in r.text and not r.live), None
            ),
            timeout,
            f"a reply with {words!r}",
        )  # type: ignore[return-value]

    async def quit(self, timeout: float = 60) -> None:
        if not await asyncio.to_thread(self.worker.stop, timeout):
            raise AssertionError("the worker did not end")
        self.look()

    # --- looking ---

    def texts(self, kind: str) -> list[str]:
        return [row.text for row in self.rows if row.kind == kind]

    def row_of(self, client_message_id: str) -> Row | None:
        return next((row for row in self.rows if row.client_message_id == client_message_id), None)

    def view_of(self, client_message_id: str) -> SendView | None:
        return next((send for send in self.sends if send.client_message_id == client_message_id), None)

    def describe(self) -> str:
        lines: list[Any] = [
            f"connection: {self.connection}",
            f"status: {self.status}",
            f"queue: {self.queue}",
            f"approvals: {self.approvals}",
            f"sends: {self.sends}",
            f"recovery: {self.recovery}",
            f"question: {self.question}",
            f"notices: {self.notices}",
            f"closed: {self.closed}",
        ]
        lines += [
            f"  {row.kind} {row.delivery or ''} {row.text[:60]!r} {row.tool or ''}" for row in self.rows[-20:]
        ]
        return "\n".join(map(str, lines))


def config_for(server: Any, folder: Path, **changes: Any) -> WorkerConfig:
    """A worker's configuration for a ``RealServer``, with its ledger in ``folder``."""
    from letta_tui.transport.endpoint import direct

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    values: dict[str, Any] = {
        "ledger_path": folder / "ledger.sqlite3",
        "endpoint": direct(server.url, token_file=server.token_file),
        "cwd": str(server.work),
    }
    return WorkerConfig(**{**values, **changes})
