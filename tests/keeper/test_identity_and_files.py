"""Processes, the lock and the state file: what must never be mistaken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from letta_tui.keeper.files import KeeperLock, SavedServer, SavedState, read_state, write_state
from letta_tui.keeper.identity import ProcessIdentity, end_process, identify


def test_a_recycled_process_id_is_another_process() -> None:
    me = identify(os.getpid())
    assert me is not None
    assert me.alive()
    older = replace(me, ticks=None if me.ticks is None else me.ticks - 100, started=me.started - 100)
    assert not older.alive()
    assert older.life != me.life
    before_the_boot = replace(me, boot="another boot") if me.ticks is not None else older
    assert not before_the_boot.alive()


def test_ending_spares_whoever_has_the_id_now() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        now = identify(other.pid)
        assert now is not None
        end_process(replace(now, ticks=1, started=now.started - 1000))
        assert other.poll() is None
        end_process(now)
        assert other.wait(5) != 0


def test_a_process_that_ignores_sigterm_ends_too() -> None:
    program = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('x', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        identity = identify(other.pid)
        assert identity is not None
        end_process(identity, patience=0.2)
        assert not identity.alive()


def test_one_lock_one_holder_and_a_stale_file_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "keeper.lock"
    path.write_text("left by a process that died")
    first, second = KeeperLock(path), KeeperLock(path)
    assert first.acquire()
    assert not second.acquire()
    first.release()
    assert second.acquire()
    second.release()


def test_state_is_read_back_and_nonsense_is_an_empty_state(tmp_path: Path) -> None:
    path = tmp_path / "keeper.json"
    assert read_state(path) == SavedState()
    server = SavedServer(
        ProcessIdentity(1234, 5.0, 6, "b"),
        "ws://x/ws",
        tmp_path / "t",
        (ProcessIdentity(99, 1.0),),
    )
    state = SavedState(ProcessIdentity(77, 2.0), "0.1", 1, server, (("a", "c"),))
    write_state(path, state)
    assert read_state(path) == state
    assert path.stat().st_mode & 0o077 == 0
    for damage in ("", "{", "[]", '{"server": 3, "holds": [1, [2]], "keeper": {"pid": "x"}}', "\x00" * 20):
        path.write_text(damage)
        assert read_state(path) == SavedState()
    path.write_text(json.dumps({"server": {"process": {"pid": 1, "started": 0}, "url": "u"}}))
    assert read_state(path).server is None  # nobody signals process 1


@pytest.mark.skipif(os.geteuid() == 0 and not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_keeps_the_old_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "keeper.json"
    write_state(path, SavedState(version="old"))

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_state(path, SavedState(version="new"))
    assert read_state(path).version == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["keeper.json"]
