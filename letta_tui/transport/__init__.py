"""Ways to a server, and requests and events over whichever it is."""

from letta_tui.transport.backoff import Backoff
from letta_tui.transport.client import Client, Counts, NoAnswer, SaidNo
from letta_tui.transport.connect import open_connection
from letta_tui.transport.connection import Connection, ConnectionLost, Refused, TransportError
from letta_tui.transport.endpoint import Endpoint, direct, embedded, hosted, server_key
from letta_tui.transport.plane import Gap

__all__ = [
    "Backoff",
    "Client",
    "Connection",
    "ConnectionLost",
    "Counts",
    "Endpoint",
    "Gap",
    "NoAnswer",
    "Refused",
    "SaidNo",
    "TransportError",
    "direct",
    "embedded",
    "hosted",
    "open_connection",
    "server_key",
]
