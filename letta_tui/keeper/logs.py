"""Logs of processes that run for weeks: kept small while somebody writes to them."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

LARGEST = 8 * 1024 * 1024  # bytes, for the log and for the older part that is kept beside it


def older(log: Path) -> Path:
    """Where the older part of ``log`` is."""
    return log.with_name(f"{log.name}.1")


def rotate(log: Path) -> None:
    """Keep what is in ``log`` as its older part; whoever starts to write to it begins anew. ``OSError``."""
    if log.exists():
        log.replace(older(log))


def limit(log: Path, largest: int = LARGEST) -> bool:
    """Move what ``log`` holds to its older part if that is more than ``largest`` bytes of disk.

    The writer keeps the file open and must have opened it for appending. What it writes between the copy and
    the cut is lost. A disk too full for the copy costs the older part. Never fails.
    """
    try:
        # Blocks, not size: a writer that does not append leaves a hole where the cut-off part was.
        if log.stat().st_blocks * 512 <= largest:
            return False
    except OSError:
        return False
    try:
        with log.open("rb") as source, older(log).open("wb") as target:
            source.seek(max(0, source.seek(0, 2) - largest))
            shutil.copyfileobj(source, target)
    except OSError:
        with contextlib.suppress(OSError):
            older(log).unlink()
    with contextlib.suppress(OSError), log.open("r+b") as file:
        file.truncate(0)
    return True
