"""``letta-tui`` itself: the chat."""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from letta_tui import __version__
from letta_tui.commands.context import Context, load_context
from letta_tui.commands.crash import log_to
from letta_tui.commands.errors import USAGE, CommandError
from letta_tui.commands.look import chosen_theme, remember_theme
from letta_tui.commands.options import DEFAULTS
from letta_tui.commands.wiring import key_trouble, need_letta, worker_config
from letta_tui.config import Profile
from letta_tui.paths import DEFAULT_PROFILE, Paths, PathsError
from letta_tui.transport.credentials import missing_key
from letta_tui.worker.config import WorkerConfig

if TYPE_CHECKING:
    from textual.app import App

    from letta_tui.ui.options import Theme
    from letta_tui.worker.worker import Worker

_LEAVE_SECONDS = 5.0
COLLECT = (2_000, 10, 50)
"""Garbage is looked for less often than Python does it: each time nothing is drawn meanwhile."""
SWITCH = 0.001
"""Seconds after which a thread gives way to another; five times that, Python's own, is a third of a picture,
and a key passes through three threads: the one that reads, the one that draws, the one that writes."""


def run(args: argparse.Namespace) -> int:
    need_terminal()
    while True:
        context, config = ready(args)
        choices = Choices(profile_choices(context), partial(wrong_with, args), context.profile.theme)
        code, following = draw(config, context.paths, choices=choices)
        if not following:
            return code
        args = with_profile(args, following)


def ready(args: argparse.Namespace) -> tuple[Context, WorkerConfig]:
    """Everything a worker needs, or ``CommandError``."""
    context = load_context(args)
    config = worker_config(args, context)
    if config.endpoint is None:
        need_letta(context)
    return context, config


@dataclass(frozen=True, slots=True)
class Choices:
    """The profiles one can change to, what says in a sentence why one of them cannot be used now, and the
    colours."""

    profiles: tuple[Profile, ...] = ()
    wrong_with: Callable[[str], str] = lambda name: ""
    theme: Theme = ""


def profile_choices(context: Context) -> tuple[Profile, ...]:
    known = {DEFAULT_PROFILE: Profile(), **context.config.profiles}
    known.setdefault(context.profile.name, context.profile)
    return tuple(known.values())


def with_profile(args: argparse.Namespace, name: str) -> argparse.Namespace:
    """The command line as if only the profile had been named: the rest belonged to the one before."""
    kept = {**vars(args), **DEFAULTS, "profile": name}
    return argparse.Namespace(**kept)


def wrong_with(args: argparse.Namespace, name: str) -> str:
    """One sentence about why the profile ``name`` cannot be used, or ""."""
    try:
        context, config = ready(with_profile(args, name))
        if config.endpoint is not None and (trouble := missing_key(config.endpoint)):
            return f"Profile {context.profile.name} cannot be used: {trouble}"
    except (CommandError, PathsError) as error:
        return str(error)
    return ""


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
    return draw(config, paths, hints)[0]


def draw(
    config: WorkerConfig, paths: Paths, hints: Sequence[str] = (), choices: Choices | None = None
) -> tuple[int, str]:
    """The same; also the name of the profile that was chosen to go on with, "" for none."""
    choices = choices or Choices()
    gc.disable()  # a sixth of the time to the first picture
    from letta_tui.worker.worker import Worker

    log_to(paths.log)
    worker = Worker(config)
    from letta_tui.ui.app import LettaTuiApp
    from letta_tui.ui.options import AppOptions, ProfileChoice

    app = LettaTuiApp(
        worker,
        AppOptions(
            theme=choices.theme,
            chosen_theme=chosen_theme(paths.look, choices.theme),
            remember_theme=lambda theme: remember_theme(paths.look, theme, choices.theme),
            hints=tuple(hints),
            notifications=config.notifications,
            log_path=paths.log,
            version=__version__,
            on_shown=lambda: _drawn(worker),
            profiles=tuple(
                ProfileChoice(each.name, each.where, each.name == paths.profile, key_trouble(each))
                for each in choices.profiles
            ),
            check_profile=choices.wrong_with,
        ),
    )
    ended_by: list[int] = []

    def told_to_end(number: int, frame: object) -> None:
        """A closed terminal or a shutdown: leave in order, keeping what runs, and give the terminal back."""
        if ended_by:
            return
        ended_by.append(number)
        # From a thread: the loop of the view may be asleep in the very call this signal interrupted.
        threading.Thread(target=_leave, args=(app, 128 + number), daemon=True).start()

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, told_to_end)
    try:
        app.run()
    except OSError:
        if not ended_by:  # else there is no terminal any more that could be restored
            raise
    finally:
        worker.stop()
    if ended_by:
        if ended_by[0] == signal.SIGHUP:
            _let_go()
        return 128 + ended_by[0], ""
    return app.return_code or 0, app.next_profile


def _let_go() -> None:
    """Nothing more can be written to a terminal that hung up; Python would fail on what is left to flush."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nowhere, number)
    os.close(nowhere)


def _drawn(worker: Worker) -> None:
    """After the first picture.

    The worker starts no earlier: two threads that load and compute share one interpreter, and the one that
    draws would wait. What is typed meanwhile waits in the worker's inbox.
    """
    keys_first()
    worker.start()


def keys_first() -> None:
    """Have Python itself make no key wait long, from here on."""
    gc.freeze()  # modules and widgets stay; looking through them again and again would take its time
    gc.set_threshold(*COLLECT)
    gc.enable()
    sys.setswitchinterval(SWITCH)


def _leave(app: App[int], code: int) -> None:
    """End the view; a terminal that takes no more output must not keep the process alive."""
    with contextlib.suppress(Exception):
        app.call_from_thread(app.exit, None, code)
    time.sleep(_LEAVE_SECONDS)
    os._exit(code)
