"""From an endpoint to a connection, by the strategy its kind and its own word call for."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from letta_tui.protocol import Runtime, ServerInfo
from letta_tui.transport.connection import Connection, Refused
from letta_tui.transport.credentials import read_token
from letta_tui.transport.direct import open_socket
from letta_tui.transport.discovery import look_ahead
from letta_tui.transport.endpoint import Endpoint
from letta_tui.transport.environments import Environments
from letta_tui.transport.http import Fetch, fetch
from letta_tui.transport.relay import open_pair, relay_url


def wants_pair(endpoint: Endpoint, info: ServerInfo | None) -> bool:
    """Two sockets for the hosted relay and for a server that splits its channels; else one."""
    return endpoint.kind == "hosted" or (info is not None and info.split_channels)


async def open_connection(
    endpoint: Endpoint,
    scope: Runtime | None = None,
    *,
    timeout: float = 10.0,
    fetcher: Fetch = fetch,
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
) -> Connection:
    """Connect, or raise ``Refused`` with one clear sentence. ``timeout`` (seconds) is for the sockets.

    ``scope`` names agent and conversation, which a hosted endpoint has in its address; a direct server
    does not need it. A machine's connection id is looked up here each time, since it changes.
    """
    token = await read_token(endpoint)
    ca_file = endpoint.ca_file
    if endpoint.kind == "hosted":
        if scope is None:
            raise Refused(
                "hosted", "A hosted machine is connected to for one conversation: name an agent first."
            )
        if not endpoint.device_id:
            raise Refused("hosted", "No machine is chosen: pick one of the account's environments first.")
        connection = await Environments(endpoint, fetcher=fetcher).connection_id(endpoint.device_id)
        url = relay_url(endpoint.url, connection, scope)
        return await open_pair(url, token, timeout=timeout, ca_file=ca_file, new_id=new_id)
    # An embedded server is one this program starts: known to have one socket.
    info = (
        None
        if endpoint.kind == "embedded"
        else await look_ahead(endpoint, token, timeout=timeout, fetcher=fetcher)
    )
    pair = wants_pair(endpoint, info)
    try:
        return await _open(endpoint, token, pair=pair, timeout=timeout, new_id=new_id)
    except Refused as refused:
        if refused.kind != "channel":
            raise
    # HTTP 426: it wants the other number of sockets, whatever it advertised or could not be asked.
    return await _open(endpoint, token, pair=not pair, timeout=timeout, new_id=new_id)


async def _open(
    endpoint: Endpoint, token: str | None, *, pair: bool, timeout: float, new_id: Callable[[], str]
) -> Connection:
    way = open_pair if pair else open_socket
    return await way(endpoint.url, token, timeout=timeout, ca_file=endpoint.ca_file, new_id=new_id)
