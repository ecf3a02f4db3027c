"""A keeper that lives for weeks: its logs stay small, its notes survive a full disk, and it makes room."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from letta_tui.keeper import client
from letta_tui.keeper.client import KeeperOptions, KeeperPaths, ensure_keeper, find_keeper, stop_keeper
from letta_tui.keeper.control import ControlServer
from letta_tui.keeper.ends import End, EndLog
from letta_tui.keeper.files import SavedServer, SavedState, read_state, write_state
from letta_tui.keeper.identity import ProcessIdentity, wait_gone
from letta_tui.keeper.logs import limit, older
from letta_tui.keeper.server import EmbeddedServer, ServerTrouble
from letta_tui.keeper.spawn import spawn_detached
from tests.keeper.conftest import Household
from tests.support.server import until


async def test_a_log_is_cut_while_its_writer_goes_on(tmp_path: Path) -> None:
    log, go = tmp_path / "server.log", tmp_path / "go"
    script = f"echo before; until [ -e {go} ]; do sleep 0.02; done; echo after"
    writer = spawn_detached(("sh", "-c", script), log, dict(os.environ), None)
    assert writer is not None
    await until(log.read_bytes)
    assert not limit(log)
    assert limit(log, largest=0)
    assert (log.read_bytes(), older(log).read_bytes()) == (b"", b"")
    go.touch()
    assert wait_gone(writer, 5.0)
    assert log.read_bytes() == b"after\n"  # and no hole before it
    log.write_bytes(b"x" * 9000)
    assert limit(log, largest=5000)
    assert older(log).read_bytes() == b"x" * 5000


def note(number: int) -> End:
    return End(float(number), "turn", "a", "c", stop_reason="end_turn", turn_id=f"turn-{number}")


def full(real: Callable[[int, bytes], int], room: int) -> Callable[[int, bytes], int]:
    def write(fd: int, data: bytes) -> int:
        if room == 0:
            raise OSError(28, "No space left on device")
        return real(fd, data[:room])

    return write


@pytest.mark.parametrize("room", [0, 1, 40])
def test_what_a_full_disk_did_not_take_is_told_and_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    log = EndLog(tmp_path / "ends.jsonl")
    assert log.note(note(1))
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full(os.write, room))
        assert not log.note(note(2))
        assert not log.note(note(3))
        assert log.since(0) == (note(1), note(2), note(3))
    assert log.note(note(4))
    assert EndLog(tmp_path / "ends.jsonl").since(0) == (note(1), note(2), note(3), note(4))


def test_a_turn_that_two_keepers_noted_ended_once(tmp_path: Path) -> None:
    log = EndLog(tmp_path / "ends.jsonl")
    waits = End(1.0, "approval", "a", "c", tools=("Bash",))
    for each in (waits, note(2), replace(note(2), at=2.1), note(3)):
        log.note(each)
    assert log.since(0) == (waits, note(2), note(3))


OLD = """
import sys, letta_tui
letta_tui.__version__ = "0.0.9"
from letta_tui.keeper.__main__ import main
sys.exit(main())
"""


def older_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a window of the version before would start."""
    monkeypatch.setattr(client, "_PROGRAM", (sys.executable, "-c", OLD))


async def test_an_older_keeper_without_a_turn_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = KeeperPaths(tmp_path / "state", tmp_path / "run")
    try:
        with monkeypatch.context() as before:
            older_program(before)
            before.setattr(client, "__version__", "0.0.9")
            old = await ensure_keeper(paths, KeeperOptions())
        assert old.version == "0.0.9"
        new = await ensure_keeper(paths, KeeperOptions())
        assert new.pid != old.pid
        assert (await new.status()).version != "0.0.9"
        found = await find_keeper(paths)
        assert found is not None
        assert found.pid == new.pid
        for handle in (old, new, found):
            await handle.close()
    finally:
        await stop_keeper(paths)


@pytest.mark.real
async def test_an_older_keeper_keeps_its_turn_and_gives_the_server_on(
    household: Household, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        older_program(before)
        before.setattr(client, "__version__", "0.0.9")
        old = await household.ensure()
    agent, conversation = await household.conversation(old)
    assert await old.hold(agent, conversation)
    life = (await old.endpoint()).life
    async with await household.socket(old) as socket:
        await socket.join(agent, conversation)
        await socket.say(agent, conversation, "[[words 30 rate=20; say THE END]]")

        async def busy() -> bool:
            return bool((await old.status()).busy)

        async def quiet() -> bool:
            return not await busy()

        await until(busy)
        meanwhile = await household.ensure()
        assert (meanwhile.pid, meanwhile.version) == (old.pid, "0.0.9")
        assert (await socket.finished())["stop_reason"] == "end_turn"
        await until(quiet)
        new = await household.ensure()
        assert new.pid != old.pid
        assert (await new.endpoint()).life == life
        mark = len(socket.frames)
        await socket.say(agent, conversation, "[[say again]]")
        assert (await socket.finished(mark))["stop_reason"] == "end_turn"


async def test_a_full_disk_is_said_before_a_server_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = KeeperPaths(tmp_path / "state", tmp_path / "run")
    server = EmbeddedServer(paths, KeeperOptions(), {"HOME": str(tmp_path / "home")})
    assert server.full() == ""
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage._replace(free=4096))
    with pytest.raises(ServerTrouble, match=f"disk is full: make room for {paths.state}") as refused:
        await server.start()
    assert refused.value.lasting


async def test_turns_that_were_ended_with_keeper_and_server_are_noted(tmp_path: Path) -> None:
    paths = KeeperPaths(tmp_path / "state", tmp_path / "run")
    paths.state.mkdir()
    dead = ProcessIdentity(4_190_000, 1.0)
    server = SavedServer(dead, "ws://127.0.0.1:1/ws", paths.token)
    write_state(
        paths.state_file, SavedState(dead, "0.1", 1, server, (("a", "c"), ("a", "d")), busy=(("a", "c"),))
    )
    try:
        handle = await ensure_keeper(paths, KeeperOptions())
        left, lost = await handle.ends_since(0)
        assert (left.kind, left.conversation_id) == ("left", "c")
        assert (lost.kind, lost.conversation_id) == ("server", "c")
        assert "ended from outside" in lost.words
        os.kill(handle.pid, signal.SIGKILL)
        await until(lambda: handle.gone)
        again = await ensure_keeper(paths, KeeperOptions())
        assert len(await again.ends_since(0)) == 2  # told once
        for each in (handle, again):
            await each.close()
    finally:
        await stop_keeper(paths)
    assert read_state(paths.state_file).server is None


async def test_a_socket_that_was_cleaned_away_is_made_again(tmp_path: Path) -> None:
    async def nothing(*_: object) -> dict[str, object]:
        return {}

    server = ControlServer(nothing, lambda peer: None, {"keeper": "letta-tui"})
    path = tmp_path / "run" / "keeper.sock"
    path.parent.mkdir()
    await server.start(path)
    shutil.rmtree(path.parent)
    await server.listen_again()
    reader, writer = await asyncio.open_unix_connection(path)
    assert b"letta-tui" in await reader.readline()
    writer.close()
    await server.close()
    await server.listen_again()  # not after the end
    assert not path.exists()
