"""What a connection is, whatever it is made of, and the ways it fails.

A person reads every sentence in here, so each names what happened and, where there is one, the way out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from letta_tui.protocol import Frame

RefusedKind = Literal[
    "bad_url",
    "refused_port",
    "unknown_host",
    "unreachable",
    "timeout",
    "tls",
    "token",  # 401, or no token could be read
    "forbidden",  # 403
    "not_found",  # 404
    "channel",  # 426: this server wants the other number of sockets
    "busy",  # 429, 502, 503, 504: a proxy or server that may be back soon
    "silent",  # hung up without an answer: another protocol, or a tunnel with nothing at its end now
    "not_letta",
    "offline",  # hosted: the device has no connection now
    "sandbox_expired",  # hosted: before anything was sent
    "hosted",  # hosted: the service said no in its own words
]

_TRY_AGAIN: frozenset[str] = frozenset(
    {"refused_port", "unknown_host", "unreachable", "timeout", "silent", "busy", "offline"}
)


class TransportError(Exception):
    """Anything that keeps a frame from getting through. ``words`` is one sentence for a person."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


class Refused(TransportError):
    """No connection was made. Nothing was sent."""

    def __init__(self, kind: RefusedKind, words: str) -> None:
        super().__init__(words)
        self.kind: RefusedKind = kind

    @property
    def worth_retrying(self) -> bool:
        """Whether waiting may help without the person changing anything."""
        return self.kind in _TRY_AGAIN


class NoToken(Refused):
    """There was no token to present: nobody was asked anything."""

    def __init__(self, words: str) -> None:
        super().__init__("token", words)


class ConnectionLost(TransportError):
    """A connection that was there is gone. What was written last may or may not have arrived."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Connection(Protocol):
    """One conversation with one server, over one socket or two; not reusable after it is lost."""

    @property
    def connection_id(self) -> str:
        """Names this connection in evidence; made here, never on the wire."""
        ...

    async def send(self, command: Mapping[str, Any]) -> None:
        """Write one command. Raises ``ConnectionLost``; it may then have arrived or not."""
        ...

    async def receive(self) -> Frame:
        """The next frame, for one reader. Raises ``ConnectionLost`` when there will be none."""
        ...

    async def probe(self, timeout: float) -> bool:
        """Whether the other side answers within ``timeout`` seconds. Never raises, never closes."""
        ...

    async def close(self) -> None:
        """Leave. Returns within a few seconds whatever the other side does; may be called again."""
        ...
