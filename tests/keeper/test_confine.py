"""Confinement: everything that cannot be confined is not started."""

from __future__ import annotations

import importlib.metadata
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from letta_tui.commands.checks import TESTED_SERVER
from letta_tui.keeper.client import KeeperError, stop_keeper
from letta_tui.keeper.confine import CannotConfine, confine, memory_folder
from tests.keeper.conftest import Household
from tests.support.server import LETTA

AGENT = "agent-local-1"


def furnished(home: Path) -> dict[str, str]:
    (home / ".letta" / "lc-local-backend" / "memfs" / AGENT / "memory").mkdir(parents=True)
    return {"HOME": str(home), "PATH": str(home / "bin")}


def test_the_memory_folder_must_be_there_and_within_reach(tmp_path: Path) -> None:
    environ = furnished(tmp_path)
    assert memory_folder(AGENT, environ).is_dir()
    with pytest.raises(CannotConfine, match="no memory folder"):
        memory_folder("agent-local-2", environ)
    with pytest.raises(CannotConfine, match="no id"):
        memory_folder("agent-/../../..", environ)
    with pytest.raises(CannotConfine, match="only keep its data below"):
        memory_folder(AGENT, {**environ, "LETTA_LOCAL_BACKEND_DIR": "/elsewhere"})


@pytest.mark.skipif(not LETTA.exists(), reason="needs the wheel's launcher")
def test_the_launcher_of_the_tested_server_wraps_the_command(tmp_path: Path) -> None:
    assert importlib.metadata.version("letta") == TESTED_SERVER
    bwrap = tmp_path / "bin" / "bwrap"  # the launcher only asks whether it works
    bwrap.parent.mkdir()
    bwrap.write_text("#!/bin/sh\nexit 0\n")
    bwrap.chmod(0o755)
    command, environ = confine([str(LETTA), "server"], furnished(tmp_path), AGENT)
    assert Path(command[0]).name == "bwrap"
    assert command[-2:] == [str(LETTA), "server"]
    assert str(memory_folder(AGENT, environ)) in command
    assert environ["MEMORY_DIR"] == str(memory_folder(AGENT, environ))


@pytest.mark.skipif(not LETTA.exists(), reason="needs the wheel's launcher")
def test_without_a_sandbox_tool_nothing_is_started(tmp_path: Path) -> None:
    with pytest.raises(CannotConfine, match="unavailable"):
        confine([str(LETTA), "server"], furnished(tmp_path), AGENT)


def test_a_letta_without_the_launcher_is_told(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "letta"
    program.parent.mkdir()
    program.write_text("")
    with pytest.raises(CannotConfine, match="launcher"):
        confine([str(program), "server"], furnished(tmp_path), AGENT)
    with pytest.raises(CannotConfine, match="newer"):
        confine(["/usr/bin/node", str(tmp_path / "letta.js"), "server"], {**furnished(tmp_path / "b")}, AGENT)


@pytest.fixture
def at_home(household: Household) -> Household:
    """A household whose server keeps its data where a confined one can write."""
    backend = household.folder / "home" / ".letta" / "lc-local-backend"
    env = {**household.options.server_env, "LETTA_LOCAL_BACKEND_DIR": str(backend)}
    household.options = replace(household.options, server_env=env)
    return household


@pytest.mark.real
async def test_a_confined_server_serves_one_agent_and_ends_cleanly(at_home: Household) -> None:
    window = await at_home.ensure()
    agent, conversation = await at_home.conversation(window)
    with pytest.raises(KeeperError, match="not confined"):
        await at_home.ensure(confine_agent=agent)
    await stop_keeper(at_home.paths)
    confined = await at_home.ensure(confine_agent=agent)
    if shutil.which("bwrap") is None:
        with pytest.raises(KeeperError, match="not started unconfined") as refused:
            await confined.endpoint()
        assert refused.value.lasting
        assert len(at_home.ours()) == 1  # the keeper, and no server
        return
    memory = at_home.folder / "home" / ".letta" / "lc-local-backend" / "memfs" / agent / "memory"
    assert await confined.hold(agent, conversation)
    with pytest.raises(KeeperError, match="confined to"):
        await confined.hold("agent-local-other", conversation)
    async with await at_home.socket(confined) as socket:
        await socket.join(agent, conversation, cwd=str(at_home.folder / "work"), mode="unrestricted")
        await socket.say(
            agent, conversation, f"[[run touch outside; run touch {memory}/inside ==> say done]]"
        )
        await socket.finished()
    results = [f["delta"]["tool_return"] for f in socket.frames if "tool_return" in f.get("delta", {})]
    assert any("Read-only file system" in str(r) for r in results), results
    assert not (at_home.folder / "work" / "outside").exists()
    assert (memory / "inside").exists(), results
    await stop_keeper(at_home.paths)
    assert at_home.ours() == []
