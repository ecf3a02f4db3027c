"""Trust for TLS: always verified."""

from __future__ import annotations

import ssl
from pathlib import Path

from letta_tui.transport.connection import Refused


def tls_context(ca_file: Path | None) -> ssl.SSLContext:
    """The system's trust, and this file's in addition. Raises ``Refused`` when it cannot be used."""
    context = ssl.create_default_context()
    if ca_file is not None:
        try:
            context.load_verify_locations(cafile=ca_file.expanduser())
        except ssl.SSLError:
            raise Refused("tls", f"The certificate file {ca_file} holds no certificate (PEM).") from None
        except OSError as error:
            why = error.strerror or "it cannot be read"
            raise Refused("tls", f"The certificate file {ca_file} cannot be used: {why}.") from None
    return context
