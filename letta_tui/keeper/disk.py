"""Whether a disk is too full for a server: it would come to listen, and end at the first thing it stores."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

LEAST = 1024 * 1024  # bytes


def words_if_full(folders: Iterable[Path], least: int = LEAST) -> str:
    """One sentence about the first folder whose disk has no room left; "" when all have."""
    for folder in folders:
        there = next((each for each in (folder, *folder.parents) if each.exists()), None)
        try:
            if there is not None and shutil.disk_usage(there).free < least:
                return f"The disk is full: make room for {folder}."
        except OSError:
            continue
    return ""
