"""P1: what was acknowledged survives a power cut at any moment."""

from __future__ import annotations

import random
from pathlib import Path
from typing import cast

import pytest

from letta_tui.ledger import schema
from letta_tui.ledger.database import SYNCHRONOUS, Database, make_private
from letta_tui.ledger.store import Ledger
from letta_tui.ledger.values import Evidence, Opening
from tests.ledger.conftest import PLACE, FakeClock

apsw = pytest.importorskip("apsw")
from tests.ledger.power import Connection, Log, RecordingVFS, image  # noqa: E402

IMAGES = 150


def record(path: Path, clock: FakeClock, synchronous: str) -> Log:
    """Some sends, with the moments at which each commit was reported as done."""
    import sqlite3

    log = Log()
    vfs = RecordingVFS(f"recording-{synchronous}", log)
    make_private(path)
    conn = Connection(path, f"recording-{synchronous}")
    conn.execute(f"PRAGMA synchronous = {synchronous}")
    conn.execute("PRAGMA foreign_keys = ON")
    conn.execute("PRAGMA secure_delete = ON")
    conn.execute("PRAGMA journal_mode = DELETE")
    raw = cast(sqlite3.Connection, conn)
    raw.execute("BEGIN IMMEDIATE")
    schema.create(raw)
    raw.execute("COMMIT")
    log.told("created")
    ledger = Ledger(Database(path, raw), clock, Opening())
    for n in range(8):
        key = f"m{n}"
        ledger.prepare(PLACE, f"text {n} " + "x" * 700 * n, key, anchor=None)
        log.told(key)
        ledger.begin_attempt(key, request_id="r", connection_id="c")
        log.told(f"{key}:unconfirmed")
        if n % 2:
            ledger.observe(key, Evidence("history_row"))
            log.told(f"{key}:delivered")
        if n == 5:
            ledger.redact("m1")
    ledger.close()
    vfs.unregister()
    return log


def losses(path: Path, clock: FakeClock, folder: Path, synchronous: str, images: int) -> list[str]:
    log = record(path, clock, synchronous)
    luck = random.Random(7)
    created = log.ops.index(("told", "created"))
    found: list[str] = []
    rank = {"prepared": 0, "unconfirmed": 1, "delivered": 2}
    for number in range(images):
        files, told = image(log, luck.randrange(created + 1, len(log.ops) + 1), luck)
        where = folder / f"{number}"
        where.mkdir(mode=0o700)
        for name, content in files.items():
            (where / name).write_bytes(content)
        with Ledger.open(where / path.name, clock) as ledger:
            if ledger.opening.salvage is not None:
                found.append(f"image {number}: damaged")
                continue
            for entry in told[1:]:
                key, _, state = entry.partition(":")
                send = ledger.send(key)
                if send is None or rank[send.delivery] < rank[state or "prepared"]:
                    found.append(f"image {number}: {entry} is not there")
    return found


def test_no_acknowledged_commit_is_lost(
    path: Path, clock: FakeClock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = losses(path, clock, tmp_path, SYNCHRONOUS, IMAGES)
    with capsys.disabled():
        print(f"\npower cut: {IMAGES} images, {len(found)} losses")
    assert found == []


def test_the_images_can_tell_a_careless_setting(path: Path, clock: FakeClock, tmp_path: Path) -> None:
    assert losses(path, clock, tmp_path, "OFF", 30)
