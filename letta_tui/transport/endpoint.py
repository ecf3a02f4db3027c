"""Where a server is: the three kinds of endpoint, their URL rules, and the identity of what is there.

URL rules as the App Server's own clients have them: http means ws, https means wss, an empty path means
``/ws``, and a ``channel`` parameter is dropped. The hosted service is named by the base of its REST API.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from letta_tui.transport.connection import Refused

Kind = Literal["embedded", "direct", "hosted"]

HOSTED_BASE = "https://api.letta.com"
_PORTS = {"ws": 80, "wss": 443, "http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One place to connect to. Build it with ``embedded``, ``direct`` or ``hosted``.

    ``url`` is the WebSocket address, or for a hosted endpoint the base of the REST API. The token comes
    from the first that is set of ``token``, ``token_file``, ``token_command`` and ``token_env``, and is
    read anew at each connect. ``identity`` is what makes an embedded server the same one although its
    port changes at each start.
    """

    kind: Kind
    url: str
    identity: str = ""
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    token_command: tuple[str, ...] = ()
    token_env: str = ""
    ca_file: Path | None = None  # trusted in addition to the system's certificates
    device_id: str = ""  # hosted: the machine; its connection id is looked up before each connect

    @property
    def is_loopback(self) -> bool:
        return is_loopback(urlsplit(self.url).hostname or "")

    @property
    def secure(self) -> bool:
        return urlsplit(self.url).scheme in ("wss", "https")

    @property
    def shown(self) -> str:
        """How it is named to a person."""
        if self.kind == "embedded":
            return "the embedded server"
        if self.kind == "hosted":
            base = urlsplit(self.url).netloc
            return f"{base}, device {self.device_id}" if self.device_id else base
        return self.url

    def on_device(self, device_id: str) -> Endpoint:
        return replace(self, device_id=device_id)


def embedded(
    url: str, *, identity: str, token_file: Path | None = None, token: str | None = None
) -> Endpoint:
    """The server a keeper started. ``identity`` names its data folder or profile."""
    return Endpoint("embedded", websocket_url(url), identity=identity, token_file=token_file, token=token)


def direct(
    url: str,
    *,
    token: str | None = None,
    token_file: Path | None = None,
    token_command: tuple[str, ...] = (),
    token_env: str = "",
    ca_file: Path | None = None,
) -> Endpoint:
    return Endpoint(
        "direct",
        websocket_url(url),
        token=token,
        token_file=token_file,
        token_command=token_command,
        token_env=token_env,
        ca_file=ca_file,
    )


def hosted(
    base: str = HOSTED_BASE,
    *,
    device_id: str = "",
    token: str | None = None,
    token_file: Path | None = None,
    token_command: tuple[str, ...] = (),
    token_env: str = "LETTA_API_KEY",
    ca_file: Path | None = None,
) -> Endpoint:
    return Endpoint(
        "hosted",
        api_base(base),
        token=token,
        token_file=token_file,
        token_command=token_command,
        token_env=token_env,
        ca_file=ca_file,
        device_id=device_id,
    )


def server_key(endpoint: Endpoint) -> str:
    """The identity everything stored is keyed by. No server says who it is, so its address has to.

    An embedded server is its data folder. A hosted conversation belongs to the service and moves between
    devices (a sandbox gets a new device id whenever it is made), so the device is no part of the key; a
    device's memory of past inputs is, therefore, nothing a resend to a hosted endpoint may rely on.
    """
    parts = urlsplit(endpoint.url)
    if endpoint.kind == "embedded":
        return f"embedded:{endpoint.identity}"
    host = (parts.hostname or "").rstrip(".")
    if host == "localhost":
        host = "127.0.0.1"
    if ":" in host:
        host = f"[{host}]"
    port = parts.port or _PORTS[parts.scheme]
    path = parts.path.rstrip("/")
    query = f"?{parts.query}" if parts.query else ""
    return f"{endpoint.kind}:{parts.scheme}://{host}:{port}{path}{query}"


def websocket_url(url: str) -> str:
    """The address to connect to. Raises ``Refused("bad_url")`` with the reason in one sentence."""
    parts = _split(
        url, {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}, "ws://, wss://, http:// or https://"
    )
    path = parts.path if parts.path not in ("", "/") else "/ws"
    query = urlencode([(k, v) for k, v in parse_qsl(parts.query, keep_blank_values=True) if k != "channel"])
    return parts._replace(path=path, query=query, fragment="").geturl()


def http_url(websocket: str, path: str) -> str:
    """The plain HTTP address of ``path`` beside a WebSocket address."""
    parts = urlsplit(websocket)
    base = parts.path.removesuffix("/").removesuffix("/ws")
    scheme = "https" if parts.scheme == "wss" else "http"
    return parts._replace(scheme=scheme, path=base + path, query="", fragment="").geturl()


def api_base(url: str) -> str:
    """The base of a hosted REST API, without a trailing slash; https unless it is this machine."""
    parts = _split(url, {"http": "http", "https": "https"}, "https://")
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise Refused(
            "bad_url", f"{_shortened(url)} is not encrypted: the hosted API is used over https:// only."
        )
    return parts._replace(path=parts.path.rstrip("/"), query="", fragment="").geturl()


def is_loopback(host: str) -> bool:
    if host.rstrip(".") == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _split(url: str, schemes: dict[str, str], wanted: str) -> SplitResult:
    shown = _shortened(url)
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise Refused("bad_url", f"{shown} is not a usable address: its host or port is malformed.") from None
    scheme = schemes.get(parts.scheme.lower())
    if scheme is None:
        raise Refused("bad_url", f"{shown} is not a usable address: it has to begin with {wanted}.")
    if not parts.hostname:
        raise Refused("bad_url", f"{shown} is not a usable address: it names no host.")
    if parts.username is not None or parts.password is not None:
        raise Refused(
            "bad_url",
            "The address holds a user name or password: leave it out and name a token file instead.",
        )
    if any(ord(character) <= 32 or ord(character) == 127 for character in url.strip()):
        raise Refused("bad_url", f"{shown} is not a usable address: it holds spaces or control characters.")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return parts._replace(scheme=scheme, netloc=host if port is None else f"{host}:{port}")


def _shortened(url: str) -> str:
    """For a message: printable, one line, not endless, and without what stands before an ``@``."""
    clean = "".join(character if character.isprintable() else "?" for character in url.strip())
    head, at, tail = clean.rpartition("@")
    if at:
        clean = head.partition("://")[0] + "://…@" + tail if "://" in head else "…@" + tail
    return f'"{clean[:120]}…"' if len(clean) > 120 else f'"{clean}"'
