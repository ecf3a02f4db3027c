"""What windows and commands ask a keeper, answered; and which conversations the windows show."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Protocol

from letta_tui import __version__
from letta_tui.keeper.control import CONTROL, ControlError, ControlServer, Peer
from letta_tui.keeper.custody import Custody
from letta_tui.keeper.ends import End, EndLog
from letta_tui.keeper.identity import ProcessIdentity
from letta_tui.keeper.options import KeeperOptions
from letta_tui.keeper.watch import Place, Watch


class Life(Protocol):
    """The keeper, as far as a question can change or show its life."""

    @property
    def leaves_in(self) -> float | None: ...
    @property
    def words(self) -> str: ...
    def leave(self) -> None: ...
    async def hand_over(self) -> None: ...
    def consider(self) -> None: ...
    def save(self) -> None: ...
    def call(self, place: Place, what: str) -> None: ...


class Desk:
    """``control`` is the channel; its questions come to this desk."""

    def __init__(
        self,
        me: ProcessIdentity,
        options: KeeperOptions,
        custody: Custody,
        watch: Watch,
        log: EndLog,
        life: Life,
    ) -> None:
        self._me = me
        self._options = options
        self._custody = custody
        self._watch = watch
        self._log = log
        self._life = life
        self._started = time.time()
        self._confined_to = options.confine_agent or ""
        hello = {
            "keeper": "letta-tui",
            "control": CONTROL,
            "version": __version__,
            "pid": me.pid,
            "started": self._started,
            "confine_agent": self._confined_to,
        }
        self.control = ControlServer(self._handle, self._gone, hello)

    # -- windows ------------------------------------------------------------------------------------------

    @property
    def windows(self) -> int:
        return sum(1 for peer in self.control.peers if peer.attached)

    @property
    def places(self) -> set[Place]:
        """Every conversation that somebody shows."""
        return {place for peer in self.control.peers for place in peer.holds}

    def shows(self, place: Place) -> bool:
        """Whether a window shows it, and so can ring by itself."""
        return any(peer.attached and place in peer.holds for peer in self.control.peers)

    def _gone(self, peer: Peer) -> None:
        for place in tuple(peer.holds):
            self._looks_away(peer, place)
        self._life.consider()

    def _looks_away(self, peer: Peer, place: Place) -> None:
        """A window no longer shows the conversation; noted when it was the last one."""
        if place in peer.holds:
            peer.holds.discard(place)
            if place not in self.places:
                self._log.note(End(time.time(), "left", *place))

    # -- questions ----------------------------------------------------------------------------------------

    async def _handle(self, peer: Peer, what: str, ask: Mapping[str, Any]) -> Mapping[str, Any]:
        match what:
            case "attach":
                peer.attached = True
                self._life.consider()
            case "endpoint":
                await self._custody.ensure()
                note = await asyncio.to_thread(self._custody.server.sharing)
                return {**self._custody.address(), "note": note}
            case "hold" | "release" | "forget":
                place = str(ask.get("agent_id")), str(ask.get("conversation_id"))
                return await self._place(peer, what, place)
            case "call":
                place = str(ask.get("agent_id")), str(ask.get("conversation_id"))
                self._life.call(place, str(ask.get("about")))
            case "status":
                return self._status()
            case "restart_server":
                await self._custody.restart()
                return self._custody.address()
            case "ends":
                return {"ends": [end.to_json() for end in self._ends(peer, ask)]}
            case "stop":
                self._life.leave()
            case "hand_over":
                await self._life.hand_over()
            case _:
                raise ControlError(f"This keeper (version {__version__}) does not know {what!r}.")
        return {}

    async def _place(self, peer: Peer, what: str, place: Place) -> Mapping[str, Any]:
        if what == "hold":
            return await self._hold(peer, place)
        if what == "release":
            self._looks_away(peer, place)
            self._life.consider()
            return {}
        try:
            self._log.forget(*place)
        except OSError as error:
            raise ControlError(f"The notes cannot be erased: {error.strerror}.") from None
        return {}

    async def _hold(self, peer: Peer, place: Place) -> Mapping[str, Any]:
        if self._confined_to not in ("", place[0]):
            raise ControlError(f"This server is confined to agent {self._confined_to}.", lasting=True)
        peer.holds.add(place)
        custody = self._custody
        if not custody.given and not custody.server.alive():
            await custody.ensure()
        held = await custody.link.hold(place)
        self._life.save()
        return {"held": held, "words": custody.link.words}

    def _ends(self, peer: Peer, ask: Mapping[str, Any]) -> list[End]:
        """What was noted. A conversation that another window shows counts as left only now."""
        named = ask.get("agent_id"), ask.get("conversation_id")
        ends = list(self._log.since(float(ask.get("since") or 0), *named))
        shown = {place for other in self.control.peers if other is not peer for place in other.holds}
        for place in sorted(shown):
            if all(name in (None, part) for name, part in zip(named, place, strict=True)):
                ends.append(End(time.time(), "left", *place))
        return ends

    def _status(self) -> Mapping[str, Any]:
        server = self._custody.status()
        return {
            "pid": self._me.pid,
            "version": __version__,
            "started": self._started,
            "windows": self.windows,
            "holds": sorted(self._custody.link.held),
            "busy": sorted(self._watch.busy),
            "leaves_in": self._life.leaves_in,
            **server,
            "words": " ".join(filter(None, (self._life.words, server["words"]))),
        }
