"""What a window, or a command, holds of the keeper.

``ensure_keeper`` finds the running keeper of the profile or starts one; the returned handle is one
connection to it. As long as the handle is open the keeper counts a window as attached; when the process
behind it dies, the operating system closes the connection and the keeper knows.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from letta_tui import __version__
from letta_tui.keeper.control import CONTROL, LINE_LIMIT, SOCKET_NAME
from letta_tui.keeper.ends import End
from letta_tui.keeper.errors import KeeperError
from letta_tui.keeper.files import KeeperLock, SavedState, read_state, write_state
from letta_tui.keeper.identity import end_process, identify, wait_gone
from letta_tui.keeper.options import KeeperOptions, KeeperPaths
from letta_tui.keeper.server import end_all, end_server
from letta_tui.paths import PathsError, private_folder

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
    "stop_keeper",
]

START_SECONDS = 15.0  # for a keeper to come up
_PATIENCE_SECONDS = 15.0  # for one that has the lock to answer
_SERVER_SECONDS = 75.0  # for a server to be started; more than the keeper gives it
_HELLO_SECONDS = 3.0
_PROGRAM = (sys.executable, "-m", "letta_tui.keeper")
_GONE = "The keeper is gone."


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where the server listens. ``url`` is a ``ws://…/ws`` URL; ``token_file`` is absolute.

    ``life`` changes whenever another server process answers there: run ids mean nothing across it.
    ``owned``: the keeper started that server, so it can restart it. ``note``: something a person should know.
    """

    url: str
    token_file: Path | None
    life: str = ""
    owned: bool = True
    note: str = ""

    def token(self) -> str | None:
        """The capability token, read afresh; ``None`` when the server needs none."""
        return self.token_file.read_text().strip() if self.token_file else None


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
        self.confine_agent: str = str(hello.get("confine_agent", ""))
        self._pump = asyncio.create_task(self._read())

    async def endpoint(self) -> ServerAddress:
        """The server's address; starts the server when it is not running (waits for that)."""
        return _address(await self._ask("endpoint", timeout=_SERVER_SECONDS))

    async def hold(self, agent_id: str, conversation_id: str) -> bool:
        """Keep the conversation subscribed; ``True`` once the server itself has confirmed it."""
        answer = await self._ask("hold", agent_id=agent_id, conversation_id=conversation_id, timeout=30)
        return bool(answer.get("held"))

    async def release(self, agent_id: str, conversation_id: str) -> None:
        """This window no longer needs the conversation; an open turn in it is still kept."""
        await self._ask("release", agent_id=agent_id, conversation_id=conversation_id)

    async def call(self, agent_id: str, conversation_id: str, what: str) -> None:
        """Show on the desktop that something waits for the person: nobody can see the window that asks."""
        await self._ask("call", agent_id=agent_id, conversation_id=conversation_id, about=what)

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
        return _address(await self._ask("restart_server", timeout=_SERVER_SECONDS))

    async def stop(self) -> None:
        """End the keeper and everything it started; returns when the keeper has left."""
        await self._ask("stop", timeout=30)
        await self._pump

    async def ends_since(
        self, at: float, agent_id: str | None = None, conversation_id: str | None = None
    ) -> tuple[End, ...]:
        """What happened after ``at`` (seconds since the epoch), oldest first."""
        raw = await self._ask("ends", since=at, agent_id=agent_id, conversation_id=conversation_id)
        return tuple(end for item in raw["ends"] if (end := End.from_json(item)) is not None)

    async def forget(self, agent_id: str, conversation_id: str) -> None:
        """Erase what was noted about a conversation."""
        await self._ask("forget", agent_id=agent_id, conversation_id=conversation_id)

    def on_news(self, listener: Callable[[Mapping[str, Any]], None] | None) -> None:
        """``listener`` gets what the keeper says unasked, e.g. ``{"news": "server", "state": "stopped"}``."""
        self._listener = listener

    async def close(self) -> None:
        """Detach this window."""
        self._pump.cancel()
        self._writer.close()
        await asyncio.gather(self._pump, return_exceptions=True)

    async def attach(self) -> None:
        """Count as a window from now on (``ensure_keeper`` has done it)."""
        await self._ask("attach")

    async def hand_over(self) -> None:
        """Let another keeper take the place of this one; detaches. Nothing held is dropped meanwhile."""
        with contextlib.suppress(KeeperError):
            await self._ask("hand_over")
        await self.close()

    @property
    def gone(self) -> bool:
        """Whether the keeper has hung up; nothing can be asked any more."""
        return bool(self._gone)

    async def _ask(self, what: str, timeout: float = 10, **fields: Any) -> dict[str, Any]:
        if self._gone:
            raise KeeperError(self._gone)
        number = next(self._ids)
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            async with asyncio.timeout(timeout):
                self._writer.write(json.dumps({"id": number, "do": what, **fields}).encode() + b"\n")
                await self._writer.drain()
                answer = await future
        except TimeoutError:
            raise KeeperError(f"The keeper did not answer within {timeout:g} seconds.") from None
        except ConnectionError:
            raise KeeperError(_GONE) from None
        finally:
            self._waiting.pop(number, None)
        if not answer.get("ok"):
            words = str(answer.get("error") or "The keeper could not do it.")
            raise KeeperError(words, lasting=bool(answer.get("lasting")))
        return answer

    async def _read(self) -> None:
        try:
            while line := await self._reader.readline():
                message = json.loads(line)
                future = self._waiting.get(message.get("id") or 0)
                if future is not None and not future.done():
                    future.set_result(message)
                elif "news" in message and self._listener is not None:
                    self._listener(message)
        except (OSError, ValueError):
            pass
        finally:
            self._gone = _GONE
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(KeeperError(_GONE))


def _address(raw: Mapping[str, Any]) -> ServerAddress:
    token = raw.get("token_file")
    return ServerAddress(
        url=str(raw["url"]),
        token_file=Path(token) if token else None,
        life=str(raw.get("life", "")),
        owned=bool(raw.get("owned", True)),
        note=str(raw.get("note") or ""),
    )


async def find_keeper(paths: KeeperPaths) -> KeeperHandle | None:
    """Connect to the profile's keeper if one is running; starts nothing, and counts as no window."""
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(_HELLO_SECONDS):
            reader, writer = await asyncio.open_unix_connection(paths.runtime / SOCKET_NAME, limit=LINE_LIMIT)
            line = await reader.readline()
    except (OSError, ValueError, TimeoutError):  # ValueError: a line beyond the limit
        if writer is not None:
            writer.close()
        return None
    try:
        hello = json.loads(line)
    except ValueError:
        hello = None
    if not isinstance(hello, dict) or hello.get("keeper") != "letta-tui":
        writer.close()
        return None
    return KeeperHandle(reader, writer, hello)


async def ensure_keeper(paths: KeeperPaths, options: KeeperOptions) -> KeeperHandle:
    """Connect to the profile's keeper, starting one when none runs. ``KeeperError`` says why it cannot."""
    deadline = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
    while True:
        handle = await find_keeper(paths)
        if handle is not None:
            if handle.confine_agent != (options.confine_agent or ""):
                await handle.close()
                raise KeeperError(_otherwise_confined(handle.confine_agent), lasting=True)
            if not await _outdated(handle):
                await handle.attach()
                return handle
            # It lets the new one in and stays subscribed until that one is.
            await handle.hand_over()
        started = await _start(paths, options)
        if not started:
            if asyncio.get_running_loop().time() > deadline:
                raise KeeperError(await asyncio.to_thread(_unresponsive, paths))
            await asyncio.sleep(0.1)


async def _outdated(handle: KeeperHandle) -> bool:
    """Whether the keeper is to be replaced: it cannot serve this window, or it is older and has no turn open.

    Its server is adopted either way; waiting for the turn is for the case that the new keeper cannot start.
    """
    if handle.control < CONTROL:
        return True
    if not _numbers(handle.version) < _numbers(__version__):
        return False
    return not (await handle.status()).busy


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


async def stop_keeper(paths: KeeperPaths) -> bool:
    """End the keeper and everything it started, also when it no longer answers or was killed.

    ``False`` when there was nothing to end.
    """
    handle = await find_keeper(paths)
    if handle is not None:
        keeper = identify(handle.pid)
        with contextlib.suppress(KeeperError):
            await handle.stop()
        await handle.close()
        if keeper is not None:  # it has hung up, and may still be about to end
            await asyncio.to_thread(wait_gone, keeper, _HELLO_SECONDS)
    found = await asyncio.to_thread(_end_leftovers, paths)
    return handle is not None or found


def _otherwise_confined(agent_id: str) -> str:
    how = f"is confined to agent {agent_id}" if agent_id else "is not confined"
    return f"The server that runs {how}; end it first with  letta-tui keeper stop"


def _end_leftovers(paths: KeeperPaths) -> bool:
    state = read_state(paths.state_file)
    found = False
    if state.keeper is not None and state.keeper.alive():
        end_process(state.keeper, 2.0)
        found = True
    if state.server is not None:
        found = found or state.server.identity.alive()
        end_server(state.server)
    found = found or any(process.alive() for process in state.started)
    end_all(state.started)
    if state.keeper is not None or state.server is not None:
        _forget_state(paths)
    return found


def _forget_state(paths: KeeperPaths) -> None:
    """What was ended on purpose is nothing that the next keeper should take over, or miss."""
    lock = KeeperLock(paths.lock)
    with contextlib.suppress(OSError):
        if lock.acquire():  # else there is a next keeper already, and the file is its own
            write_state(paths.state_file, SavedState())
    lock.release()


def _unresponsive(paths: KeeperPaths) -> str:
    state = read_state(paths.state_file)
    pid = f" (process {state.keeper.pid})" if state.keeper is not None and state.keeper.alive() else ""
    return f"A keeper is running{pid} but does not answer; end it with  letta-tui keeper stop"


async def _start(paths: KeeperPaths, options: KeeperOptions) -> bool:
    """Start a keeper; ``False`` when another one was first."""
    try:
        for folder in (paths.state, paths.runtime):
            private_folder(folder)
        process = await asyncio.to_thread(_spawn, paths, options.to_json())
    except PathsError as error:
        raise KeeperError(str(error), lasting=True) from None
    except OSError as error:
        raise KeeperError(f"The keeper cannot be started: {_why(error)}.") from None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(START_SECONDS):
            line = await asyncio.to_thread(process.stdout.readline)
    except TimeoutError:
        process.kill()
        raise KeeperError(f"The keeper did not start within {START_SECONDS:g} seconds.") from None
    finally:
        # Waited for, so that it is no zombie if it leaves before this process does.
        threading.Thread(target=process.wait, daemon=True).start()
    process.stdout.close()
    try:
        word = json.loads(line)
    except ValueError:
        word = {"error": f"The keeper ended while starting; see {paths.log}."}
    if "error" in word:
        raise KeeperError(str(word["error"]), lasting=True)
    return "ready" in word


def _why(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror or error}{where}"


def _spawn(paths: KeeperPaths, options: str) -> subprocess.Popen[bytes]:
    with paths.log.open("ab") as log:
        process = subprocess.Popen(
            [*_PROGRAM, str(paths.state), str(paths.runtime)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(options.encode())
        process.stdin.close()
    return process
