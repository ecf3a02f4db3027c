"""``python -m letta_tui.keeper STATE RUNTIME``: the process that ``ensure_keeper`` starts.

Options come as JSON on standard input. One line of JSON goes to standard output: ``{"ready": true}``,
``{"running": true}`` when another keeper was first, or ``{"error": "one sentence"}``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from pathlib import Path

from letta_tui.keeper.errors import AlreadyRunning, CannotRun
from letta_tui.keeper.options import KeeperOptions, KeeperPaths
from letta_tui.keeper.process import Keeper


def _tell(**message: object) -> None:
    """Say the one line and let go of the pipe, so that nobody waits for more and nothing breaks with it."""
    with contextlib.suppress(OSError):
        print(json.dumps(message), flush=True)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.close(quiet)


def _log(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def main() -> int:
    paths = KeeperPaths(Path(sys.argv[1]), Path(sys.argv[2]))
    options = KeeperOptions.from_json(sys.stdin.read())
    os.chdir("/")  # whatever folder it was started in may be removed or unmounted
    try:
        keeper = Keeper(paths, options, os.environ, say=_log)
        asyncio.run(keeper.run(ready=lambda: _tell(ready=True)))
    except AlreadyRunning:
        _tell(running=True)
    except CannotRun as error:
        _tell(error=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
