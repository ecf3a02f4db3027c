"""Disks that fail, files that are damaged, too new, or shared; processes that are killed."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from letta_tui.ledger import database, schema
from letta_tui.ledger.errors import LedgerDamaged, LedgerError, LedgerTooNew, LedgerUnwritable
from letta_tui.ledger.opening import open_database
from letta_tui.ledger.peek import last_used
from letta_tui.ledger.store import Ledger
from letta_tui.ledger.values import Anchor, Evidence
from tests.ledger.conftest import CONSENT, PLACE, FakeClock


def fill(path: Path, clock: FakeClock, count: int, size: int = 300) -> None:
    with Ledger.open(path, clock) as ledger:
        for n in range(count):
            ledger.prepare(PLACE, f"text {n} " + "x" * size, f"m{n}", anchor=Anchor("a"))
        ledger.begin_attempt("m0", request_id="r", connection_id="c1")
        ledger.save_draft("w1", PLACE, "a draft worth keeping")


def test_a_newer_file_is_refused_in_one_sentence_and_left_alone(path: Path, clock: FakeClock) -> None:
    fill(path, clock, 1)
    raw = sqlite3.connect(path)
    raw.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    raw.close()
    before = path.read_bytes()
    with pytest.raises(LedgerTooNew) as caught:
        Ledger.open(path, clock)
    assert "newer" in caught.value.words
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir() if "damaged" in p.name] == []


def test_another_programs_database_is_left_alone(path: Path, clock: FakeClock) -> None:
    path.parent.mkdir(mode=0o700)
    raw = sqlite3.connect(path)
    raw.execute("CREATE TABLE theirs (x)")
    raw.execute("PRAGMA application_id = 77")
    raw.close()
    before = path.read_bytes()
    with pytest.raises(LedgerError) as caught:
        Ledger.open(path, clock)
    assert "another program" in caught.value.words
    assert path.read_bytes() == before


def test_a_migration_keeps_every_row_and_a_copy_of_the_old_file(path: Path, clock: FakeClock) -> None:
    fill(path, clock, 5)

    def add_column(conn: sqlite3.Connection) -> None:
        conn.execute("ALTER TABLE sends ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0")

    db, opening = open_database(
        path, clock, migrations={schema.VERSION: add_column}, version=schema.VERSION + 1
    )
    db.close()
    assert opening.migrated_from == schema.VERSION
    raw = sqlite3.connect(path)
    assert raw.execute("SELECT COUNT(*), MAX(pinned) FROM sends").fetchone() == (5, 0)
    raw.close()
    copy = sqlite3.connect(path.with_name(f"ledger.sqlite3.version-{schema.VERSION}"))
    assert copy.execute("SELECT COUNT(*) FROM sends").fetchone() == (5,)
    copy.close()


def test_a_migration_that_loses_a_row_or_fails_changes_nothing(path: Path, clock: FakeClock) -> None:
    fill(path, clock, 2)
    before = path.read_bytes()

    def drop(conn: sqlite3.Connection) -> None:
        conn.execute("DELETE FROM drafts")

    with pytest.raises(AssertionError):
        open_database(path, clock, migrations={schema.VERSION: drop}, version=schema.VERSION + 1)
    assert path.read_bytes() == before
    with Ledger.open(path, clock) as ledger:
        assert len(ledger.drafts(PLACE)) == 1


@pytest.mark.parametrize(
    ("what", "least"),
    [("middle", 20), ("header", 60), ("truncated", 10), ("garbage", 0), ("table list", 60)],
)
def test_a_damaged_file_is_moved_aside_whole_and_salvaged(
    path: Path, clock: FakeClock, what: str, least: int
) -> None:
    fill(path, clock, 60)
    data = bytearray(path.read_bytes())
    if what == "middle":
        third = len(data) // 3 // 4096 * 4096
        data[third : third + 3 * 4096] = os.urandom(3 * 4096)
    elif what == "header":
        data[:100] = bytes(100)
    elif what == "truncated":
        del data[-3 * 4096 :]
    elif what == "garbage":
        data[:] = os.urandom(len(data))
    else:
        data[100:4096] = os.urandom(3996)
    path.write_bytes(data)
    with Ledger.open(path, clock) as ledger:
        salvage = ledger.opening.salvage
        assert salvage is not None
        assert salvage.reason
        assert Path(salvage.moved_to).name in salvage.words
        assert Path(salvage.moved_to).read_bytes() == bytes(data), "kept exactly as it was found"
        rescued = ledger.sends()
        assert len(rescued) >= least
        assert salvage.rows["sends"] == len(rescued)
        for send in rescued:
            assert send.salvaged
            assert send.text == f"text {send.client_message_id[1:]} " + "x" * 300
            assert "salvaged" in send.last
        waiting = [s for s in rescued if s.delivery == "prepared"]
        if waiting:
            key = waiting[0].client_message_id
            with pytest.raises(LedgerError):
                ledger.begin_attempt(key, request_id="r", connection_id="c")
            ledger.begin_attempt(key, request_id="r", connection_id="c", consent=CONSENT)
        # The new file is a full ledger, guards included.
        ledger.prepare(PLACE, "goes on", "new", anchor=None)
        with pytest.raises(LedgerError):
            ledger.move("new", "delivered", Evidence("ack"))
    with Ledger.open(path, clock) as again:
        assert again.opening.salvage is None
        assert again.send("new") is not None


def test_a_long_text_is_carved_from_its_overflow_pages(path: Path, clock: FakeClock) -> None:
    fill(path, clock, 3, size=20_000)
    data = bytearray(path.read_bytes())
    data[:100] = bytes(100)
    path.write_bytes(data)
    with Ledger.open(path, clock) as ledger:
        assert [len(s.text) for s in ledger.sends()] == [20_007] * 3


def test_a_ledger_replaced_while_open_takes_no_more_rows(path: Path, clock: FakeClock) -> None:
    fill(path, clock, 3)
    old = Ledger.open(path, clock)
    data = bytearray(path.read_bytes())
    data[:100] = bytes(100)
    damaged = path.with_name("copy")
    damaged.write_bytes(data)
    damaged.replace(path)
    with Ledger.open(path, clock) as fresh:
        assert fresh.opening.salvage is not None
        with pytest.raises(LedgerDamaged):
            old.prepare(PLACE, "would be lost", "x", anchor=None)
    old.close()


def test_a_full_disk_stops_the_send_and_keeps_the_rest(path: Path, clock: FakeClock) -> None:
    fill(path, clock, 3)
    db, opening = open_database(path, clock)
    with db.read() as conn:
        pages = conn.execute("PRAGMA page_count").fetchone()[0]
    assert db._conn is not None
    db._conn.execute(f"PRAGMA max_page_count = {pages}")
    ledger = Ledger(db, clock, opening)
    with pytest.raises(LedgerUnwritable) as caught:
        ledger.prepare(PLACE, "x" * 100_000, "big", anchor=None)
    assert "full" in caught.value.words
    assert ledger.send("big") is None
    assert len(ledger.sends()) == 3
    ledger.close()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a user whom permissions bind")
def test_a_read_only_folder_is_told_in_words(path: Path, clock: FakeClock) -> None:
    path.parent.mkdir(mode=0o500, parents=True)
    with pytest.raises(LedgerUnwritable) as caught:
        Ledger.open(path, clock)
    assert str(path) in caught.value.words


def test_a_folder_that_cannot_be_is_told_in_words(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LedgerUnwritable):
        Ledger.open(tmp_path / "file" / "ledger.sqlite3", clock)


def test_a_lock_held_too_long_is_told_in_words(path: Path, clock: FakeClock) -> None:
    fill(path, clock, 1)
    conn = database.connect(path, busy_seconds=0.05)
    ledger = Ledger(database.Database(path, conn), clock, Ledger.open(path, clock).opening)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerUnwritable) as caught:
        ledger.prepare(PLACE, "x", "late", anchor=None)
    assert "another process" in caught.value.words
    other.execute("ROLLBACK")
    other.close()
    assert ledger.prepare(PLACE, "x", "late", anchor=None).delivery == "prepared"
    ledger.close()


def test_threads_share_one_ledger(path: Path, clock: FakeClock) -> None:
    with Ledger.open(path, clock) as ledger:

        def work(name: str) -> None:
            for n in range(10):
                ledger.prepare(PLACE, "x", f"{name}{n}", anchor=None)

        threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(ledger.sends()) == 30


WRITER = """
import sys
from pathlib import Path
from letta_tui.ledger.errors import NoSuchSend, StaleAttempt
from letta_tui.ledger.store import Ledger
from letta_tui.ledger.values import Evidence, Place, Stamp
path, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
place = Place("server-a", "agent-1", "local-conv-1")
ledger = Ledger.open(path, lambda: Stamp(1.0, 1.0, "b"))
print("ready", flush=True)
sys.stdin.readline()
for n in range(count):
    ledger.prepare(place, f"text of {name} {n}", f"{name}-{n}", anchor=None)
    print(f"{name}-{n}", flush=True)
    try:
        ledger.begin_attempt(f"shared-{n}", request_id=name, connection_id=name)
        print(f"wrote shared-{n}", flush=True)
    except (StaleAttempt, NoSuchSend):
        pass
"""


def start(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_two_processes_write_at_once_and_each_attempt_is_written_by_one(path: Path, clock: FakeClock) -> None:
    count = 40
    with Ledger.open(path, clock) as ledger:
        for n in range(count):
            ledger.prepare(PLACE, "for one of them", f"shared-{n}", anchor=None)
        both = [start(path, name, count) for name in ("a", "b")]
        for process in both:
            go(process)
        lines = [line for process in both for line in process.communicate(timeout=120)[0].splitlines()]
        assert [p.returncode for p in both] == [0, 0]
        wrote = [line for line in lines if line.startswith("wrote")]
        assert sorted(wrote) == sorted(set(wrote)), "one write per attempt"
        assert len(wrote) == count
        assert len(ledger.sends()) == 3 * count
        assert all(len(s.attempts) == 1 for s in ledger.sends() if s.client_message_id.startswith("shared"))


@pytest.mark.parametrize("after", [1, 4, 9])
def test_what_a_killed_writer_acknowledged_is_there(path: Path, clock: FakeClock, after: int) -> None:
    fill(path, clock, 1)
    process = start(path, "w", 10_000)
    go(process)
    assert process.stdout is not None
    told = []
    while len(told) < after:
        line = process.stdout.readline().strip()
        told.append(line)
    process.send_signal(signal.SIGKILL)
    told += process.stdout.read().split("\n")[:-1]
    process.wait()
    process.stdout.close()
    assert last_used(path) is None, "readable at once, a journal left behind or not"
    with Ledger.open(path, clock) as ledger:
        assert ledger.opening.salvage is None
        for key in told:
            send = ledger.send(key)
            assert send is not None
            assert send.text == f"text of w {key.split('-')[1]}"


def test_export_of_a_salvaged_ledger_is_plain_json(path: Path, clock: FakeClock) -> None:
    fill(path, clock, 5)
    data = bytearray(path.read_bytes())
    data[:100] = bytes(100)
    path.write_bytes(data)
    with Ledger.open(path, clock) as ledger:
        assert json.loads(json.dumps(ledger.export()))["sends"]
