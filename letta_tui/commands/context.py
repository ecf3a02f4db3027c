"""What nearly every command begins with: the profile, its folders, its ledger."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from letta_tui import config as configuration
from letta_tui.commands.errors import FAILED, USAGE, CommandError
from letta_tui.config import Config, ConfigError, Profile
from letta_tui.ledger.errors import LedgerError, LedgerUnwritable
from letta_tui.paths import Paths, PathsError, check_profile_name, resolve

if TYPE_CHECKING:
    from letta_tui.ledger.store import Ledger


@dataclass(frozen=True, slots=True)
class Context:
    """The profile a command works on."""

    config: Config
    profile: Profile
    paths: Paths


def load_context(args: argparse.Namespace) -> Context:
    """Read the config file and pick the profile; nothing is created."""
    try:
        if args.profile is not None:
            check_profile_name(args.profile)
        config = configuration.load(resolve().config_file)
        if args.profile == "demo" and "demo" not in config.profiles:
            profile = Profile(name="demo")  # what `letta-tui demo` used can be looked at too
        else:
            profile = config.pick(args.profile)
        return Context(config, profile, resolve(profile.name))
    except (ConfigError, PathsError) as error:
        raise CommandError(str(error), USAGE) from None


@contextmanager
def open_ledger(paths: Paths, *, to_read: bool = False) -> Iterator[Ledger | None]:
    """The profile's ledger, or ``None`` when nothing was ever sent: looking creates no file.

    ``to_read``: nothing is to be changed, so a disk that takes nothing is no reason to refuse; it is said on
    standard error.
    """
    if not _exists(paths.ledger):
        yield None
        return
    from letta_tui.ledger.store import Ledger
    from letta_tui.worker.config import Hands

    try:
        try:
            ledger = Ledger.open(paths.ledger, Hands().stamp)
        except LedgerUnwritable as error:
            if not to_read:
                raise
            ledger = Ledger.open_to_read(paths.ledger, Hands().stamp)
            print(f"letta-tui: {error.words} It is only read.", file=sys.stderr)
    except LedgerError as error:
        raise CommandError(error.words, FAILED) from None
    try:
        yield ledger
    except LedgerError as error:
        raise CommandError(error.words, FAILED) from None
    finally:
        ledger.close()


def _exists(file: Path) -> bool:
    try:
        file.stat()
    except FileNotFoundError:
        return False
    except OSError as error:  # a folder that may not be entered says nothing about what is in it
        raise CommandError(f"{file} cannot be read: {error.strerror or error}.", FAILED) from None
    return True


def age(wall: float) -> str:
    """How long ago ``wall`` (seconds since the epoch) was, in a few words."""
    seconds = max(0.0, time.time() - wall)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return "just now"
