"""Small HTTP requests with the standard library, off the event loop.

No redirect is followed, since the token would go along. Loopback is never reached through a proxy.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from letta_tui import __version__
from letta_tui.transport.connection import Refused
from letta_tui.transport.endpoint import is_loopback
from letta_tui.transport.failures import connect_failure
from letta_tui.transport.tls import tls_context

_LARGEST = 16 * 1024 * 1024  # bytes of an answer


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    body: Any  # decoded JSON, or None when it is none
    location: str | None = None

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class HttpRequest:
    method: str
    url: str
    token: str | None = None
    body: Mapping[str, Any] | None = None
    timeout: float = 20.0  # seconds
    ca_file: Path | None = None


Fetch = Callable[[HttpRequest], Awaitable[HttpAnswer]]


async def fetch(request: HttpRequest) -> HttpAnswer:
    """Any status is an answer; raises ``Refused`` when there is none."""
    return await asyncio.to_thread(_fetch, request)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _fetch(request: HttpRequest) -> HttpAnswer:
    headers = {"Accept": "application/json", "User-Agent": f"letta-tui/{__version__}"}
    data = None
    if request.token is not None:
        headers["Authorization"] = f"Bearer {request.token}"
    if request.body is not None:
        headers["Content-Type"] = "application/json"
        data = json.dumps(request.body).encode()
    handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
    parts = urlsplit(request.url)
    if parts.scheme == "https":
        handlers.append(urllib.request.HTTPSHandler(context=tls_context(request.ca_file)))
    if is_loopback(parts.hostname or ""):
        handlers.append(urllib.request.ProxyHandler({}))
    outgoing = urllib.request.Request(request.url, data=data, headers=headers, method=request.method)
    had_token = request.token is not None
    try:
        with urllib.request.build_opener(*handlers).open(outgoing, timeout=request.timeout) as answer:
            return HttpAnswer(answer.status, _decoded(answer.read(_LARGEST)))
    except urllib.error.HTTPError as error:
        with error:
            return HttpAnswer(error.code, _decoded(error.read(_LARGEST)), error.headers.get("Location"))
    except urllib.error.URLError as error:
        cause = error.reason if isinstance(error.reason, BaseException) else OSError(str(error.reason))
        raise connect_failure(cause, request.url, had_token=had_token) from None
    except (OSError, ssl.SSLError) as error:
        raise connect_failure(error, request.url, had_token=had_token) from None
    except (http.client.HTTPException, ValueError):
        raise Refused("not_letta", f"What answers at {parts.netloc} speaks no proper HTTP.") from None


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
