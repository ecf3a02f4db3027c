"""What the worker needs from above it, as protocols; the program wires the real ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from letta_tui.seam.state import TurnOutcome
from letta_tui.transport.endpoint import Endpoint


@dataclass(frozen=True, slots=True)
class EndNote:
    """Something a keeper saw. ``when`` is wall clock seconds.

    ``what``: "end" (a turn ended with ``outcome`` after ``seconds``; ``words`` is the error, if any;
    ``tools`` ran, ``denied`` did not; ``inputs``: the messages it answered, by client message id, and what
    else identifies it), "approval" (``tools`` wait for a person), "server" (the server ended
    or was restarted, in ``words``), "left" (the last window that showed the conversation went), "error".
    """

    when: float
    agent_id: str
    conversation_id: str
    outcome: TurnOutcome
    words: str
    what: str = "end"
    tools: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    seconds: float | None = None
    inputs: tuple[str, ...] = ()
    stop_reason: str = ""
    turn_id: str = ""
    run_id: str = ""


class KeeperTrouble(Exception):
    """The keeper could not do it. ``words`` is one clear sentence; ``lasting``: waiting will not help."""

    def __init__(self, words: str, *, lasting: bool = False) -> None:
        super().__init__(words)
        self.words = words
        self.lasting = lasting


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where the server is now. ``life`` changes with every start of it; ``owned``: it can be restarted.

    ``note``: a sentence the person should read once.
    """

    endpoint: Endpoint
    life: str = ""
    owned: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Variables:
    """Environment variables of the server: names alone, never values.

    ``wanted``: named in the config file; ``different``: those of them that the running server has otherwise
    or not at all. ``settable``: whether the server is started here.
    """

    wanted: tuple[str, ...] = ()
    different: tuple[str, ...] = ()
    settable: bool = True


class KeeperPort(Protocol):
    """A keeper as the worker sees it: the one that owns the server's life and holds conversations.

    Every method may raise :class:`KeeperTrouble`, and nothing else.
    """

    async def endpoint(self) -> Whereabouts:
        """Where the server is now; starts keeper and server when neither lives. Asked on every connect."""
        ...

    async def variables(self) -> Variables | None:
        """How the environment of the running server compares with what the config file asks for; ``None``
        when it cannot be looked at."""
        ...

    async def hold(self, agent_id: str, conversation_id: str) -> bool:
        """Ask the keeper to stay subscribed; true once it has confirmed that it is."""
        ...

    async def release(self, agent_id: str, conversation_id: str) -> None:
        """The view no longer looks at this conversation; the keeper lets go when nothing is open in it."""
        ...

    async def call(self, agent_id: str, conversation_id: str, what: str) -> None:
        """Call the person on the desktop, because nobody can see this window (``what`` as in Attention)."""
        ...

    async def restart_server(self) -> None:
        """Stop the server and start a new one (a wedged conversation is usable afterwards)."""
        ...

    async def ends_since(self, agent_id: str, conversation_id: str, since: float) -> Sequence[EndNote]:
        """What happened after ``since`` (wall clock seconds), oldest first; both ids empty: everywhere."""
        ...
