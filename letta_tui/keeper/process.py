"""The keeper process: puts server, link, control channel and notes together, and knows when to leave."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from letta_tui import __version__
from letta_tui.keeper import notify
from letta_tui.keeper.control import CONTROL, SOCKET_NAME, ControlError, ControlServer, Peer
from letta_tui.keeper.ends import End, EndLog
from letta_tui.keeper.files import KeeperLock, SavedServer, SavedState, read_state, write_state
from letta_tui.keeper.identity import identify
from letta_tui.keeper.link import Link
from letta_tui.keeper.options import KeeperOptions, KeeperPaths
from letta_tui.keeper.server import EmbeddedServer, ServerTrouble, end_all, end_server
from letta_tui.keeper.watch import Place, Watch
from letta_tui.protocol import Frame
from letta_tui.transport.connection import TransportError
from letta_tui.transport.endpoint import Endpoint, direct, embedded

_ADOPT_SECONDS = 5.0
_LINGER_SECONDS = 15.0  # after handing over: the next keeper has to be subscribed before this one is not


class AlreadyRunning(Exception):
    """Another keeper of this profile has the lock."""


class CannotRun(Exception):
    """The keeper cannot start; the text is one sentence."""


class Keeper:
    """One keeper. ``await run()`` returns when it has left; everything else happens on its event loop."""

    def __init__(
        self,
        paths: KeeperPaths,
        options: KeeperOptions,
        environ: Mapping[str, str],
        *,
        holds: tuple[Place, ...] = (),
        say: Callable[[str], None] = lambda words: None,
    ) -> None:
        self._paths = paths
        self._options = options
        self._environ = environ
        self._say = say
        self._lock = KeeperLock(paths.lock)
        self._log = EndLog(paths.ends)
        self._watch = Watch()
        self._link = Link(self._watch, self._on_frame, self._on_lost, self._on_connected)
        self._server = EmbeddedServer(paths, options, environ, self._save)
        self._starting = asyncio.Lock()
        self._leave = asyncio.Event()
        self._own_holds = set(holds)
        self._started = time.time()
        self._idle_since: float | None = time.monotonic()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._was_busy: tuple[Place, ...] = ()
        self._words = ""
        self._state = "stopped" if options.url is None else "remote"
        self._handed_over = False  # files, socket and server are the next keeper's
        self._told = ""  # what was last said about a lost connection
        self._saved: SavedState | None = None
        self._saving = threading.Lock()  # the server's processes are noted by the threads that start them
        me = identify(os.getpid())
        if me is None:
            raise CannotRun("This system does not tell a process about itself.")
        self._me = me
        self._tasks: set[asyncio.Task[Any]] = set()
        hello = {
            "keeper": "letta-tui",
            "control": CONTROL,
            "version": __version__,
            "pid": me.pid,
            "started": self._started,
            "confine_agent": options.confine_agent or "",
        }
        self._control = ControlServer(self._handle, self._peer_gone, hello)

    # -- life ---------------------------------------------------------------------------------------------

    async def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Run until told to stop or idle for long enough. ``ready`` is called once windows can connect.

        Raises ``AlreadyRunning``, or ``CannotRun`` with one sentence.
        """
        try:
            if not self._lock.acquire():
                raise AlreadyRunning
        except OSError as error:
            raise CannotRun(f"The keeper cannot use {self._paths.state}: {error.strerror}.") from None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._leave.set)
        loop.add_signal_handler(signal.SIGHUP, lambda: None)  # the terminal it came from may go
        before = read_state(self._paths.state_file)
        try:
            await self._take_over(before)
            self._save()
            with contextlib.suppress(OSError):
                self._log.trim(time.time())
            await self._control.start(self._paths.runtime / SOCKET_NAME)
            self._consider()
            ready()
            await self._leave.wait()
        except ControlError as error:
            raise CannotRun(str(error)) from None
        finally:
            await self._end()

    async def _take_over(self, before: SavedState) -> None:
        """Adopt what a keeper that did not end properly left behind; connect if the server is a given one."""
        if self._options.url is not None:
            try:
                endpoint = self._endpoint()
            except TransportError as error:
                raise CannotRun(error.words) from None
            self._link.wanted |= self._own_holds
            self._link.start(endpoint)
            return
        await asyncio.to_thread(end_all, before.started)
        if before.server is None:
            return
        if not self._server.adopt(before.server):
            # It died as well, though its companions may not have; or it is not the one to use.
            await asyncio.to_thread(end_server, before.server)
            return
        self._state = "running"
        self._link.wanted |= set(before.holds)
        self._link.start(self._endpoint())
        if not await self._link.wait_connected(_ADOPT_SECONDS):
            self._say(f"The server left behind did not answer ({self._link.words}); it is ended.")
            await self._link.stop()
            await self._server.stop()
            self._state = "stopped"
            return
        for place in before.holds:
            await self._link.hold(place, _ADOPT_SECONDS)

    async def _end(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        await self._link.stop()
        if not self._handed_over:
            await self._server.close()
            self._save(gone=True)
        await self._control.close()
        self._lock.release()

    def _save(self, gone: bool = False) -> None:
        """Write the state file if it would change. A disk that takes nothing only costs a later adoption."""
        with self._saving:
            self._write(gone)

    def _write(self, gone: bool) -> None:
        state = SavedState(
            keeper=None if gone else self._me,
            version=__version__,
            control=CONTROL,
            server=None if gone else self._server.running,
            holds=() if gone else tuple(sorted(self._link.wanted | set(self._watch.busy))),
            started=() if gone else self._server.started,
        )
        if self._handed_over or state == self._saved:
            return
        try:
            write_state(self._paths.state_file, state)
            self._saved = state
        except OSError as error:
            self._words = f"The keeper's state cannot be saved ({error.strerror})."

    # -- the server ---------------------------------------------------------------------------------------

    def _endpoint(self) -> Endpoint:
        if self._options.url is not None:
            options = self._options
            return direct(
                self._options.url,
                token=options.token,
                token_file=options.token_file,
                token_command=options.token_command,
                token_env=options.token_env,
                ca_file=options.ca_file,
            )
        running = self._server.running
        assert running is not None
        return embedded(running.url, identity=str(self._paths.state), token_file=running.token_file)

    async def _ensure_server(self) -> SavedServer | None:
        """The running server, started if need be; ``None`` in front of a given one."""
        if self._options.url is not None:
            return None
        async with self._starting:
            try:
                if self._server.alive():
                    if await self._server.revive_companions() is not None:
                        self._save()
                    return self._server.running
                return await self._start_server()
            except ServerTrouble as error:
                self._state, self._words = "failed", str(error)
                raise ControlError(str(error), lasting=error.lasting) from None

    async def _start_server(self) -> SavedServer:
        await self._link.stop()
        await self._server.stop()  # companions of one that died
        self._state, self._words = "starting", ""
        running = await self._server.start()
        # Saved before anything else: a keeper killed from here on leaves a server that can be adopted.
        self._save()
        self._state = "running"
        self._link.start(self._endpoint())
        await self._link.wait_connected(_ADOPT_SECONDS)
        self._control.news({"news": "server", "state": "running", "life": running.identity.life})
        return running

    async def _restart_server(self) -> None:
        if self._options.url is not None:
            raise ControlError("The keeper did not start this server and cannot restart it.", lasting=True)
        async with self._starting:
            await self._link.stop()
            await self._server.stop()
            self._note(self._watch.server_gone(time.time(), "The server was restarted."))
            self._was_busy = ()
        await self._ensure_server()

    def _on_connected(self) -> None:
        if self._told:
            self._say("Connected again.")
            self._told = ""
            self._consider()

    def _on_lost(self, words: str) -> bool:
        """Whether to connect again."""
        if self._options.url is not None:
            if words != self._told:
                self._told = words
                self._say(words)
                self._consider()
            return True
        if self._server.alive():
            return True  # perhaps dying: then the next attempt is refused, and this is asked again
        self._state, self._words = "stopped", "The server ended unexpectedly."
        self._note(self._watch.server_gone(time.time(), self._words))
        self._was_busy = ()
        self._control.news({"news": "server", "state": "stopped", "words": self._words})
        self._consider()
        return False

    def _on_frame(self, frame: Frame) -> None:
        self._note(self._watch.apply(frame, time.time()))
        busy = self._watch.busy
        if busy != self._was_busy:
            self._was_busy = busy
            # Prompts of every live conversation are heard; what is busy is held, window or not.
            for place in set(busy) - self._link.wanted:
                self._link.wanted.add(place)
                self._spawn(self._link.hold(place))
            self._consider()

    def _note(self, ends: list[End]) -> None:
        for end in ends:
            self._log.note(end)
            self._notify(end)
            self._control.news({"news": "end", **end.to_json()})

    def _notify(self, end: End) -> None:
        """Tell the desktop, unless a window shows the conversation: that one rings by itself."""
        place = (end.agent_id, end.conversation_id)
        if any(peer.attached and place in peer.holds for peer in self._control.peers):
            return
        options = self._options
        words = notify.words_for(
            end, notify.Manners(options.notify, options.notify_after, options.notify_details)
        )
        if words:
            notify.show(words, self._environ)

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)  # the loop itself would let it be collected
        task.add_done_callback(self._tasks.discard)

    # -- leaving ------------------------------------------------------------------------------------------

    @property
    def _windows(self) -> int:
        return sum(1 for peer in self._control.peers if peer.attached)

    def _consider(self) -> None:
        """Something changed: is there still a reason to be here?"""
        for place in self._link.wanted - self._needed():
            self._link.wanted.discard(place)
        self._save()
        # What a server that is not there was doing is no reason to wait for it for ever.
        kept_busy = self._was_busy and (self._options.url is None or self._link.connected)
        if self._windows or kept_busy or self._own_holds:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = time.monotonic()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        if self._idle_since is not None and self._options.idle_seconds > 0 and not self._handed_over:
            wait = max(0.0, self._idle_since + self._options.idle_seconds - time.monotonic())
            self._idle_timer = asyncio.get_running_loop().call_later(wait, self._leave.set)

    def _needed(self) -> set[Place]:
        needed = set(self._was_busy) | self._own_holds
        for peer in self._control.peers:
            needed |= peer.holds
        return needed

    def _peer_gone(self, peer: Peer) -> None:
        for place in tuple(peer.holds):
            self._looks_away(peer, place)
        self._consider()

    def _looks_away(self, peer: Peer, place: Place) -> None:
        """A window no longer shows the conversation; noted when it was the last one."""
        if place in peer.holds:
            peer.holds.discard(place)
            if not any(place in other.holds for other in self._control.peers):
                self._log.note(End(time.time(), "left", *place))

    def _ends(self, peer: Peer, ask: Mapping[str, Any]) -> list[End]:
        """What was noted. A conversation that another window shows counts as left only now."""
        named = ask.get("agent_id"), ask.get("conversation_id")
        ends = list(self._log.since(float(ask.get("since") or 0), *named))
        shown = {place for other in self._control.peers if other is not peer for place in other.holds}
        for place in sorted(shown):
            if all(name in (None, part) for name, part in zip(named, place, strict=True)):
                ends.append(End(time.time(), "left", *place))
        return ends

    async def _hand_over(self) -> None:
        """Make room for another keeper without a moment in which nobody is subscribed."""
        self._save()
        self._handed_over = True
        await self._control.stop_listening()
        self._lock.release()
        asyncio.get_running_loop().call_later(_LINGER_SECONDS, self._leave.set)

    # -- questions ----------------------------------------------------------------------------------------

    async def _handle(self, peer: Peer, what: str, ask: Mapping[str, Any]) -> Mapping[str, Any]:
        if what == "attach":
            peer.attached = True
            self._consider()
            return {}
        if what == "endpoint":
            address = self._address(await self._ensure_server())
            return {**address, "note": await asyncio.to_thread(self._server.sharing)}
        if what in ("hold", "release", "forget"):
            return await self._place(peer, what, (str(ask.get("agent_id")), str(ask.get("conversation_id"))))
        if what == "status":
            return self._status()
        if what == "restart_server":
            await self._restart_server()
            return self._address(self._server.running)
        if what == "ends":
            return {"ends": [end.to_json() for end in self._ends(peer, ask)]}
        if what == "stop":
            self._leave.set()
            return {}
        if what == "hand_over":
            await self._hand_over()
            return {}
        raise ControlError(f"This keeper (version {__version__}) does not know {what!r}.")

    async def _place(self, peer: Peer, what: str, place: Place) -> Mapping[str, Any]:
        if what == "hold":
            if self._options.confine_agent not in (None, place[0]):
                raise ControlError(
                    f"This server is confined to agent {self._options.confine_agent}.", lasting=True
                )
            peer.holds.add(place)
            if self._options.url is None and not self._server.alive():
                await self._ensure_server()
            held = await self._link.hold(place)
            self._save()
            return {"held": held, "words": self._link.words}
        if what == "release":
            self._looks_away(peer, place)
            self._consider()
            return {}
        try:
            self._log.forget(*place)
        except OSError as error:
            raise ControlError(f"The notes cannot be erased: {error.strerror}.") from None
        return {}

    def _address(self, running: SavedServer | None) -> Mapping[str, Any]:
        if running is None:
            token = self._options.token_file
            return {
                "url": self._endpoint().url,
                "token_file": token and str(token),
                "owned": False,
                "life": "",
            }
        return {
            "url": running.url,
            "token_file": str(running.token_file),
            "owned": True,
            "life": running.identity.life,
        }

    def _status(self) -> Mapping[str, Any]:
        running = self._server.running
        state = self._state
        if state == "remote":
            state = "running" if self._link.connected else "unreachable"
        leaves = None
        if self._idle_since is not None and self._options.idle_seconds > 0:
            leaves = max(0.0, self._idle_since + self._options.idle_seconds - time.monotonic())
        return {
            "pid": self._me.pid,
            "version": __version__,
            "started": self._started,
            "windows": self._windows,
            "holds": sorted(self._link.held),
            "busy": sorted(self._watch.busy),
            "server": state,
            "server_url": self._options.url or (running.url if running else ""),
            "server_pid": running.identity.pid if running else None,
            "owned": self._options.url is None,
            "words": self._words or self._link.words,
            "leaves_in": leaves,
        }
