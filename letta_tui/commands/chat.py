"""``letta-tui`` itself: the chat."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from letta_tui import __version__
from letta_tui.commands.context import load_context
from letta_tui.commands.crash import log_to
from letta_tui.commands.errors import USAGE, CommandError
from letta_tui.commands.wiring import need_letta, worker_config
from letta_tui.paths import Paths
from letta_tui.worker.config import WorkerConfig


def run(args: argparse.Namespace) -> int:
    need_terminal()
    context = load_context(args)
    config = worker_config(args, context)
    if config.endpoint is None:
        need_letta(context)
    return show(config, context.paths)


def need_terminal() -> None:
    """Refuse to draw into a file or pipe."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandError(
            "The chat needs a terminal for input and output; `letta-tui send` works without one.", USAGE
        )
    if os.environ.get("TERM", "") == "dumb":
        raise CommandError(
            "This terminal (TERM=dumb) cannot place text; `letta-tui send` works in it.", USAGE
        )


def show(config: WorkerConfig, paths: Paths, hints: Sequence[str] = ()) -> int:
    """Start the worker, draw until the person leaves, and return the exit code."""
    from letta_tui.worker.worker import Worker

    log_to(paths.log)
    worker = Worker(config)
    worker.start()  # connects while the view is still being imported
    from letta_tui.ui.app import LettaTuiApp
    from letta_tui.ui.options import AppOptions

    app = LettaTuiApp(worker, AppOptions(hints=tuple(hints), log_path=paths.log, version=__version__))
    try:
        app.run()
    finally:
        worker.stop()
    return app.return_code or 0
