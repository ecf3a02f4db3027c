"""From an endpoint to a connection, by the strategy its kind calls for."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from letta_tui.protocol import Runtime
from letta_tui.transport.connection import Connection
from letta_tui.transport.credentials import read_token
from letta_tui.transport.direct import open_socket
from letta_tui.transport.endpoint import Endpoint


async def open_connection(
    endpoint: Endpoint,
    scope: Runtime | None = None,
    *,
    timeout: float = 10.0,
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
) -> Connection:
    """Connect within ``timeout`` seconds, or raise ``Refused`` with one clear sentence.

    ``scope`` names agent and conversation, which a hosted endpoint has in its address; a direct server
    does not need it.
    """
    token = await read_token(endpoint)
    return await open_socket(endpoint.url, token, timeout=timeout, ca_file=endpoint.ca_file, new_id=new_id)
