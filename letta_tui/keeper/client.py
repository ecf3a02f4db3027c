"""What a window, or a command, holds of the keeper.

``ensure_keeper`` finds the running keeper of the profile or starts one; the returned handle is one
connection to it. As long as the handle is open the keeper counts a window as attached; when the process
behind it dies, the operating system closes the connection and the keeper knows.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from letta_tui.keeper.options import KeeperOptions, KeeperPaths

__all__ = [
    "End",
    "KeeperError",
    "KeeperHandle",
    "KeeperOptions",
    "KeeperPaths",
    "KeeperStatus",
    "ServerAddress",
    "ensure_keeper",
    "find_keeper",
]


class KeeperError(Exception):
    """The keeper could not do it; the text is one sentence for a person.

    ``lasting``: waiting will not help, the person has to change something first.
    """

    def __init__(self, words: str, *, lasting: bool = False) -> None:
        super().__init__(words)
        self.lasting = lasting


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where the server listens. ``url`` is a ``ws://…/ws`` URL; ``token_file`` is absolute.

    ``life`` changes whenever another server process answers there: run ids mean nothing across it.
    ``owned``: the keeper started that server, so it can restart it.
    """

    url: str
    token_file: Path | None
    life: str = ""
    owned: bool = True

    def token(self) -> str | None:
        """The capability token, read afresh; ``None`` when the server needs none."""
        return self.token_file.read_text().strip() if self.token_file else None


@dataclass(frozen=True, slots=True)
class End:
    """Something that happened in a conversation while the keeper watched.

    ``kind``: "turn" (ended; ``stop_reason``, ``tools`` run, ``denied`` tools), "approval" (a tool waits;
    ``tools`` names it), "error" (``words`` says it), "server" (the server ended or was restarted).
    ``at``: seconds since the epoch. ``text`` of messages is never kept.
    """

    at: float
    kind: str
    agent_id: str = ""
    conversation_id: str = ""
    stop_reason: str = ""
    turn_id: str = ""
    run_id: str = ""
    tools: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    seconds: float | None = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class KeeperStatus:
    """A snapshot. ``holds`` are (agent, conversation) pairs the server has confirmed."""

    pid: int
    version: str
    started: float
    windows: int
    holds: tuple[tuple[str, str], ...]
    busy: tuple[tuple[str, str], ...]
    server: str  # "running", "starting", "stopped", "failed"
    server_url: str
    server_pid: int | None
    owned: bool
    words: str
    leaves_in: float | None  # seconds until it leaves if nothing happens; None while something does


class KeeperHandle:
    """One open connection to a keeper. All calls raise ``KeeperError`` when the keeper is gone."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: Mapping[str, Any]
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._gone = ""
        self._listener: Callable[[Mapping[str, Any]], None] | None = None
        self.version: str = str(hello.get("version", ""))
        self.control: int = int(hello.get("control", 0))
        self.pid: int = int(hello.get("pid", 0))
        self._pump = asyncio.create_task(self._read())

    async def endpoint(self) -> ServerAddress:
        """The server's address; starts the server when it is not running (waits up to 30 s)."""
        return _address(await self._ask("endpoint", timeout=45))

    async def hold(self, agent_id: str, conversation_id: str) -> bool:
        """Keep the conversation subscribed; ``True`` once the server itself has confirmed it."""
        answer = await self._ask("hold", agent_id=agent_id, conversation_id=conversation_id, timeout=30)
        return bool(answer.get("held"))

    async def release(self, agent_id: str, conversation_id: str) -> None:
        """This window no longer needs the conversation; an open turn in it is still kept."""
        await self._ask("release", agent_id=agent_id, conversation_id=conversation_id)

    async def status(self) -> KeeperStatus:
        raw = await self._ask("status")
        return KeeperStatus(
            pid=int(raw["pid"]),
            version=str(raw["version"]),
            started=float(raw["started"]),
            windows=int(raw["windows"]),
            holds=tuple((str(a), str(c)) for a, c in raw["holds"]),
            busy=tuple((str(a), str(c)) for a, c in raw["busy"]),
            server=str(raw["server"]),
            server_url=str(raw["server_url"]),
            server_pid=raw["server_pid"],
            owned=bool(raw["owned"]),
            words=str(raw["words"]),
            leaves_in=raw["leaves_in"],
        )

    async def restart_server(self) -> ServerAddress:
        """Stop the server and start it anew; every connection to the old one breaks."""
        return _address(await self._ask("restart_server", timeout=60))

    async def stop(self) -> None:
        """End the keeper and everything it started; returns when the keeper has left."""
        await self._ask("stop", timeout=30)
        await self._pump

    async def ends_since(
        self, at: float, agent_id: str | None = None, conversation_id: str | None = None
    ) -> tuple[End, ...]:
        """What happened after ``at`` (seconds since the epoch), oldest first."""
        raw = await self._ask("ends", since=at, agent_id=agent_id, conversation_id=conversation_id)
        return tuple(_end(item) for item in raw["ends"])

    def on_news(self, listener: Callable[[Mapping[str, Any]], None] | None) -> None:
        """``listener`` gets what the keeper says unasked, e.g. ``{"news": "server", "state": "stopped"}``."""
        self._listener = listener

    async def close(self) -> None:
        """Detach this window."""
        self._pump.cancel()
        self._writer.close()
        await asyncio.gather(self._pump, return_exceptions=True)

    async def _ask(self, what: str, timeout: float = 10, **fields: Any) -> dict[str, Any]:
        raise NotImplementedError

    async def _read(self) -> None:
        raise NotImplementedError


def _address(raw: Mapping[str, Any]) -> ServerAddress:
    token = raw.get("token_file")
    return ServerAddress(
        url=str(raw["url"]),
        token_file=Path(token) if token else None,
        life=str(raw.get("life", "")),
        owned=bool(raw.get("owned", True)),
    )


def _end(raw: Mapping[str, Any]) -> End:
    seconds = raw.get("seconds")
    return End(
        at=float(raw.get("at", 0)),
        kind=str(raw.get("kind", "")),
        agent_id=str(raw.get("agent_id", "")),
        conversation_id=str(raw.get("conversation_id", "")),
        stop_reason=str(raw.get("stop_reason", "")),
        turn_id=str(raw.get("turn_id", "")),
        run_id=str(raw.get("run_id", "")),
        tools=tuple(map(str, raw.get("tools", ()))),
        denied=tuple(map(str, raw.get("denied", ()))),
        seconds=None if seconds is None else float(seconds),
        words=str(raw.get("words", "")),
    )


async def find_keeper(paths: KeeperPaths) -> KeeperHandle | None:
    """Connect to the profile's keeper if one is running; starts nothing."""
    raise NotImplementedError


async def ensure_keeper(paths: KeeperPaths, options: KeeperOptions) -> KeeperHandle:
    """Connect to the profile's keeper, starting one when none runs. ``KeeperError`` says why it cannot."""
    raise NotImplementedError
