from __future__ import annotations

import sys
from pathlib import Path

import pytest

from letta_tui.transport import Endpoint, Refused, hosted, token_file_advice
from letta_tui.transport.credentials import missing_key, read_token
from letta_tui.transport.endpoint import direct


async def refused(endpoint: Endpoint, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(Refused) as caught:
        await read_token(endpoint, environ or {})
    assert caught.value.kind == "token"
    return caught.value.words


async def test_a_file_is_read_anew_each_time(tmp_path: Path) -> None:
    path = tmp_path / "token"
    endpoint = direct("ws://h", token_file=path)
    path.write_text("one\n")
    assert await read_token(endpoint) == "one"
    path.write_text("two")
    assert await read_token(endpoint) == "two"


async def test_a_signed_token_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjF9.c2ln_-\n")
    assert await read_token(direct("ws://h", token_file=path)) == "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjF9.c2ln_-"


async def test_what_is_no_token_file_is_told(tmp_path: Path) -> None:
    assert "does not exist" in await refused(direct("ws://h", token_file=tmp_path / "none"))
    assert "cannot be read" in await refused(direct("ws://h", token_file=tmp_path))
    path = tmp_path / "token"
    path.write_text(" \n")
    assert "empty" in await refused(direct("ws://h", token_file=path))
    path.write_text("two words")
    words = await refused(direct("ws://h", token_file=path))
    assert "spaces" in words
    assert "two words" not in words
    path.write_bytes(b"x" * 100_000)
    assert "too large" in await refused(direct("ws://h", token_file=path))


async def test_a_command_gives_the_token() -> None:
    python = sys.executable
    endpoint = direct("ws://h", token_command=(python, "-c", "print('from-command')"))
    assert await read_token(endpoint) == "from-command"
    assert "exit status 3" in await refused(direct("ws://h", token_command=(python, "-c", "exit(3)")))
    assert "not found" in await refused(direct("ws://h", token_command=("/nowhere/at-all",)))
    assert "empty" in await refused(direct("ws://h", token_command=(python, "-c", "")))


def test_a_key_that_is_not_there_is_told_before_anything_is_tried(tmp_path: Path) -> None:
    path = tmp_path / "token"
    there = hosted(token_file=path)
    assert "does not exist" in missing_key(there, {})
    path.write_text("key")
    assert missing_key(there, {}) == ""
    assert "set LETTA_API_KEY" in missing_key(hosted(), {"LETTA_API_KEY": " "})
    assert missing_key(hosted(), {"LETTA_API_KEY": "key"}) == ""
    assert "not found" in missing_key(direct("ws://h", token_command=("/nowhere/at-all",)), {})
    assert "T is not set" in missing_key(direct("ws://h", token_env="T"), {})
    assert missing_key(direct("ws://h"), {}) == missing_key(hosted(token="k"), {}) == ""


async def test_a_hosted_key_comes_from_the_environment() -> None:
    assert await read_token(hosted(), {"LETTA_API_KEY": "key"}) == "key"
    assert "LETTA_API_KEY" in await refused(hosted(), {})
    assert await read_token(direct("ws://h"), {}) is None


def test_a_token_file_others_can_read_is_advised_against(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("x")
    path.chmod(0o644)
    advice = token_file_advice(path)
    assert advice is not None
    assert "chmod 600" in advice
    path.chmod(0o600)
    assert token_file_advice(path) is None
    assert token_file_advice(tmp_path / "none") is None
