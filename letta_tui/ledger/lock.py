"""A lock between processes for the rare moments when the ledger's file itself is replaced."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from letta_tui.ledger.errors import LedgerUnwritable


@contextmanager
def replacing(path: Path, seconds: float = 30.0) -> Iterator[None]:
    """Hold ``path`` + ".lock". The system drops it when its holder dies. Raises ``LedgerUnwritable``."""
    name = path.with_name(path.name + ".lock")
    try:
        handle = os.open(name, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        why = error.strerror or str(error)
        raise LedgerUnwritable(f"The ledger's folder cannot be written: {why} ({name}).") from error
    try:
        deadline = time.monotonic() + seconds
        while not _try(handle):
            if time.monotonic() > deadline:
                raise LedgerUnwritable(f"Another process has been opening the ledger for too long ({path}).")
            time.sleep(0.02)
        yield
    finally:
        os.close(handle)


if sys.platform == "win32":  # pragma: no cover
    import msvcrt

    def _try(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
