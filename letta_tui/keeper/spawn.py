"""Starting processes that outlive this one.

Letta's server ends itself within a second of losing its parent (it looks whether its parent has become
process 1, unless it had that parent from the start). So it is started by a helper that ends at once: a
keeper that is killed leaves a server to adopt. It waits for the helper's end, since a sandbox may be told
to die with its parent. That costs the exit status, which only a parent is told.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from letta_tui.keeper.identity import ProcessIdentity, identify

# Standard output is the pipe the id goes to, standard error the log, which the command gets for both.
_HELPER = """
import os, sys, time
parent = os.getpid()
pid = os.fork()
if pid:
    print(pid, flush=True)
    os._exit(0)
os.setsid()
while os.getppid() == parent:
    time.sleep(0.001)
os.dup2(2, 1)
try:
    os.execvp(sys.argv[1], sys.argv[1:])
except OSError as error:
    print(f"{sys.argv[1]} cannot be started: {error.strerror}.", flush=True)
    os._exit(127)
"""


def spawn_detached(
    command: Sequence[str], log: Path, environ: Mapping[str, str], cwd: Path | None
) -> ProcessIdentity | None:
    """Start a command in a session of its own, its output in ``log``; ``None`` when it ended at once.

    ``OSError`` when the log or the folder cannot be used. Blocks for some 30 milliseconds.
    """
    with log.open("wb") as output:
        helper = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _HELPER, *command],
            env=environ,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=output,
            check=False,
        )
    answer = helper.stdout.strip()
    return identify(int(answer)) if answer.isdigit() else None
