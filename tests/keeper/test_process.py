"""The keeper process without a server: size, refusals, the change to a newer one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from letta_tui.keeper import client, control
from letta_tui.keeper.client import (
    KeeperError,
    KeeperOptions,
    KeeperPaths,
    ensure_keeper,
    find_keeper,
    stop_keeper,
)
from letta_tui.keeper.files import KeeperLock, read_state
from letta_tui.keeper.identity import ProcessIdentity, identify, wait_gone
from letta_tui.keeper.spawn import spawn_detached
from tests.support.server import until


@pytest.fixture
async def paths(tmp_path: Path) -> AsyncIterator[KeeperPaths]:
    found = KeeperPaths(tmp_path / "state", tmp_path / "run")
    yield found
    await stop_keeper(found)


def test_it_never_draws() -> None:
    program = (
        "import sys, letta_tui.keeper.process; print([m for m in sys.modules if m in ('textual', 'rich')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_it_is_small_and_answers_after_a_stale_socket_and_lock_file(paths: KeeperPaths) -> None:
    paths.state.mkdir()
    paths.runtime.mkdir()
    paths.lock.write_text("")
    (paths.runtime / control.SOCKET_NAME).write_text("left behind")
    handle = await ensure_keeper(paths, KeeperOptions())
    status = await handle.status()
    assert (status.windows, status.server, status.pid) == (1, "stopped", handle.pid)
    assert (paths.runtime / control.SOCKET_NAME).stat().st_mode & 0o077 == 0
    assert psutil.Process(handle.pid).memory_full_info().uss < 40 * 1024 * 1024
    await handle.close()


async def test_a_file_that_cannot_be_written_is_named(paths: KeeperPaths) -> None:
    paths.log.mkdir(parents=True)
    with pytest.raises(KeeperError, match=r"^The keeper cannot be started: .*keeper\.log\)\.$"):
        await ensure_keeper(paths, KeeperOptions())


async def test_a_window_counts_until_its_process_is_gone(paths: KeeperPaths) -> None:
    one = await ensure_keeper(paths, KeeperOptions())
    two = await ensure_keeper(paths, KeeperOptions())
    assert (await one.status()).windows == 2
    await two.close()

    async def alone() -> bool:
        return (await one.status()).windows == 1

    await until(alone)
    await one.close()


async def test_no_letta_is_one_lasting_sentence(paths: KeeperPaths, tmp_path: Path) -> None:
    handle = await ensure_keeper(paths, KeeperOptions(letta=tmp_path / "gone"))
    with pytest.raises(KeeperError, match="no letta program at") as refused:
        await handle.endpoint()
    assert refused.value.lasting
    status = await handle.status()
    assert status.server == "failed"
    await handle.close()


async def test_a_server_that_ends_at_once_is_told_with_what_it_printed(
    paths: KeeperPaths, tmp_path: Path
) -> None:
    program = tmp_path / "letta"
    program.write_text("#!/bin/sh\necho 'the port is on fire' >&2\nexit 3\n")
    program.chmod(0o755)
    handle = await ensure_keeper(paths, KeeperOptions(letta=program))
    with pytest.raises(KeeperError, match="the port is on fire"):
        await handle.endpoint()
    await handle.close()


async def test_a_folder_that_takes_nothing_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(KeeperError, match="folder"):
        await ensure_keeper(KeeperPaths(tmp_path / "state", tmp_path / "run"), KeeperOptions())


async def test_a_keeper_that_does_not_answer_is_named_and_can_be_ended(
    paths: KeeperPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = await ensure_keeper(paths, KeeperOptions())
    os.kill(handle.pid, signal.SIGSTOP)
    monkeypatch.setattr(client, "_HELLO_SECONDS", 0.2)
    monkeypatch.setattr(client, "_PATIENCE_SECONDS", 0.5)
    with pytest.raises(KeeperError, match=str(handle.pid)):
        await ensure_keeper(paths, KeeperOptions())
    assert await stop_keeper(paths)
    assert not psutil.pid_exists(handle.pid) or psutil.Process(handle.pid).status() == psutil.STATUS_ZOMBIE
    await handle.close()


async def test_an_older_keeper_makes_room_for_the_newer(
    paths: KeeperPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = await ensure_keeper(paths, KeeperOptions())
    monkeypatch.setattr(client, "CONTROL", control.CONTROL + 1)

    async def next_start(*_: object) -> bool:
        # What a newer program would start: here, whoever gets the lock the old one has let go of.
        lock = KeeperLock(paths.lock)
        assert lock.acquire()
        lock.release()
        monkeypatch.setattr(client, "CONTROL", control.CONTROL)
        monkeypatch.setattr(client, "_start", start)
        return False

    start = client._start
    monkeypatch.setattr(client, "_start", next_start)
    new = await ensure_keeper(paths, KeeperOptions())
    assert new.pid != old.pid
    assert (await old.status()).pid == old.pid  # it lingers, so that nothing loses its last subscriber
    assert await find_keeper(paths) is not None
    os.kill(old.pid, signal.SIGTERM)
    await until(lambda: old.gone)
    assert (await new.status()).pid == new.pid  # and took nothing along
    await old.close()
    await new.close()


async def test_nonsense_on_the_channel_is_answered_and_harms_nobody(paths: KeeperPaths) -> None:
    handle = await ensure_keeper(paths, KeeperOptions())
    reader, writer = await asyncio.open_unix_connection(paths.runtime / control.SOCKET_NAME)
    await reader.readline()
    for line in (b"not json\n", b"[1]\n", b'{"id": 7, "do": "dance"}\n'):
        writer.write(line)
        answer = json.loads(await reader.readline())
        assert answer["ok"] is False
        assert answer["error"].endswith(".")
    writer.close()
    assert (await handle.status()).windows == 1
    await handle.close()


async def test_a_path_too_long_for_a_socket_is_one_sentence(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 120)
    with pytest.raises(KeeperError, match="too long"):
        await ensure_keeper(KeeperPaths(tmp_path / "state", long), KeeperOptions())


def living(folder: Path, *, begun: bool = False) -> list[int]:
    """Processes that were started with a path below ``folder``, keepers aside; ``begun``: and those that
    have not become yet what they are to be."""
    found = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        unborn = any("os.execvp" in word for word in words)
        ours = any(str(folder) in word for word in words) and "letta_tui.keeper" not in words
        if ours and not (begun and unborn):
            found.append(process.pid)
    return found


@pytest.mark.parametrize("end", ["stop", "kill, stop", "kill, start, stop"])
async def test_what_was_being_started_is_ended_too(paths: KeeperPaths, tmp_path: Path, end: str) -> None:
    ready = (
        sys.executable,
        "-c",
        "print('Listening', flush=True); import time; time.sleep(99)",
        str(tmp_path),
    )
    never = tmp_path / "letta"  # a server that does not come to listen
    never.write_text("#!/bin/sh\nwhile :; do sleep 0.1; done\n")
    never.chmod(0o755)
    options = KeeperOptions(letta=never, companions=(ready,))
    handle = await ensure_keeper(paths, options)
    asking = asyncio.create_task(handle.endpoint())

    async def both() -> bool:
        return len(living(tmp_path, begun=True)) == 2

    await until(both)
    if "kill" in end:
        os.kill(handle.pid, signal.SIGKILL)
    if "start" in end:
        await (await ensure_keeper(paths, options)).close()
        assert living(tmp_path) == []
    await stop_keeper(paths)
    assert living(tmp_path) == []
    with pytest.raises(KeeperError):
        await asking
    await handle.close()


async def test_a_keeper_that_has_handed_over_starts_nothing_any_more(
    paths: KeeperPaths, tmp_path: Path
) -> None:
    never = tmp_path / "letta"
    never.write_text("#!/bin/sh\nwhile :; do sleep 0.1; done\n")
    never.chmod(0o755)
    old = await ensure_keeper(paths, KeeperOptions(letta=never))
    await old._ask("hand_over")  # and another window is still attached to it
    new = await ensure_keeper(paths, KeeperOptions(letta=never))
    assert new.pid != old.pid
    for question in (old.endpoint(), old.hold("agent-1", "conv-1"), old.restart_server()):
        with pytest.raises(KeeperError, match="Another keeper has taken the place of this one"):
            await question
    assert living(tmp_path) == []
    assert (await new.status()).server == "stopped"
    for handle in (old, new):
        await handle.close()


BRIEF = """
import sys
from letta_tui.keeper import process
process._LINGER_SECONDS = 0.1
from letta_tui.keeper.__main__ import main
sys.exit(main())
"""


async def test_a_keeper_that_nobody_takes_over_from_goes_on(
    paths: KeeperPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_PROGRAM", (sys.executable, "-c", BRIEF))
    old = await ensure_keeper(paths, KeeperOptions())
    for _ in range(2):  # by two windows
        await old._ask("hand_over")

    async def there() -> bool:
        found = await find_keeper(paths)
        if found is not None:
            await found.close()
        return found is not None and found.pid == old.pid

    await until(there)
    assert (await old.status()).windows == 1
    state = read_state(paths.state_file)
    assert state.keeper is not None
    assert state.keeper.pid == old.pid
    again = await ensure_keeper(paths, KeeperOptions())
    assert again.pid == old.pid
    for handle in (old, again):
        await handle.close()


async def test_a_keeper_whose_successor_was_stopped_leaves(
    paths: KeeperPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_PROGRAM", (sys.executable, "-c", BRIEF.replace("0.1", "2.0")))
    old = await ensure_keeper(paths, KeeperOptions())
    me = identify(old.pid)
    assert me is not None
    await old.hand_over()
    new = await ensure_keeper(paths, KeeperOptions())
    assert new.pid != old.pid
    assert await stop_keeper(paths)
    await new.close()
    assert await asyncio.to_thread(wait_gone, me, 20.0)


def test_a_process_that_nobody_could_note_never_runs(tmp_path: Path) -> None:
    noted = []

    def full(identity: ProcessIdentity) -> None:
        noted.append(identity)
        raise OSError(28, "No space left on device")

    made = tmp_path / "made"
    with pytest.raises(OSError, match="No space"):
        spawn_detached(("touch", str(made)), tmp_path / "log", dict(os.environ), None, full)
    assert wait_gone(noted[0], 5.0)
    assert not made.exists()
    identity = spawn_detached(("touch", str(made)), tmp_path / "log", dict(os.environ), None)
    assert identity is not None
    assert wait_gone(identity, 5.0)
    assert made.exists()
