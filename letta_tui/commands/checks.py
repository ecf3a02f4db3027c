"""What ``doctor`` looks at. Every check gives a verdict, what it saw, and what to do about it."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from letta_tui import __version__
from letta_tui.commands.keeper import ask_status
from letta_tui.commands.wiring import keeper_paths
from letta_tui.config import Profile
from letta_tui.keeper.client import KeeperError
from letta_tui.keeper.program import NoProgram, find_letta
from letta_tui.ledger.peek import examine
from letta_tui.paths import Paths
from letta_tui.transport.client import Client
from letta_tui.transport.connect import open_connection
from letta_tui.transport.connection import TransportError
from letta_tui.transport.credentials import token_file_advice
from letta_tui.transport.discovery import identify
from letta_tui.transport.endpoint import Endpoint
from letta_tui.transport.environments import Environments

Verdict = Literal["ok", "warn", "fail"]

TESTED_SERVER = "0.34.12"
_NETWORK = re.compile(
    r"^(nfs\d?|cifs|smb\w*|afs|9p|ncpfs|lustre|ceph|glusterfs|fuse\.(sshfs|s3fs|rclone|gvfsd.*))$"
)
_LEAST_FREE = 200 * 1024 * 1024  # bytes
_LEAST_AT_ALL = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Check:
    """``advice`` is what to do; empty when there is nothing to do."""

    name: str
    verdict: Verdict
    words: str
    advice: str = ""


def check_python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    return Check("python", "ok", f"Python {version}, letta-tui {__version__}")


def check_packages() -> Check:
    try:
        textual = importlib.metadata.version("textual")
        sockets = importlib.metadata.version("websockets")
    except importlib.metadata.PackageNotFoundError as error:
        return Check("packages", "fail", f"The package {error.name} is missing.", "Install letta-tui again.")
    words = f"Textual {textual}, websockets {sockets}, SQLite {sqlite3.sqlite_version}"
    if not textual.startswith("8."):
        return Check("packages", "warn", words, "Textual 8 is what this version was tested with.")
    return Check("packages", "ok", words)


def check_letta(profile: Profile, environ: Mapping[str, str]) -> Check:
    """The ``letta`` program, which only an embedded server needs."""
    needed = profile.kind == "embedded"
    try:
        command = find_letta(profile.letta, environ)
    except NoProgram as error:
        return Check("letta", "fail" if needed else "ok", str(error), "" if not needed else _GET_LETTA)
    shown = " ".join(command)
    try:
        done = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return Check("letta", "fail" if needed else "warn", f"{shown} cannot be run.", _GET_LETTA)
    found = re.search(r"\d+\.\d+\.\d+", done.stdout + done.stderr)
    if done.returncode != 0 or not found:
        return Check("letta", "fail" if needed else "warn", f"{shown} does not tell its version.", _GET_LETTA)
    if found[0] != TESTED_SERVER:
        advice = f"Tested is {TESTED_SERVER}: with another one nothing is re-sent without asking."
        return Check("letta", "warn", f"{shown}, version {found[0]}", advice)
    return Check("letta", "ok", f"{shown}, version {found[0]}")


_GET_LETTA = "pip install 'letta-tui[server]', or name one in LETTA_CLI_PATH, or use --url."


def check_folder(paths: Paths) -> Check:
    """The folder of the ledger: private, writable, on a disk of this machine, with room."""
    folder = paths.data
    if not folder.exists():
        parent = next((p for p in folder.parents if p.exists()), Path("/"))
        if not os.access(parent, os.W_OK):
            return Check("data folder", "fail", f"{parent} cannot be written.", "Set LETTA_TUI_DATA_DIR.")
        return Check("data folder", "ok", f"{folder}, not made yet")
    info = folder.stat()
    if hasattr(os, "getuid") and info.st_uid != os.getuid():
        return Check(
            "data folder", "fail", f"{folder} belongs to another user.", f"chown it, or remove {folder}."
        )
    if hasattr(os, "statvfs") and os.statvfs(folder).f_flag & os.ST_RDONLY:
        return Check(
            "data folder",
            "fail",
            f"{folder} is on a read-only file system.",
            "Make it writable, or set LETTA_TUI_DATA_DIR.",
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        return Check("data folder", "fail", f"{folder} cannot be written.", f"chmod 700 {folder}")
    if stat.S_IMODE(info.st_mode) & 0o077:
        return Check("data folder", "warn", f"Others can enter {folder}.", f"chmod 700 {folder}")
    kind = file_system(folder)
    if kind and _NETWORK.match(kind):
        advice = "Locks on network file systems cannot be trusted: set LETTA_TUI_DATA_DIR to a local disk."
        return Check("data folder", "warn", f"{folder} is on {kind}.", advice)
    free = shutil.disk_usage(folder).free
    if free < _LEAST_FREE:
        verdict: Verdict = "fail" if free < _LEAST_AT_ALL else "warn"
        return Check(
            "data folder", verdict, f"{free // 2**20} MiB free in {folder}.", "Make room on the disk."
        )
    return Check("data folder", "ok", f"{folder}" + (f" ({kind})" if kind else ""))


def file_system(folder: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """The type of the file system ``folder`` is on, "" where the system does not say."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
        wanted = folder.resolve()
    except OSError:
        return ""
    best, kind = -1, ""
    for line in lines:
        fields = line.split()
        if len(fields) < 3:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), fields[1]))
        if wanted.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[2]
    return kind


def check_ledger(paths: Paths) -> Check:
    if not paths.ledger.exists():
        return Check("ledger", "ok", "No message has been sent yet.")
    health = examine(paths.ledger)
    if health.problem:
        return Check(
            "ledger", "fail", health.problem, "Start letta-tui: it keeps the file and saves what it can."
        )
    if stat.S_IMODE(paths.ledger.stat().st_mode) & 0o077:
        return Check("ledger", "warn", f"Others can read {paths.ledger}.", f"chmod 600 {paths.ledger}")
    size = f"{health.bytes / 2**20:.1f} MiB"
    return Check("ledger", "ok", f"Sound: {health.sends} messages, {size}, schema version {health.version}")


def check_keeper(paths: Paths) -> Check:
    try:
        status = asyncio.run(ask_status(keeper_paths(paths)))
    except KeeperError as error:
        return Check("keeper", "warn", str(error), "letta-tui keeper stop")
    if status is None:
        return Check("keeper", "ok", "Not running; it starts when it is needed.")
    words = f"Process {status.pid}, version {status.version}, server {status.server}"
    if status.words:
        words += f": {status.words}"
    if status.server == "failed":
        return Check("keeper", "fail", words, "letta-tui keeper stop, then start again.")
    if status.version != __version__:
        advice = "An older keeper is replaced by the next window that is opened while no turn runs."
        return Check("keeper", "warn", words, advice)
    return Check("keeper", "ok", words)


def check_endpoint(endpoint: Endpoint | None) -> Check:
    """Connect to a server that somebody else runs, and ask who it is."""
    if endpoint is None:
        return Check("server", "ok", "Embedded: started by the keeper when it is needed.")
    if endpoint.kind == "hosted":
        return _check_hosted(endpoint)
    try:
        version = asyncio.run(_ask_version(endpoint))
    except TransportError as error:
        return Check("server", "fail", error.words, "Check address, token and network.")
    advice = token_file_advice(endpoint.token_file) if endpoint.token_file else None
    if advice:
        return Check("server", "warn", f"{endpoint.shown}, Letta Code {version}", advice)
    if version != TESTED_SERVER:
        words = f"Tested is {TESTED_SERVER}: with another one nothing is re-sent without asking."
        return Check(
            "server", "warn", f"{endpoint.shown}, Letta Code {version or 'of unknown version'}", words
        )
    return Check("server", "ok", f"{endpoint.shown}, Letta Code {version}")


def _check_hosted(endpoint: Endpoint) -> Check:
    """A connection is for one conversation there, so only the service itself is asked."""
    try:
        machines = asyncio.run(Environments(endpoint).list())
    except TransportError as error:
        return Check("server", "fail", error.words, "Check address, key and network.")
    now = time.time()
    online = [row for row in machines if row.online(now)]
    words = f"{endpoint.shown}: {len(machines)} machines, {len(online)} online"
    if endpoint.device_id and all(row.device_id != endpoint.device_id for row in online):
        return Check("server", "warn", f"{words}; the profile's is not.", "Start Letta Code on it.")
    return Check("server", "ok", words)


async def _ask_version(endpoint: Endpoint) -> str:
    client = Client(await open_connection(endpoint))
    try:
        return (await identify(client)).letta_code_version
    finally:
        await client.close()


def check_terminal(environ: Mapping[str, str], size: tuple[int, int] | None, encoding: str) -> Check:
    """``size`` is (columns, lines), ``None`` when standard output is no terminal."""
    if size is None:
        return Check("terminal", "ok", "Standard output is no terminal; not checked.")
    term = environ.get("TERM", "")
    colours = (
        "true colour" if environ.get("COLORTERM", "") in ("truecolor", "24bit") else "256 colours or fewer"
    )
    inside = " inside tmux" if environ.get("TMUX") else " inside screen" if environ.get("STY") else ""
    words = f"{term or 'unknown'}{inside}, {size[0]}x{size[1]}, {colours}, {encoding}"
    if term in ("", "dumb"):
        return Check("terminal", "fail", words, "Set TERM, for instance to xterm-256color.")
    if encoding.lower().replace("-", "") != "utf8":
        return Check("terminal", "warn", words, "Set a UTF-8 locale: LANG=C.UTF-8.")
    if size[0] < 80 or size[1] < 24:
        return Check("terminal", "warn", words, "80 columns and 24 lines are the least that is comfortable.")
    return Check("terminal", "ok", words)
