"""A reverse proxy with TLS in front of a server, as a person would put nginx there."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit


def certificate(folder: Path, address: str = "127.0.0.1") -> tuple[ssl.SSLContext, Path]:
    """A server's TLS context with a certificate it signed itself for an IP address; the file to trust."""
    key, cert = folder / f"{address}.key", folder / f"{address}.pem"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-keyout", key, "-out", cert, "-days", "2", "-subj", f"/CN={address}",
            "-addext", f"subjectAltName=IP:{address}",
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context, cert


@asynccontextmanager
async def tls_front(server_url: str, context: ssl.SSLContext, prefix: str = "") -> AsyncIterator[str]:
    """Passes ``https://…{prefix}/x`` on as ``http://server/x``. Yields the ``wss://…{prefix}/ws`` address."""
    target = urlsplit(server_url)
    tasks: set[asyncio.Task[None]] = set()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, OSError):
            writer.close()
            return
        method, path, rest = head.split(b" ", 2)
        if not path.startswith(prefix.encode()):
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            writer.close()
            return
        there_in, there_out = await asyncio.open_connection(target.hostname, target.port)
        there_out.write(b" ".join([method, path[len(prefix) :], rest]))
        for task in (
            asyncio.create_task(copy(reader, there_out)),
            asyncio.create_task(copy(there_in, writer)),
        ):
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    front = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield f"wss://127.0.0.1:{front.sockets[0].getsockname()[1]}{prefix}/ws"
    finally:
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        front.close()
