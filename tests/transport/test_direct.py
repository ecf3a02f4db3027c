"""One socket: how connecting fails, and how a connection ends."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from pathlib import Path

import pytest

from letta_tui.protocol import commands
from letta_tui.transport import Client, ConnectionLost, Refused, open_connection
from letta_tui.transport.direct import DirectConnection, open_socket
from letta_tui.transport.endpoint import direct
from tests.transport.fake_server import FakeServer
from tests.transport.tls_front import certificate


async def refusal(url: str, token: str | None = "t", timeout: float = 5.0, ca: Path | None = None) -> Refused:
    with pytest.raises(Refused) as caught:
        await open_connection(direct(url, token=token, ca_file=ca), timeout=timeout)
    assert caught.value.words.count("\n") == 0
    assert caught.value.words.endswith((".", "?"))
    return caught.value


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        (401, "token", "refused the token"),
        (403, "forbidden", "forbids"),
        (404, "not_found", "no Letta server at /ws"),
        (426, "channel", "another way"),
        (429, "busy", "cannot serve now"),
        (503, "busy", "cannot serve now"),
        (500, "not_letta", "HTTP 500"),
        (200, "not_letta", "web page"),
    ],
)
async def test_each_refusal_has_its_sentence(status: int, kind: str, said: str) -> None:
    async with FakeServer(status=status) as server:
        refused = await refusal(server.url)
        assert (refused.kind, said in refused.words) == (kind, True), refused.words


async def test_a_missing_token_is_another_thing_than_a_wrong_one() -> None:
    async with FakeServer(status=401) as server:
        assert "none was given" in (await refusal(server.url, token=None)).words


async def test_the_token_is_not_carried_along_a_redirect() -> None:
    async with FakeServer() as other, FakeServer(status=302, headers={"Location": other.url}) as server:
        refused = await refusal(server.url)
        assert "redirects" in refused.words
        assert not other.requests


async def test_ports_hosts_and_strangers() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        refused = await refusal(f"ws://127.0.0.1:{reserved.getsockname()[1]}")
    assert (refused.kind, refused.worth_retrying) == ("refused_port", True)
    assert (await refusal("ws://no-such-host.invalid")).kind == "unknown_host"


async def test_something_else_listens_there() -> None:
    async def chat(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example.com ready\r\n")
        await writer.drain()
        await reader.read(100)
        writer.close()

    stranger = await asyncio.start_server(chat, "127.0.0.1", 0)
    try:
        port = stranger.sockets[0].getsockname()[1]
        assert (await refusal(f"ws://127.0.0.1:{port}")).kind == "not_letta"
    finally:
        stranger.close()


async def test_silence_is_given_a_limit() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        refused = await refusal(f"ws://127.0.0.1:{silent.getsockname()[1]}", timeout=0.3)
        assert refused.kind == "timeout"


async def test_tls_is_verified_and_its_failure_explained(tmp_path: Path) -> None:
    context, cert = certificate(tmp_path, "127.0.0.1")
    async with FakeServer(tls=context) as server:
        refused = await refusal(server.url)
        assert refused.kind == "tls"
        assert "self-signed" in refused.words or "self signed" in refused.words
        connection = await open_connection(direct(server.url, token="t", ca_file=cert))
        await connection.close()
        assert "No such file" in (await refusal(server.url, ca=tmp_path / "none")).words
        assert "holds no certificate" in (await refusal(server.url, ca=Path(__file__))).words
        unencrypted = server.url.replace("wss:", "ws:")
        assert "begins with wss://" in (await refusal(unencrypted)).words
        with pytest.raises(Refused, match="begins with wss://"):
            await open_socket(unencrypted, "t")
    other, cert = certificate(tmp_path, "10.0.0.1")
    async with FakeServer(tls=other) as server:
        refused = await refusal(server.url, ca=cert)
        assert "certificate" in refused.words
        assert "match" in refused.words or "valid for" in refused.words
    async with FakeServer() as plain:
        assert "not speak TLS" in (await refusal(plain.url.replace("ws:", "wss:"))).words


async def test_what_is_sent_when_connecting() -> None:
    async with FakeServer() as server:
        connection = await open_connection(direct(server.url, token="abc"))
        request = server.requests[-1]
        assert request.headers["Authorization"] == "Bearer abc"
        assert "Origin" not in request.headers
        assert "Sec-WebSocket-Extensions" not in request.headers  # nothing to compress on loopback
        await connection.close()


async def test_loopback_is_never_reached_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with FakeServer() as server:
        connection = await open_connection(direct(server.url))
        await connection.close()


async def test_a_socks_proxy_without_its_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ws_proxy", "socks5://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "python_socks", None)
    monkeypatch.setitem(sys.modules, "python_socks.async_.asyncio", None)
    with pytest.raises(Refused, match="SOCKS proxy"):
        await open_socket("ws://10.255.255.1/ws", None, timeout=2)


async def connected(server: FakeServer, keepalive: float = 20.0) -> DirectConnection:
    connection = await open_socket(server.url, None, keepalive=keepalive)
    await server.joined.wait()
    return connection


async def test_messages_of_several_megabytes_arrive_whole() -> None:
    async with FakeServer() as server:
        connection = await connected(server)
        text = "é" * 3_000_000
        await server.say({"type": "big", "text": text})
        frame = await connection.receive()
        assert frame.raw["text"] == text
        assert frame.arrival == 1
        await connection.close()


@pytest.mark.parametrize(("code", "said"), [(1001, "closed"), (1012, "restarting"), (4000, "code 4000")])
async def test_the_servers_goodbye_is_told(code: int, said: str) -> None:
    async with FakeServer() as server:
        connection = await connected(server)
        await server.sockets[0].close(code, "for a reason")
        with pytest.raises(ConnectionLost, match=said) as caught:
            await connection.receive()
        assert "for a reason" in caught.value.reason
        with pytest.raises(ConnectionLost):
            await connection.send({"type": "x"})
        assert not await connection.probe(1)
        await connection.close()


async def test_a_cut_without_goodbye() -> None:
    async with FakeServer() as server:
        connection = await connected(server)
        server.sockets[0].transport.abort()
        with pytest.raises(ConnectionLost, match="without a goodbye"):
            await connection.receive()
        await connection.close()


async def test_a_peer_that_hangs_is_probed_found_dead_and_left_in_time() -> None:
    async with FakeServer() as server:
        connection = await connected(server)
        assert await connection.probe(2)
        server.sockets[0].transport.pause_reading()  # it no longer reads, so it no longer answers
        assert not await connection.probe(0.2)
        async with asyncio.timeout(30):  # it never says goodbye
            await connection.close()
            await connection.close()


async def test_a_dead_peer_is_noticed_without_anybody_asking() -> None:
    async with FakeServer() as server:
        connection = await connected(server, keepalive=0.2)
        server.sockets[0].transport.pause_reading()
        with pytest.raises(ConnectionLost, match="no longer answers"):
            await asyncio.wait_for(connection.receive(), 5)
        await connection.close()


def freeze(seconds: float) -> None:
    """As a stopped process does: nothing of the event loop runs meanwhile."""
    time.sleep(seconds)


async def test_a_process_that_was_frozen_does_not_mistake_its_own_sleep_for_the_peers() -> None:
    async with FakeServer() as server:
        connection = await connected(server, keepalive=0.2)
        for _ in range(3):
            await asyncio.sleep(0.25)  # let a ping go out
            freeze(0.6)  # longer than the pong is waited for
        await server.say({"type": "still-here"})
        assert (await asyncio.wait_for(connection.receive(), 5)).type == "still-here"
        await connection.close()


async def test_a_peer_that_talks_but_sends_no_pong_is_alive() -> None:
    """A pong cannot overtake a large message that is still under way."""
    async with FakeServer() as server:
        connection = await connected(server, keepalive=0.15)
        server.sockets[0].transport.pause_reading()
        for number in range(12):
            await asyncio.sleep(0.1)
            await server.say({"type": "talk", "n": number})
        frames = [await asyncio.wait_for(connection.receive(), 5) for _ in range(12)]
        assert [frame.raw["n"] for frame in frames] == list(range(12))
        await connection.close()


async def test_a_client_over_it_answers_and_counts() -> None:
    async with FakeServer() as server:
        client = Client(await open_connection(direct(server.url)))
        frame = await client.ask(commands.app_server_info())
        assert frame.type == "app_server_info_response"
        assert client.counts.answers == 1
        await client.close()
