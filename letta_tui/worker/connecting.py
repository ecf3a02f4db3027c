"""Coming to a connection and keeping it: resolve, connect, live until it is lost, wait, again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from letta_tui.ledger.errors import LedgerError
from letta_tui.protocol import Runtime, commands
from letta_tui.transport.backoff import Backoff
from letta_tui.transport.client import Client
from letta_tui.transport.connection import Connection, ConnectionLost, NoToken, Refused, TransportError
from letta_tui.transport.credentials import mark_of, renewal
from letta_tui.transport.endpoint import Endpoint, server_key
from letta_tui.transport.gaps import GapSync
from letta_tui.worker.desk import AskFailed, Desk, Link, ask
from letta_tui.worker.events import Events
from letta_tui.worker.hosting import Undecided
from letta_tui.worker.ports import KeeperTrouble, Whereabouts

log = logging.getLogger(__name__)

INFO_SECONDS = 15.0
CLOSE_SECONDS = 3.0
KEY_SECONDS = 1.0  # between two looks at the file of a token that was refused

Open = Callable[[Endpoint], Awaitable[Connection]]
Settle = Callable[[Endpoint], Awaitable[tuple[Endpoint, Runtime | None]]]
Live = Callable[[Link], Awaitable[None]]

# From where there was a connection before: a tunnel or a proxy answers so while what is behind it is away.
_MAY_PASS = frozenset({"not_letta", "not_found", "tls"})


class Connector:
    """``live`` is run beside each connection and cancelled when it ends; ``down`` is called after each end.

    ``settle`` is asked before each connect for what a hosted endpoint has in its address.
    ``gap`` is called when events were missed for good and history is to be read afresh.
    """

    def __init__(self, desk: Desk, events: Events, open_: Open | None = None) -> None:
        self._desk = desk
        self._events = events
        self._open = open_
        hands = desk.config.hands
        self._backoff = Backoff(hands.random)
        self._nudge = asyncio.Event()
        self._broke = False
        self._noted = ""  # what was last told about the place of the server
        self._moving = False
        self._endpoint: Endpoint | None = None
        self.live: Live = _nothing
        self.down: Callable[[Link], None] = lambda link: None
        self.gap: Callable[[], None] = lambda: None
        self.settle: Settle = _as_it_is
        self.last_heard = 0.0  # monotonic
        self._last_heard_wall = 0.0

    def reconnect_now(self) -> None:
        """The person asked, or the machine woke up: do not wait any longer."""
        self._backoff.at_once()
        self._nudge.set()

    async def move(self) -> None:
        """Leave this connection for one to another conversation or machine, without waiting in between."""
        link = self._desk.link
        self.reconnect_now()
        if link is not None:
            self._moving = True
            await link.client.close()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._nudge.clear()
            link: Link | None = None
            words, lasting = "", False
            key: Endpoint | None = None  # its token was refused
            try:
                link = await self._connect()
                self._backoff.opened(self._mono())
                lost = await self._live(link)
                words = lost.reason
            except Refused as refused:
                words = refused.words
                lasting = not (refused.worth_retrying or (self._broke and refused.kind in _MAY_PASS))
                if refused.kind == "token" and self._endpoint is not None:
                    key = self._endpoint
                    words = words if isinstance(refused, NoToken) else f"{words} {renewal(key)}".rstrip()
                    self._desk.tell(words, "warning")  # the whole sentence: the header has little room
            except Undecided as undecided:
                words, lasting = undecided.words, True
            except LedgerError as error:
                words, lasting = error.words, True
            except KeeperTrouble as trouble:
                words, lasting = trouble.words, trouble.lasting
            except TransportError as error:
                words = error.words
            except AskFailed as failed:
                words = failed.words
            if self._moving and link is not None:
                self._moving = False
                continue
            await self._wait(words, lasting=lasting, was_open=link is not None, key=key)

    async def _connect(self) -> Link:
        desk = self._desk
        phase = "connecting" if desk.connection.phase != "starting" else "starting"
        desk.set_connection(phase=phase, words="Looking for the server.", retry_at=None, held=False)
        where = await self._resolve()
        if where.note and where.note != self._noted:
            self._noted = where.note
            desk.tell(where.note, "warning")
        endpoint = self._endpoint = where.endpoint
        embedded = endpoint.kind == "embedded"
        desk.set_connection(
            phase="connecting",
            words=f"Connecting to {endpoint.shown}.",
            endpoint=endpoint.shown,
            embedded=embedded and where.owned,
        )
        endpoint, scope = await self.settle(endpoint)
        desk.set_connection(words=f"Connecting to {endpoint.shown}.", endpoint=endpoint.shown)
        if self._open is not None:
            connection = await self._open(endpoint)
        else:
            # Here: what was last known is on the screen by the time it is loaded.
            from letta_tui.transport.connect import open_connection

            connection = await open_connection(endpoint, scope)
        client = Client(connection, new_id=desk.config.hands.new_id)
        client.on_frame = lambda frame: self._heard()
        self._heard()
        link = Link(
            client=client,
            endpoint=endpoint,
            server_key=server_key(endpoint),
            connection_id=connection.connection_id,
            embedded=embedded and where.owned,
            opened=self._mono(),
            life=where.life,
            scope=scope,
            broke_before=self._broke,
        )
        try:
            frame = await ask(client, commands.app_server_info(), INFO_SECONDS)
        except AskFailed:
            await client.close()
            raise
        link.info = frame.server_info
        return link

    async def _resolve(self) -> Whereabouts:
        config = self._desk.config
        if config.keeper is not None:
            return await config.keeper.endpoint()
        assert config.endpoint is not None, "a worker needs an endpoint or a keeper"
        return Whereabouts(config.endpoint)

    async def _live(self, link: Link) -> ConnectionLost:
        """Everything that goes on over one connection, until it is gone; how it went."""
        desk, client = self._desk, link.client
        desk.link = link
        gaps = GapSync(client, lambda: [desk.runtime] if desk.runtime else [], on_sync=lambda _: self.gap())
        beside = [
            asyncio.create_task(self._pump(link), name="events"),
            asyncio.create_task(self._guard(link), name="live"),
        ]
        try:
            return await client.wait_lost()
        finally:
            desk.link = None
            self._broke = True
            if desk.room is not None:
                desk.room.missed(self._last_heard_wall)
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            await gaps.stop()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await client.close()
            self.down(link)

    async def _pump(self, link: Link) -> None:
        try:
            await self._events.pump(link)
        except ConnectionLost:
            return
        except Exception:
            log.exception("a frame could not be taken in")
            self._desk.tell(
                "An event of the server could not be taken in; reconnecting to read afresh.", "error"
            )
            await link.client.close()

    async def _guard(self, link: Link) -> None:
        try:
            await self.live(link)
        except (AskFailed, TransportError) as failed:
            # Half-recovered is not connected: begin again on a new connection.
            log.info("recovery did not end: %s", failed)
            if link.client.lost is None:
                self._desk.tell(failed.words, "warning")
            await link.client.close()
        except Exception:
            log.exception("the work on a connection failed")
            self._desk.tell("An error of this program broke the connection; connecting again.", "error")
            await link.client.close()

    async def _wait(self, words: str, *, lasting: bool, was_open: bool, key: Endpoint | None) -> None:
        """Tell it, and wait for the next attempt, for another token, or for somebody who will not wait."""
        desk = self._desk
        if lasting:
            desk.set_connection(phase="failed", words=words, retry_at=None, why_not=words, held=False)
            mark = mark_of(key) if key is not None else None
            while key is None or mark_of(key) == mark:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(KEY_SECONDS if key is not None else None):
                        await self._nudge.wait()
                        return
            return
        delay = self._backoff.next(self._mono())
        lead = "The connection was lost. " if was_open else ""
        desk.set_connection(
            phase="lost", words=f"{lead}{words}", retry_at=desk.now() + delay, why_not="", held=False
        )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await self._nudge.wait()

    def _heard(self) -> None:
        self.last_heard = self._mono()
        self._last_heard_wall = self._desk.now()

    def _mono(self) -> float:
        return self._desk.config.hands.mono()


async def _nothing(link: Link) -> None:
    await asyncio.Event().wait()


async def _as_it_is(endpoint: Endpoint) -> tuple[Endpoint, Runtime | None]:
    return endpoint, None
