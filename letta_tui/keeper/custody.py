"""The one server that a keeper answers for, given or its own, and the link that stays subscribed to it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from letta_tui.keeper.control import ControlError
from letta_tui.keeper.errors import CannotRun
from letta_tui.keeper.files import SavedServer, SavedState
from letta_tui.keeper.link import Link
from letta_tui.keeper.options import KeeperOptions, KeeperPaths
from letta_tui.keeper.server import EmbeddedServer, ServerTrouble, end_all, end_server
from letta_tui.keeper.watch import Place, Watch
from letta_tui.protocol import Frame
from letta_tui.transport.connection import TransportError
from letta_tui.transport.endpoint import Endpoint, direct, embedded

_ADOPT_SECONDS = 5.0
_PROVE_SECONDS = 30.0  # for a server left behind that is slow to answer: as long as it lives, its turns do


class Ear(Protocol):
    """Who hears of the server."""

    def save(self) -> None:
        """What is worth adopting has changed. Called in any thread."""

    def frame(self, frame: Frame) -> None:
        """The server said this."""

    def server_gone(self, words: str) -> None:
        """Everything that was open on the server is over."""

    def server_news(self, state: str, **more: str) -> None:
        """For the windows."""

    def say(self, words: str) -> None:
        """For whoever reads the keeper's output."""

    def consider(self) -> None:
        """There may be no reason to stay any more, or again one."""


class Custody:
    """A given server (``options.url``) is only watched; one of its own is started when it is asked for."""

    def __init__(
        self,
        paths: KeeperPaths,
        options: KeeperOptions,
        environ: Mapping[str, str],
        watch: Watch,
        ear: Ear,
    ) -> None:
        self._paths = paths
        self._options = options
        self._ear = ear
        self.given = options.url is not None
        self.link = Link(watch, ear.frame, self._on_lost, self._on_connected)
        self.server = EmbeddedServer(paths, options, environ, ear.save)
        self._starting = asyncio.Lock()
        self._taking_back: asyncio.Task[None] | None = None  # what a keeper before this one held
        self._retired = False  # the server is the next keeper's
        self._state = "remote" if self.given else "stopped"
        self._words = ""
        self._told = ""  # what was last said about a lost connection

    async def take_over(self, before: SavedState) -> None:
        """Adopt what a keeper that did not end properly left behind, and hold what it held; connect if the
        server is a given one.

        ``CannotRun`` when the given one's address makes no sense.
        """
        if self.given:
            try:
                endpoint = self.endpoint()
            except TransportError as error:
                raise CannotRun(error.words) from None
            self.link.wanted |= set(before.holds)
            self.link.start(endpoint)
            self._taking_back = asyncio.create_task(self._take_back(before.holds))
            return
        await asyncio.to_thread(end_all, before.started)
        if before.server is None:
            return
        if not self.server.adopt(before.server):
            # It died as well, though its companions may not have; or it is not the one to use.
            await asyncio.to_thread(end_server, before.server)
            return
        self._state = "running"
        self.link.wanted |= set(before.holds)
        self.link.start(self.endpoint())
        self._taking_back = asyncio.create_task(self._take_back(before.holds))
        # On a machine under load the server may be slow to answer: that goes on beside, and costs no turn.
        await asyncio.wait({self._taking_back}, timeout=_ADOPT_SECONDS)

    async def _take_back(self, holds: Iterable[Place]) -> None:
        await self.link.wait_connected(None)
        for place in holds:
            await self.link.hold(place)
        self._taking_back = None
        self._ear.consider()

    @property
    def taking_back(self) -> bool:
        """Whether not everything that was held before is held again: then nothing is known to be idle."""
        return self._taking_back is not None

    def retire(self, retired: bool) -> None:
        """Another keeper is taking over: as long as that is so, nothing is started or ended here."""
        self._retired = retired

    async def close(self, *, leave_running: bool = False) -> None:
        """Hang up; end the server too unless it is somebody else's by now."""
        await self._hang_up()
        if not leave_running:
            await self.server.close()

    # -- the server ---------------------------------------------------------------------------------------

    async def ensure(self) -> SavedServer | None:
        """The running server, started if need be; ``None`` in front of a given one. ``ControlError``."""
        if self.given:
            return None
        async with self._starting:
            try:
                if self._retired:
                    return self._adopted_by_another()
                if self.server.alive() and await self._answers():
                    if await self.server.revive_companions() is not None:
                        self._ear.save()
                    return self.server.running
                return await self._start()
            except ServerTrouble as error:
                self._state, self._words = "failed", str(error)
                raise ControlError(str(error), lasting=error.lasting) from None
            finally:
                if self._state == "starting":  # who asked has gone meanwhile
                    self._state = "stopped"

    async def _answers(self) -> bool:
        """Whether the server is to be relied on; one that was adopted has to be heard of once."""
        if self.taking_back and not await self.link.wait_connected(_PROVE_SECONDS) and self.server.alive():
            self._ear.say(f"The server left behind did not answer ({self.link.words}); it is ended.")
            self._ear.server_gone("The server did not answer any more and was ended.")
            return False
        return self.server.alive()

    def _adopted_by_another(self) -> SavedServer | None:
        """The server is given on as long as it is the one that was handed over. ``ControlError`` after it."""
        if not self.server.alive():
            raise ControlError("Another keeper has taken the place of this one.")
        return self.server.running

    async def _hang_up(self) -> None:
        task, self._taking_back = self._taking_back, None
        if task is not None:
            task.cancel()
        await self.link.stop()

    async def _start(self) -> SavedServer:
        await self._hang_up()
        await self.server.stop()  # companions of one that died
        self._state, self._words = "starting", ""
        running = await self.server.start()
        # Saved before anything else: a keeper killed from here on leaves a server that can be adopted.
        self._ear.save()
        self._state = "running"
        self.link.start(self.endpoint())
        await self.link.wait_connected(_ADOPT_SECONDS)
        self._ear.server_news("running", life=running.identity.life)
        return running

    async def restart(self) -> SavedServer | None:
        if self.given:
            raise ControlError("The keeper did not start this server and cannot restart it.", lasting=True)
        async with self._starting:
            if not self._retired:
                await self._hang_up()
                await self.server.stop()
                self._ear.server_gone("The server was restarted.")
        return await self.ensure()

    # -- the connection -----------------------------------------------------------------------------------

    @property
    def reachable(self) -> bool:
        """Whether what the server was last heard doing can still be believed."""
        return not self.given or self.link.connected

    def _on_connected(self) -> None:
        if self._told:
            self._ear.say("Connected again.")
            self._told = ""
            self._ear.consider()

    def _on_lost(self, words: str) -> bool:
        """Whether to connect again."""
        if self.given:
            if words != self._told:
                self._told = words
                self._ear.say(words)
                self._ear.consider()
            return True
        if self.server.alive():
            return True  # perhaps dying: then the next attempt is refused, and this is asked again
        self._state = "stopped"
        self._words = " ".join(filter(None, ("The server ended unexpectedly.", self.server.full())))
        self._ear.server_gone(self._words)
        self._ear.server_news("stopped", words=self._words)
        self._ear.consider()
        return False

    # -- what is told of it -------------------------------------------------------------------------------

    def endpoint(self) -> Endpoint:
        """How to connect; a server of its own must be running."""
        options = self._options
        if options.url is not None:
            return direct(
                options.url,
                token=options.token,
                token_file=options.token_file,
                token_command=options.token_command,
                token_env=options.token_env,
                ca_file=options.ca_file,
            )
        running = self.server.running
        assert running is not None
        return embedded(running.url, identity=str(self._paths.state), token_file=running.token_file)

    def address(self) -> Mapping[str, Any]:
        running = self.server.running
        if running is None:
            url, token, life = self.endpoint().url, self._options.token_file, ""
        else:
            url, token, life = running.url, running.token_file, running.identity.life
        return {"url": url, "token_file": token and str(token), "owned": not self.given, "life": life}

    def status(self) -> Mapping[str, Any]:
        running = self.server.running
        state = self._state
        if state == "remote":
            state = "running" if self.link.connected else "unreachable"
        return {
            "server": state,
            "server_url": self._options.url or (running.url if running else ""),
            "server_pid": running.identity.pid if running else None,
            "owned": not self.given,
            "words": self._words or self.link.words,
        }
