"""Servers that cannot be reached, of every kind: one clear sentence, a code, and nothing lost or sent."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from letta_tui.commands import errors
from tests.cli.conftest import Run
from tests.support.server import RealServer
from tests.transport.relay_double import TOKEN, RelayDouble
from tests.transport.tls_front import certificate, tls_front


def configure(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[profiles.x]\nkind = 'hostd'", "did you mean 'hosted'"),
        ("[profiles.x]\nkind = 'direct'", "needs a 'url'"),
        ("[profiles.x]\nkind = 'direct'\nurl = 'ws://h'\ntoken = 'secret-1'", "No secret belongs"),
        ("[profiles.x]\nkind = 'hosted'\ndevice = 'd'\nsandbox = true", "one of 'device' or 'sandbox'"),
        ("[profiles.x]\nkind = 'hosted'\nrepositories = ['a/b']", "means nothing without 'sandbox = true'"),
        (
            "[profiles.x]\nkind = 'hosted'\nsandbox = true\nrepositories = ['a']",
            "must look like 'owner/name",
        ),
        ("[profiles.x]\nkind = 'hosted'\nsandbox = true\nsandbox_minutes = 90", "from 1 to 60"),
        ("[profiles.x]\nkind = 'hosted'\ndevise = 'd'", "Did you mean 'device'"),
        ("[profiles.x]\nkind = 'hosted'\napi_base = 'http://api.example'", "https:// only"),
        ("[profiles.x\n", "is not valid TOML"),
        ("[profiles.x]\nkind = 'hosted'\ndevice = 'd'", "LETTA_API_KEY"),
    ],
)
def test_a_config_that_is_wrong(run: Run, folder: Path, text: str, words: str) -> None:
    configure(folder, text)
    done = run("send", "--profile", "x", "--agent", "agent-1", "--timeout", "5", "hi")
    assert done.code in (errors.USAGE, errors.FAILED)
    assert words in done.one_sentence()
    assert "secret-1" not in done.err


def test_a_stateless_turn_is_said_to_be_impossible(run: Run) -> None:
    done = run("send", "--stateless", "hi")
    assert done.code == errors.USAGE
    assert "no field for a turn that leaves no trace" in done.one_sentence()


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ("device = 'device-1'", "laptop is offline"),
        ("device = 'device-9'", 'No machine with the id "device-9"'),
        ("", "No machine is chosen"),
    ],
)
async def test_a_machine_that_is_not_there(run: Run, folder: Path, device: str, words: str) -> None:
    async with RelayDouble() as double:
        double.device.connection_id = None
        double.remembers_last = False
        (folder.parent / "key").write_text(TOKEN)
        configure(
            folder,
            f"[profiles.x]\nkind = 'hosted'\napi_base = '{double.base}'\n"
            f"token_file = '{folder.parent / 'key'}'\n{device}\n",
        )
        arguments = ("send", "--profile", "x", "--agent", "agent-1", "--timeout", "4", "hi")
        done = await asyncio.to_thread(run, *arguments)
        assert done.code == errors.FAILED
        assert words in done.one_sentence()
        assert double.commands == []


async def test_a_key_the_service_refuses(run: Run, folder: Path) -> None:
    async with RelayDouble() as double:
        (folder.parent / "key").write_text("wrong-key-1")
        configure(
            folder,
            f"[profiles.x]\nkind = 'hosted'\napi_base = '{double.base}'\ndevice = 'device-1'\n"
            f"token_file = '{folder.parent / 'key'}'\n",
        )
        done = await asyncio.to_thread(run, "send", "--profile", "x", "--agent", "agent-1", "hi")
        assert done.code == errors.FAILED
        assert "refused the token" in done.one_sentence()
        assert "wrong-key-1" not in done.err


@pytest.mark.real
async def test_a_certificate_nobody_vouches_for(run: Run, letta_server: RealServer, tmp_path: Path) -> None:
    context, _ = certificate(tmp_path)
    async with tls_front(letta_server.url, context) as url:
        arguments = ("--url", url, "--token-file", str(letta_server.token_file), "--agent", "agent-1", "hi")
        done = await asyncio.to_thread(run, "send", *arguments)
    assert done.code == errors.FAILED
    assert "is not trusted: self-signed certificate" in done.one_sentence()
