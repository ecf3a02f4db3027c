from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from letta_tui.transport import Refused, embedded, hosted, server_key
from letta_tui.transport.endpoint import direct, http_url, is_loopback, websocket_url


@pytest.mark.parametrize(
    ("given_url", "used"),
    [
        ("http://host:8080", "ws://host:8080/ws"),
        ("https://host", "wss://host/ws"),
        ("ws://host/", "ws://host/ws"),
        ("WS://Host/other", "ws://host/other"),
        ("ws://host/ws?channel=control&a=1", "ws://host/ws?a=1"),
        ("  ws://[::1]:9/ws#part ", "ws://[::1]:9/ws"),
    ],
)
def test_addresses_follow_the_servers_rules(given_url: str, used: str) -> None:
    assert websocket_url(given_url) == used
    assert websocket_url(used) == used


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://host", "ws://, wss://, http:// or https://"),
        ("host:80", "ws://, wss://, http:// or https://"),
        ("", "ws://, wss://, http:// or https://"),
        ("ws://", "no host"),
        ("ws://host:port", "malformed"),
        ("ws://host:99999", "malformed"),
        ("ws://[::1", "malformed"),
        ("ws://ho st/", "spaces"),
        ("ws://me:secret@host/", "user name or password"),
    ],
)
def test_a_bad_address_is_named_in_one_sentence(url: str, said: str) -> None:
    with pytest.raises(Refused) as caught:
        websocket_url(url)
    assert caught.value.kind == "bad_url"
    assert said in caught.value.words
    assert "secret" not in caught.value.words
    assert caught.value.words.endswith(".")


@given(st.text(max_size=40))
def test_no_text_breaks_the_address_rules(url: str) -> None:
    words = ""
    try:
        used = websocket_url(url)
        assert websocket_url(used) == used
    except Refused as refused:
        words = refused.words
    assert words.isprintable()


def test_the_hosted_service_is_not_used_unencrypted() -> None:
    assert hosted("https://api.example.com/").url == "https://api.example.com"
    assert hosted("http://127.0.0.1:5").url == "http://127.0.0.1:5"
    with pytest.raises(Refused, match="not encrypted"):
        hosted("http://api.example.com")


def test_loopback() -> None:
    assert all(map(is_loopback, ["localhost", "127.0.0.1", "127.9.9.9", "::1", "x.localhost"]))
    assert not any(map(is_loopback, ["example.com", "10.0.0.1", "localhost.example.com", ""]))


def test_an_embedded_server_stays_the_same_on_another_port() -> None:
    one = embedded("ws://127.0.0.1:1", identity="/data/demo")
    two = embedded("ws://127.0.0.1:2", identity="/data/demo")
    assert server_key(one) == server_key(two)
    assert server_key(one) != server_key(embedded("ws://127.0.0.1:1", identity="/data/other"))


def test_a_direct_server_is_its_address_however_it_is_written() -> None:
    key = server_key(direct("ws://localhost:80/ws"))
    assert key == server_key(direct("http://127.0.0.1", token="x"))
    assert key != server_key(direct("ws://127.0.0.1:81"))
    assert key != server_key(direct("wss://127.0.0.1:80"))
    assert key != server_key(embedded("ws://localhost:80/ws", identity="x"))


def test_a_hosted_conversation_moves_between_machines() -> None:
    endpoint = hosted(device_id="one")
    assert server_key(endpoint) == server_key(endpoint.on_device("two")) == "hosted:https://api.letta.com:443"


def test_the_plain_address_beside_a_socket() -> None:
    assert http_url("ws://h:1/ws", "/app-server-info") == "http://h:1/app-server-info"
    assert http_url("wss://h/letta/ws?a=1", "/x") == "https://h/letta/x"


def test_a_token_is_never_shown() -> None:
    shown = repr(direct("ws://h", token="very-secret", token_file=Path("f")))
    assert "very-secret" not in shown
