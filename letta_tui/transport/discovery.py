"""What a server says about itself: over HTTP before connecting, or over the connection."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from letta_tui.protocol import ServerInfo, commands
from letta_tui.protocol.names import PROTOCOL_VERSION
from letta_tui.transport.client import Client, NoAnswer
from letta_tui.transport.connection import Refused
from letta_tui.transport.endpoint import Endpoint, http_url
from letta_tui.transport.failures import status_failure
from letta_tui.transport.http import Fetch, HttpRequest, fetch


async def look_ahead(
    endpoint: Endpoint, token: str | None, *, timeout: float = 10.0, fetcher: Fetch = fetch
) -> ServerInfo | None:
    """``GET /app-server-info`` of a direct server; None when nothing useful comes back.

    Older servers do not have it and proxies may not pass it on, so ``Refused`` here is only a server that
    cannot be reached at all, or one that says in its own form that the token is wrong (no socket need be
    tried then: a server of 0.34.12 ends when a socket it refused is reset). Else the socket says it.
    """
    url = http_url(endpoint.url, "/app-server-info")
    try:
        answer = await fetcher(HttpRequest("GET", url, token, timeout=timeout, ca_file=endpoint.ca_file))
    except Refused as refused:
        if refused.kind in ("not_letta", "silent"):
            return None
        raise
    if (
        answer.status == HTTPStatus.UNAUTHORIZED
        and isinstance(answer.body, Mapping)
        and "error" in answer.body
    ):
        raise status_failure(answer.status, url, had_token=token is not None)
    if not answer.ok or not isinstance(answer.body, Mapping) or "protocol_version" not in answer.body:
        return None
    return ServerInfo.of(answer.body)


async def identify(client: Client, *, timeout: float = 10.0) -> ServerInfo:
    """Ask over the connection. Raises ``Refused("not_letta")`` or ``ConnectionLost``."""
    try:
        frame = await client.request(commands.app_server_info(), timeout)
    except NoAnswer:
        raise Refused(
            "not_letta", "The connection opened, but what is there does not answer as a Letta server does."
        ) from None
    info = frame.server_info
    assert info is not None
    if info.protocol_version != PROTOCOL_VERSION:
        raise Refused(
            "not_letta",
            f"The server speaks version {info.protocol_version} of the protocol;"
            f" this program knows version {PROTOCOL_VERSION}.",
        )
    return info
