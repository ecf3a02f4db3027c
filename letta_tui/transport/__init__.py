"""Ways to a server, and requests and events over whichever it is."""

from letta_tui.transport.backoff import Backoff
from letta_tui.transport.client import Client, Counts, NoAnswer, SaidNo
from letta_tui.transport.connect import open_connection
from letta_tui.transport.connection import Connection, ConnectionLost, Refused, TransportError
from letta_tui.transport.credentials import token_file_advice
from letta_tui.transport.discovery import identify, look_ahead
from letta_tui.transport.endpoint import Endpoint, direct, embedded, hosted, server_key
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
    "direct",
    "embedded",
    "hosted",
    "identify",
    "look_ahead",
    "open_connection",
    "server_key",
    "token_file_advice",
]
