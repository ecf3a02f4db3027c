"""Agents, conversations and machines from the command line, on the real server and the relay's stand-in."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from letta_tui.commands import errors
from tests.cli.conftest import Run
from tests.support.server import MODEL_HANDLE, RealServer
from tests.transport.relay_double import TOKEN, Device, RelayDouble


def configure(folder: Path, text: str, name: str = "config.toml") -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)


def server(letta_server: RealServer) -> list[str]:
    return ["--url", letta_server.url, "--token-file", str(letta_server.token_file)]


@pytest.mark.real
def test_an_agent_is_made_renamed_and_deleted(run: Run, letta_server: RealServer, tmp_path: Path) -> None:
    at = server(letta_server)
    made = run("agents", "create", *at, "--name", "Ada", "--model", MODEL_HANDLE).out.strip()
    preset = run("agents", "create", *at, "--personality", "blank", "--name", "Bea", "--json").out
    bea = json.loads(preset)["agent"]
    assert run("agents", "rename", *at, made, "Ada B").code == errors.OK
    body = tmp_path / "agent.json"
    body.write_text(json.dumps({"name": "Cleo", "model": MODEL_HANDLE, "description": "by a file"}))
    cleo = run("agents", "create", *at, "--body", str(body)).out.strip()
    for wrong, words in (("[]", "a JSON object"), ("{", "not valid JSON")):
        body.write_text(wrong)
        assert words in run("agents", "create", *at, "--body", str(body)).one_sentence()
    unknown = run("agents", "create", *at, "--model", "openai-compatible/practise")
    assert unknown.code == errors.FAILED
    assert f"Did you mean {MODEL_HANDLE}?" in unknown.one_sentence()
    rows = json.loads(run("agents", *at, "--json").out)
    names = {row["id"]: row["name"] for row in rows}
    # The only model there is, since none was named.
    assert next(row["model"] for row in rows if row["id"] == bea) == MODEL_HANDLE
    assert (names[made], names[bea], names[cleo]) == ("Ada B", "Bea", "Cleo")
    refused = run("agents", "delete", *at, made)
    assert refused.code == errors.USAGE
    assert "--yes" in refused.one_sentence()
    assert run("agents", "delete", *at, made, "--yes").code == errors.OK
    again = run("agents", "delete", *at, made, "--yes")
    assert again.code == errors.FAILED
    assert "The server says" in again.one_sentence()


@pytest.mark.real
def test_a_conversation_is_renamed_copied_and_hidden(run: Run, letta_server: RealServer) -> None:
    at = server(letta_server)
    agent = ["--agent", letta_server.agent_id, "--json", "[[say a]]"]
    mine = json.loads(run("send", *at, *agent).out)["conversation"]
    assert run("conversations", "rename", *at, mine, "A title").code == errors.OK
    copy = run("conversations", "fork", *at, mine).out.strip()
    assert copy not in ("", mine)
    here = {row["conversation"]: row["title"] for row in json.loads(run("conversations", "--json").out)}
    assert here[mine] == "A title"
    assert copy in here
    assert run("conversations", "compact", *at, mine).code == errors.OK
    assert run("conversations", "archive", *at, copy).code == errors.OK
    asked = run("conversations", "delete", *at, copy)
    assert asked.code == errors.USAGE
    assert "no command that deletes a conversation" in asked.one_sentence()
    deleted = run("conversations", "delete", *at, copy, "--yes")
    assert (deleted.code, deleted.out[:20]) == (errors.OK, "Archived and hidden.")
    gone = run("conversations", *at, "rename", "local-conv-99999", "x")
    assert gone.code == errors.FAILED
    assert "not found" in gone.one_sentence()
    assert run("send", *at, "--conversation", "local-conv-99999", "hi").code == errors.FAILED
    assert "local-conv-99999" not in run("conversations").out


async def test_machines_are_listed_with_state_age_and_folder(run: Run, folder: Path) -> None:
    async with RelayDouble() as double:
        double.agents = [{"id": "agent-1", "name": "Ada", "model": "m"}]
        double.devices["device-2"] = Device("device-2", "desk", None, last_heartbeat="2020-01-01T00:00:00Z")
        configure(folder, f"[profiles.x]\nkind = 'hosted'\napi_base = '{double.base}'\ntoken_file = 'key'\n")
        configure(folder, TOKEN, "key")
        text = (await asyncio.to_thread(run, "devices", "--profile", "x")).out
        assert "laptop" in text
        assert "online" in text
        data = json.loads((await asyncio.to_thread(run, "devices", "--profile", "x", "--json")).out)
        assert [(row["device"], row["online"], row["folder"]) for row in data] == [
            ("device-1", True, "/home/somebody/work"),
            ("device-2", False, "/home/somebody/work"),
        ]
        agents = json.loads((await asyncio.to_thread(run, "agents", "--profile", "x", "--json")).out)
        assert agents[0]["name"] == "Ada"
        made = await asyncio.to_thread(run, "agents", "create", "--profile", "x", "--name", "Bea")
        assert made.out == "agent-new\n"
    none = run("devices")
    assert none.code == errors.USAGE
    assert "not a hosted one" in none.one_sentence()
