"""Starting processes that outlive this one.

Letta's server ends itself within a second of losing its parent (it looks whether its parent has become
process 1, unless it had that parent from the start). So it is started by a helper that ends at once: a
keeper that is killed leaves a server to adopt. It waits for the helper's end, since a sandbox may be told
to die with its parent. That costs the exit status, which only a parent is told.

Whoever starts it gets to write down which process it will be before it becomes the command: it waits for a
byte, and ends instead when the starter dies or fails first. So nothing runs that nobody can find again.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
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
if not os.read(0, 1):
    os._exit(125)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
try:
    os.execvp(sys.argv[1], sys.argv[1:])
except OSError as error:
    print(f"{sys.argv[1]} cannot be started: {error.strerror}.", flush=True)
    os._exit(127)
"""


def spawn_detached(
    command: Sequence[str],
    log: Path,
    environ: Mapping[str, str],
    cwd: Path | None,
    note: Callable[[ProcessIdentity], None] = lambda identity: None,
) -> ProcessIdentity | None:
    """Start a command in a session of its own, its output in ``log``; ``None`` when it ended at once.

    ``note`` writes down who it will be; the command only starts after it has returned. ``OSError`` when the
    log or the folder cannot be used, or when ``note`` raises it. Blocks for some 30 milliseconds.
    """
    log.write_bytes(b"")
    with (
        log.open("ab") as output,  # so that it can be cut while the command writes
        subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _HELPER, *command],
            env=environ,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
        ) as helper,
    ):
        assert helper.stdin is not None
        assert helper.stdout is not None
        # Its end, and with it that of the output, is when the helper is gone and the other one waits.
        answer = helper.stdout.read().strip()
        identity = identify(int(answer)) if answer.isdigit() else None
        if identity is None:
            return None
        note(identity)
        with contextlib.suppress(BrokenPipeError):
            helper.stdin.write(b"g")
            helper.stdin.flush()
    return identity
