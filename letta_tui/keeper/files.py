"""The keeper's files: the lock that lets one keeper run, and the state that the next one reads."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from letta_tui.keeper.identity import ProcessIdentity


class KeeperLock:
    """An advisory lock of the operating system; it goes when the process goes, however that happens."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    def acquire(self) -> bool:
        """``False`` when another process has it. ``OSError`` when the file cannot be used at all."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        except OSError:
            os.close(fd)
            raise
        self._fd = fd
        return True

    def release(self) -> None:
        # The file stays: removing it would let two processes lock two files of one name.
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


@dataclass(frozen=True, slots=True)
class SavedServer:
    """A server that a keeper started: enough to adopt it, or to end it."""

    identity: ProcessIdentity
    url: str
    token_file: Path
    companions: tuple[ProcessIdentity, ...] = ()
    confine_agent: str = ""  # the agent whose memory is all it can write to; "" when it is not confined


@dataclass(frozen=True, slots=True)
class SavedState:
    """What a keeper leaves for others to read. ``holds``: (agent, conversation) pairs; ``busy``: those in
    which something ran or waited. ``started``: processes that are to become a server and its companions, and
    are not in ``server`` yet."""

    keeper: ProcessIdentity | None = None
    version: str = ""
    control: int = 0
    server: SavedServer | None = None
    holds: tuple[tuple[str, str], ...] = ()
    started: tuple[ProcessIdentity, ...] = ()
    busy: tuple[tuple[str, str], ...] = ()


def write_state(path: Path, state: SavedState) -> None:
    """Replace the file in one step; ``OSError`` when the disk does not take it."""
    raw: dict[str, Any] = {
        "keeper": state.keeper and state.keeper.to_json(),
        "version": state.version,
        "control": state.control,
        "holds": [list(pair) for pair in state.holds],
        "busy": [list(pair) for pair in state.busy],
        "started": [process.to_json() for process in state.started],
        "server": None,
    }
    if state.server is not None:
        raw["server"] = {
            "process": state.server.identity.to_json(),
            "url": state.server.url,
            "token_file": str(state.server.token_file),
            "confine_agent": state.server.confine_agent,
            "companions": [c.to_json() for c in state.server.companions],
        }
    write_private(path, json.dumps(raw, indent=1))


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise


def read_state(path: Path) -> SavedState:
    """The saved state; an empty one when the file is missing or makes no sense."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return SavedState()
    if not isinstance(raw, dict):
        return SavedState()
    control = raw.get("control")
    return SavedState(
        keeper=ProcessIdentity.from_json(raw.get("keeper")),
        version=str(raw.get("version", "")),
        control=control if isinstance(control, int) else 0,
        server=_server(raw.get("server")),
        holds=_pairs(raw.get("holds")),
        started=_identities(raw.get("started")),
        busy=_pairs(raw.get("busy")),
    )


def _pairs(raw: object) -> tuple[tuple[str, str], ...]:
    found = raw if isinstance(raw, list) else ()
    return tuple((str(pair[0]), str(pair[1])) for pair in found if isinstance(pair, list) and len(pair) == 2)


def _server(raw: object) -> SavedServer | None:
    if not isinstance(raw, Mapping):
        return None
    identity = ProcessIdentity.from_json(raw.get("process"))
    url, token_file = raw.get("url"), raw.get("token_file")
    if identity is None or not isinstance(url, str) or not isinstance(token_file, str):
        return None
    companions = _identities(raw.get("companions"))
    return SavedServer(identity, url, Path(token_file), companions, str(raw.get("confine_agent") or ""))


def _identities(raw: object) -> tuple[ProcessIdentity, ...]:
    found = (ProcessIdentity.from_json(each) for each in raw) if isinstance(raw, list) else ()
    return tuple(each for each in found if each is not None)
