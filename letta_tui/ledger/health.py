"""What ``doctor`` says about the ledger's file: integrity, version, permissions, kind of file system."""

from __future__ import annotations

import os
import sqlite3
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from letta_tui.ledger import schema

NETWORK: Final = frozenset(
    {"nfs", "nfs3", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "afpfs", "9p", "webdav", "davfs", "ncpfs"}
    | {"fuse.sshfs", "fuse.davfs2", "fuse.rclone", "fuse.glusterfs", "ceph", "lustre", "afs", "macfuse"}
)
"""File systems on which SQLite's locks cannot be trusted."""


@dataclass(frozen=True, slots=True)
class Health:
    """``problems``: one sentence each; empty when all is well. ``version`` is ``None`` when unreadable."""

    exists: bool
    version: int | None = None
    sends: int = 0
    bytes: int = 0
    file_system: str = ""
    damaged_copies: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def check(path: Path) -> Health:
    """Look at the file without changing it. Never raises."""
    if not path.exists():
        return Health(False)
    problems: list[str] = []
    version, sends = None, 0
    try:
        conn = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)
        try:
            version = int(conn.execute("PRAGMA user_version").fetchone()[0])
            application = conn.execute("PRAGMA application_id").fetchone()[0]
            found = [str(r[0]) for r in conn.execute("PRAGMA integrity_check(5)")]
            problems += [f"The ledger is damaged: {line}" for line in found if line != "ok"]
            problems += [
                f"The ledger has a row in {r[0]} that belongs to nothing."
                for r in conn.execute("PRAGMA foreign_key_check").fetchmany(3)
            ]
            if application != schema.APPLICATION_ID:
                problems.append(f"{path} is not a ledger of letta-tui.")
            elif version > schema.VERSION:
                problems.append(
                    f"The ledger was written by a newer letta-tui (version {version}, this program knows "
                    f"{schema.VERSION})."
                )
            else:
                sends = int(conn.execute("SELECT COUNT(*) FROM sends").fetchone()[0])
        finally:
            conn.close()
    except sqlite3.Error as error:
        problems.append(f"The ledger cannot be read: {error}.")
    problems += _permissions(path)
    kind = file_system(path)
    if kind.lower() in NETWORK:
        problems.append(
            f"The ledger is on a network file system ({kind}), where locks and durable writes cannot be "
            f"trusted: set LETTA_TUI_DATA_DIR to a local folder."
        )
    copies = tuple(
        str(p) for p in sorted(path.parent.glob(f"{path.name}.damaged-*")) if not p.name.endswith("-journal")
    )
    size = path.stat().st_size if path.exists() else 0
    return Health(True, version, sends, size, kind, copies, tuple(problems))


def file_system(path: Path) -> str:
    """Name of the file system a path is on, "" when it cannot be told."""
    try:
        real = os.path.realpath(path)
        best, kind = "", ""
        for part in psutil.disk_partitions(all=True):
            mount = part.mountpoint.rstrip("/") or "/"
            inside = real == mount or real.startswith(mount if mount == "/" else mount + "/")
            if inside and len(mount) >= len(best):
                best, kind = mount, part.fstype
    except OSError:
        return ""
    return kind


def _permissions(path: Path) -> list[str]:
    if os.name != "posix":
        return []
    problems = []
    for item, word, wanted in ((path, "ledger", 0o600), (path.parent, "ledger's folder", 0o700)):
        mode = stat.S_IMODE(item.stat().st_mode)
        if mode & 0o077:
            problems.append(
                f"The {word} can be read by other users of this machine (its mode is {mode:o}, it should be "
                f"{wanted:o}): {item}"
            )
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        problems.append(f"The ledger or its folder cannot be written: {path}")
    return problems
