"""A ledger on a disk that takes nothing can still be read, and stays as it is."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from letta_tui.ledger import reading, schema
from letta_tui.ledger.database import connect
from letta_tui.ledger.errors import LedgerDamaged, LedgerError, LedgerTooNew, LedgerUnwritable
from letta_tui.ledger.store import Ledger
from tests.ledger.conftest import PLACE, FakeClock
from tests.ledger.test_damage import fill


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_everything_can_be_read_and_nothing_is_touched(path: Path, clock: FakeClock) -> None:
    fill(path, clock, 3)
    before = contents(path.parent)
    with Ledger.open_to_read(path, clock) as ledger:
        assert [send.client_message_id for send in ledger.sends()] == ["m0", "m1", "m2"]
        assert ledger.export()["sends"]
        with pytest.raises(LedgerUnwritable):
            ledger.prepare(PLACE, "new", "m3", anchor=None)
        assert len(ledger.sends()) == 3
    assert contents(path.parent) == before


def test_what_a_killed_writer_had_not_committed_is_not_shown(path: Path, clock: FakeClock) -> None:
    fill(path, clock, 30)
    killed = path.parent / "killed.sqlite3"
    writer = connect(path)
    writer.execute("PRAGMA cache_size = 1")
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE drafts SET text = 'half of a change'")
    for n in range(50):  # more than it keeps in memory
        writer.execute("INSERT INTO settings VALUES (?, ?)", (f"s{n}", f'"{"x" * 3000}"'))
    shutil.copyfile(path, killed)  # as they lie there when it is killed now
    shutil.copyfile(f"{path}-journal", f"{killed}-journal")
    writer.execute("ROLLBACK")
    writer.close()
    assert b"half of a change" in killed.read_bytes()
    before = contents(path.parent)
    with Ledger.open_to_read(killed, clock) as ledger:
        assert [draft.text for draft in ledger.drafts(PLACE)] == ["a draft worth keeping"]
        assert ledger.setting("s0") is None
    assert contents(path.parent) == before


def test_reading_beside_a_writer_waits_for_it_or_says_so(path: Path, clock: FakeClock) -> None:
    fill(path, clock, 1)
    writer = connect(path)
    writer.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LedgerUnwritable, match="in use by another process"):
        reading.open_to_read(path, busy_seconds=0.01)
    writer.execute("ROLLBACK")
    writer.close()


def test_an_older_file_is_brought_up_to_date_in_memory_alone(path: Path, clock: FakeClock) -> None:
    fill(path, clock, 2)
    raw = connect(path)
    raw.execute("DROP TABLE tool_calls")
    raw.execute("PRAGMA user_version = 1")
    raw.close()
    before = contents(path.parent)
    with Ledger.open_to_read(path, clock) as ledger:
        assert len(ledger.sends()) == 2
        assert ledger.tool_calls(PLACE) == ()
    assert contents(path.parent) == before


def test_a_file_nobody_wrote_to_yet_is_empty(path: Path, clock: FakeClock) -> None:
    path.parent.mkdir()
    path.touch()
    with Ledger.open_to_read(path, clock) as ledger:
        assert ledger.sends() == ()
    assert path.read_bytes() == b""


@pytest.mark.parametrize("how", ["newer", "theirs", "damaged", "missing"])
def test_what_cannot_be_read_is_told_in_words(path: Path, clock: FakeClock, how: str) -> None:
    fill(path, clock, 30)
    raw = sqlite3.connect(path)
    expected: type[LedgerError] = LedgerError
    if how == "newer":
        raw.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
        expected = LedgerTooNew
    elif how == "theirs":
        raw.execute("PRAGMA application_id = 77")
    raw.close()
    if how == "damaged":
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * 12_000)
        expected = LedgerDamaged
    elif how == "missing":
        path.unlink()
    with pytest.raises(expected) as caught:
        Ledger.open_to_read(path, clock)
    assert str(path) in caught.value.words or how == "newer"
