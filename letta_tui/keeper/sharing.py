"""Looking at processes: whether another Letta program works on the data folder of our server, and which
environment ours has.

The local backend keeps conversations in files that each program reads when it starts: what one does is not
seen by another that runs beside it, and both write.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import psutil

from letta_tui.keeper.identity import ProcessIdentity

_PROGRAMS = ("letta.js", "letta")


def data_folder(environ: Mapping[str, str]) -> Path:
    """Where the local backend of a program with this environment keeps its data."""
    named = environ.get("LETTA_LOCAL_BACKEND_DIR")
    home = Path(environ.get("HOME") or Path.home())
    return Path(os.path.realpath(named or home / ".letta" / "lc-local-backend"))


def set_otherwise(pid: int, wanted: Mapping[str, str]) -> tuple[str, ...] | None:
    """The names in ``wanted`` that the process has with another value or not at all; ``None`` when it cannot
    be looked at."""
    try:
        actual = psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return None
    return tuple(sorted(name for name, value in wanted.items() if actual.get(name) != value))


def is_letta(command: Iterable[str]) -> bool:
    """Whether a command line is Letta's program (or its wrapper), by the name of what is run."""
    words = [Path(word).name for word in list(command)[:2]]
    return any(word in _PROGRAMS for word in words)


def others(environ: Mapping[str, str], own: ProcessIdentity) -> list[int]:
    """Process ids of this user's other Letta programs on the same data folder, oldest first.

    Below each other they count once: the wheel's script starts Node. What may not be looked at is left out.
    """
    folder = data_folder(environ)
    found: dict[int, tuple[float, int]] = {}
    for process in psutil.process_iter():
        try:
            if not is_letta(process.cmdline()) or process.status() == psutil.STATUS_ZOMBIE:
                continue
            if data_folder(process.environ()) == folder:
                found[process.pid] = (process.create_time(), process.ppid())
        except (psutil.Error, OSError):
            continue
    ours = {own.pid}
    for pid in sorted(found, key=lambda pid: found[pid]):
        if found[pid][1] in ours:
            ours.add(pid)
    roots = [pid for pid in found if pid not in ours and found[pid][1] not in found]
    return sorted(roots, key=lambda pid: found[pid])


def words_about(pids: list[int], folder: Path) -> str:
    """One or two sentences; empty when nobody shares it."""
    if not pids:
        return ""
    who = f"process {pids[0]}" if len(pids) == 1 else f"processes {', '.join(map(str, pids[:4]))}"
    verb = "uses" if len(pids) == 1 else "use"
    return (
        f"Another Letta program ({who}) {verb} the same data folder, {folder}. Neither sees what the other"
        " does until it starts anew: do not use one conversation in both."
    )
