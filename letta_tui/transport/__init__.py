"""Ways to a server, and requests and events over whichever it is.

``endpoint.direct`` is not among these names: a module here is called so too.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from letta_tui.transport.backoff import Backoff
    from letta_tui.transport.client import Client, Counts, NoAnswer, SaidNo
    from letta_tui.transport.connect import open_connection
    from letta_tui.transport.connection import Connection, ConnectionLost, Refused, TransportError
    from letta_tui.transport.credentials import token_file_advice
    from letta_tui.transport.discovery import identify, look_ahead
    from letta_tui.transport.endpoint import Endpoint, embedded, hosted, server_key
    from letta_tui.transport.environments import Environment, Environments, Sandbox
    from letta_tui.transport.gaps import GapSync
    from letta_tui.transport.plane import Gap

__all__ = [
    "Backoff",
    "Client",
    "Connection",
    "ConnectionLost",
    "Counts",
    "Endpoint",
    "Environment",
    "Environments",
    "Gap",
    "GapSync",
    "NoAnswer",
    "Refused",
    "SaidNo",
    "Sandbox",
    "TransportError",
    "embedded",
    "hosted",
    "identify",
    "look_ahead",
    "open_connection",
    "server_key",
    "token_file_advice",
]

# A window is drawn before anything here is needed, so each name is loaded when it is first asked for.
_HOME = {
    "Backoff": "backoff",
    "Client": "client",
    "Counts": "client",
    "NoAnswer": "client",
    "SaidNo": "client",
    "open_connection": "connect",
    "Connection": "connection",
    "ConnectionLost": "connection",
    "Refused": "connection",
    "TransportError": "connection",
    "token_file_advice": "credentials",
    "identify": "discovery",
    "look_ahead": "discovery",
    "Endpoint": "endpoint",
    "embedded": "endpoint",
    "hosted": "endpoint",
    "server_key": "endpoint",
    "Environment": "environments",
    "Environments": "environments",
    "Sandbox": "environments",
    "GapSync": "gaps",
    "Gap": "plane",
}


def __getattr__(name: str) -> object:
    try:
        home = _HOME[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    value: object = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
