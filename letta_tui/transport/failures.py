"""From a library's exception to one clear sentence."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from http import HTTPStatus
from urllib.parse import urlsplit

from letta_tui.transport.connection import Refused, RefusedKind

_UNREACHABLE = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN}


def connect_failure(error: BaseException, url: str, *, had_token: bool) -> Refused:
    """Why no connection to ``url`` was made."""
    # Loaded by whoever connects; the words for the hosted service need none of it.
    from websockets.exceptions import (
        InvalidHandshake,
        InvalidMessage,
        InvalidProxy,
        InvalidStatus,
        InvalidURI,
        ProxyError,
    )

    parts = urlsplit(url)
    scheme_port = 443 if parts.scheme in ("wss", "https") else 80
    where = f"{parts.hostname}:{parts.port or scheme_port}"
    if isinstance(error, Refused):
        return error
    if isinstance(error, InvalidStatus):
        location = error.response.headers.get("Location")
        return status_failure(error.response.status_code, url, had_token=had_token, location=location)
    if isinstance(error, ImportError):
        return Refused(
            "unreachable", f"A SOCKS proxy is set for {where}, which needs the package python-socks."
        )
    if isinstance(error, InvalidProxy | ProxyError):
        return Refused("unreachable", f"The proxy set for {where} did not let the connection through.")
    if isinstance(error, InvalidURI):
        return Refused("bad_url", f"{where} is not a usable address.")
    if isinstance(error, ssl.SSLError):
        return Refused("tls", tls_words(error, where))
    silent = isinstance(error, ConnectionResetError) and error.errno is None  # http.client found no answer
    if silent or (isinstance(error, InvalidMessage) and isinstance(error.__cause__, EOFError)):
        return Refused("silent", _hung_up(where, parts.scheme))
    if isinstance(error, InvalidMessage | InvalidHandshake):
        return Refused("not_letta", f"What answers at {where} is not a Letta server: it speaks no WebSocket.")
    if isinstance(error, TimeoutError | asyncio.TimeoutError):
        return Refused("timeout", f"{where} did not answer in time.")
    if isinstance(error, socket.gaierror):
        return Refused("unknown_host", f'The host "{parts.hostname}" is not known: check its name.')
    if isinstance(error, OSError):
        return Refused(*_system_words(error, where))
    return Refused("unreachable", f"{where} could not be reached ({type(error).__name__}).")


def status_failure(status: int, url: str, *, had_token: bool, location: str | None = None) -> Refused:
    """What an HTTP status instead of a WebSocket means."""
    parts = urlsplit(url)
    host = parts.netloc
    if status == HTTPStatus.UNAUTHORIZED:
        if had_token:
            return Refused("token", f"{host} refused the token: it is wrong or has expired.")
        return Refused("token", f"{host} asks for a token, and none was given.")
    if status == HTTPStatus.FORBIDDEN:
        return Refused("forbidden", f"{host} forbids this connection: the token may not be used here.")
    if status == HTTPStatus.NOT_FOUND:
        return Refused("not_found", f"{host} has no Letta server at {parts.path}: the path may be wrong.")
    if status == HTTPStatus.UPGRADE_REQUIRED:
        return Refused("channel", f"{host} wants to be reached in another way: one socket, no channel.")
    if 300 <= status < 400:
        to = f" to {urlsplit(location).netloc or 'another path'}" if location else ""
        return Refused("not_letta", f"{host} redirects{to}: use that address, tokens are not sent along.")
    if status in (HTTPStatus.TOO_MANY_REQUESTS, *range(502, 505)):
        return Refused("busy", f"{host} is there but cannot serve now (HTTP {status}).")
    if status == HTTPStatus.OK:
        return Refused("not_letta", f"What answers at {host} is not a Letta server: it sent a web page.")
    return Refused("not_letta", f"{host} did not open a connection (HTTP {status}): is it a Letta server?")


def tls_words(error: ssl.SSLError, where: str) -> str:
    """Why TLS failed; a certificate's own reason where there is one."""
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = str(error.verify_message or "").rstrip(".").strip()
        reason = reason[:1].lower() + reason[1:] if reason else "it could not be verified"
        return f"The certificate of {where} is not trusted: {reason}."
    name = (error.reason or "").replace("_", " ").lower()
    if name in ("wrong version number", "record layer failure", "http request", "unknown protocol"):
        return f"{where} does not speak TLS: the address may have to begin with ws:// instead."
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return (
            f"{where} hung up during the TLS handshake: a server that does not speak TLS is reached by ws://."
        )
    return f"TLS with {where} failed: {name or 'the handshake broke off'}."


def _hung_up(where: str, scheme: str) -> str:
    if scheme in ("ws", "http"):
        return f"{where} hung up without an answer: if it wants TLS, the address begins with wss://."
    return f"{where} hung up without an answer: is it a Letta server?"


def _system_words(error: OSError, where: str) -> tuple[RefusedKind, str]:
    numbers = {error.errno}
    # Several addresses tried: the errors are joined in one text without a number.
    text = str(error)
    if errno.ECONNREFUSED in numbers or "Errno 111" in text or "refused" in text.lower():
        return "refused_port", f"Nothing listens at {where}: the server is not running, or the port is wrong."
    if numbers & _UNREACHABLE:
        return "unreachable", f"There is no way to {where} on the network now."
    if errno.ETIMEDOUT in numbers:
        return "timeout", f"{where} did not answer in time."
    if errno.ECONNRESET in numbers or errno.EPIPE in numbers:
        return "unreachable", f"{where} dropped the connection before it was open."
    return "unreachable", f"{where} could not be reached: {error.strerror or 'network error'}."


def lost_words(error: BaseException) -> str:
    """Why a connection that was there is gone."""
    from websockets.exceptions import ConnectionClosed

    if not isinstance(error, ConnectionClosed):
        return "The connection broke."
    received, sent = error.rcvd, error.sent
    code = received.code if received is not None else None
    if code is None and sent is not None and sent.code == 1009:
        return "The server sent a message too large to take."
    if code is None:
        return "The connection broke off without a goodbye."
    said = f" It said: {received.reason[:200]}" if received is not None and received.reason else ""
    if code in (1000, 1001):
        return f"The server closed the connection.{said}"
    if code == 1012:
        return f"The server is restarting.{said}"
    if code == 1008:
        return f"The server ended the connection on grounds of its policy.{said}"
    if code == 1009:
        return "The server closed the connection: what was sent was too large for it."
    return f"The server closed the connection (code {code}).{said}"
