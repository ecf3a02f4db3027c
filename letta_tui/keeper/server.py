"""The embedded server: started, adopted from a keeper that was killed, stopped; with its companions."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import secrets
import signal
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from letta_tui.keeper.confine import CannotConfine, confine
from letta_tui.keeper.disk import words_if_full
from letta_tui.keeper.files import SavedServer, write_private
from letta_tui.keeper.identity import ProcessIdentity, children, end_process, wait_gone
from letta_tui.keeper.logs import rotate
from letta_tui.keeper.options import KeeperOptions, KeeperPaths
from letta_tui.keeper.program import NoProgram, find_letta, server_environment
from letta_tui.keeper.sharing import data_folder, others, words_about
from letta_tui.keeper.spawn import spawn_detached

START_SECONDS = 60.0  # ready in two; a machine under load, or a cold disk, must not end it over and over
_COMPANION_SECONDS = 10.0
_POLL = 0.05
_TAIL = 600  # characters of the output told to a person


class ServerTrouble(Exception):
    """The server could not be started; the text is one sentence, perhaps with what it printed.

    ``lasting``: it will not start until the person has changed something.
    """

    def __init__(self, words: str, *, lasting: bool = False) -> None:
        super().__init__(words)
        self.lasting = lasting


class EmbeddedServer:
    """At most one server process of this keeper.

    Output goes to files, not pipes: a pipe breaks when the keeper is killed, and would take the server along.
    """

    def __init__(
        self,
        paths: KeeperPaths,
        options: KeeperOptions,
        environ: Mapping[str, str],
        note: Callable[[], None] = lambda: None,
    ) -> None:
        """``note`` is called, in any thread, when ``started`` has grown; what it means runs afterwards."""
        self._paths = paths
        self._options = options
        self._environ = server_environment(environ, options.server_env)
        self.running: SavedServer | None = None
        self.started: tuple[ProcessIdentity, ...] = ()  # processes that are in ``running`` only later
        self._note = note
        self._closed = False
        self._lock = threading.Lock()  # processes are started by threads

    async def start(self, command: Sequence[str] | None = None) -> SavedServer:
        """Start it and wait until it listens. ``command`` replaces the way ``letta`` is called."""
        try:
            program = list(command) if command else find_letta(self._options.letta, self._environ)
        except NoProgram as error:
            raise ServerTrouble(str(error), lasting=True) from None
        if full := self.full():
            raise ServerTrouble(full, lasting=True)
        try:
            companions = [await self._companion(i, c) for i, c in enumerate(self._options.companions)]
            identity, url = await self._launch(program)
        except BaseException:
            await self._give_up()
            raise
        self.running = SavedServer(
            identity, url, self._paths.token, tuple(companions), self._options.confine_agent or ""
        )
        self.started = ()
        return self.running

    def adopt(self, saved: SavedServer) -> bool:
        """Take over a server that another keeper left behind; ``False`` when it no longer runs, or is not
        confined as this keeper's must be."""
        if not saved.identity.alive() or saved.confine_agent != (self._options.confine_agent or ""):
            return False
        self.running = saved
        return True

    def alive(self) -> bool:
        return self.running is not None and self.running.identity.alive()

    def full(self) -> str:
        """One sentence when there is no room for what it stores; "" when there is."""
        return words_if_full((self._paths.state, data_folder(self._environ)))

    def sharing(self) -> str:
        """Who else works on the server's data folder, in words; "" for nobody. Takes some 50 milliseconds."""
        if self.running is None:
            return ""
        return words_about(others(self._environ, self.running.identity), data_folder(self._environ))

    async def revive_companions(self) -> SavedServer | None:
        """Start companions anew that have ended; returns the new state if anything changed."""
        saved = self.running
        if saved is None:
            return None
        kept = [c for c in saved.companions if c.alive()]
        if len(kept) == len(self._options.companions):
            return None
        await asyncio.to_thread(end_all, kept)
        try:
            fresh = [await self._companion(i, c) for i, c in enumerate(self._options.companions)]
        except BaseException:
            await self._give_up()
            raise
        self.running = replace(saved, companions=tuple(fresh))
        self.started = ()
        return self.running

    async def stop(self) -> None:
        """End server and companions, also those still starting; returns when they are gone."""
        saved, self.running = self.running, None
        if saved is not None:
            await asyncio.to_thread(end_server, saved)
        await self._give_up()

    async def close(self) -> None:
        """Stop for good: what is being started at this moment will not run either."""
        with self._lock:
            self._closed = True
        await self.stop()

    async def _give_up(self) -> None:
        """End what was started and is not to be used."""
        begun = self.started
        await asyncio.to_thread(end_all, begun)
        with self._lock:
            self.started = tuple(each for each in self.started if each not in begun)

    async def _launch(self, program: Sequence[str]) -> tuple[ProcessIdentity, str]:
        try:
            write_private(self._paths.token, secrets.token_urlsafe(32))
            log = self._paths.server_log
            rotate(log)
        except OSError as error:
            raise ServerTrouble(
                f"The server cannot be started: {error.strerror} ({self._paths.state}).", lasting=True
            ) from None
        arguments = (
            "server", "--backend", "local", "--listen", "ws://127.0.0.1:0",
            "--ws-auth", "capability-token", "--ws-token-file", str(self._paths.token),
        )  # fmt: skip
        command, environ = [*program, *arguments], self._environ
        if self._options.confine_agent is not None:
            try:
                command, environ = await asyncio.to_thread(
                    confine, command, environ, self._options.confine_agent
                )
            except CannotConfine as error:
                raise ServerTrouble(f"The server is not started unconfined: {error}", lasting=True) from None
        identity = await self._spawn(command, log, environ, self._options.cwd)
        try:
            url = await _listening(identity, log, "WebSocket:", START_SECONDS)
        except TimeoutError:
            raise ServerTrouble(
                f"The server did not listen within {START_SECONDS:g} seconds. {_tail(log)}"
            ) from None
        if url is None or identity is None:
            raise ServerTrouble(f"The server ended while starting. {_tail(log)}")
        return identity, url

    async def _companion(self, number: int, command: tuple[str, ...]) -> ProcessIdentity:
        log = self._paths.companion_log(number)
        identity = await self._spawn(command, log, self._environ, None)
        try:
            ready = await _listening(identity, log, "Listening", _COMPANION_SECONDS)
        except TimeoutError:
            ready = None
        if ready is None or identity is None:
            raise ServerTrouble(f"{Path(command[0]).name} did not start. {_tail(log)}")
        return identity

    async def _spawn(
        self, command: Sequence[str], log: Path, environ: Mapping[str, str], cwd: Path | None
    ) -> ProcessIdentity | None:
        def note(identity: ProcessIdentity) -> None:
            with self._lock:
                if self._closed:
                    raise InterruptedError(errno.EINTR, "The keeper is ending")
                self.started = (*self.started, identity)
            self._note()

        try:
            return await asyncio.to_thread(spawn_detached, command, log, environ, cwd, note)
        except OSError as error:
            about = f" ({error.filename})" if error.filename not in (None, command[0]) else ""
            raise ServerTrouble(
                f"{command[0]} cannot be started: {error.strerror or error}{about}."
            ) from None


async def _listening(identity: ProcessIdentity | None, log: Path, word: str, seconds: float) -> str | None:
    """The address it announces; ``None`` when it ended. A start given up leaves nothing behind."""
    try:
        async with asyncio.timeout(seconds):
            while identity is not None and identity.alive():
                if address := _announced(log, word):
                    return address
                await asyncio.sleep(_POLL)
    except BaseException:
        if identity is not None:
            identity.signal(signal.SIGKILL)
        raise
    return None


def end_server(saved: SavedServer) -> None:
    """End a server, what its tools left running in its process group, and its companions."""
    leads_group = False
    if saved.identity.alive():
        with contextlib.suppress(OSError):
            leads_group = os.getpgid(saved.identity.pid) == saved.identity.pid
    if saved.confine_agent:
        # The wrapper passes no signal on; it ends when what it wraps has ended.
        for inner in children(saved.identity):
            inner.signal(signal.SIGTERM)
        wait_gone(saved.identity, 5.0)
    end_process(saved.identity)
    if leads_group and os.getpgrp() != saved.identity.pid:
        with contextlib.suppress(OSError):
            os.killpg(saved.identity.pid, signal.SIGKILL)
    end_all(saved.companions)


def end_all(processes: Iterable[ProcessIdentity]) -> None:
    """End companions, or what was to become them or a server."""
    for process in processes:
        end_process(process, 2.0)


def _announced(log: Path, word: str) -> str:
    """The last word of the complete line that begins with ``word``."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    for line in text.splitlines(keepends=True):
        if line.startswith(word) and line.endswith("\n"):
            return line.split()[-1]
    return ""


def _tail(log: Path) -> str:
    try:
        text = log.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        text = ""
    if not text:
        return "It printed nothing."
    return "It printed: " + ("…" + text[-_TAIL:] if len(text) > _TAIL else text)
