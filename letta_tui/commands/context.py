"""What nearly every command begins with: the profile, its folders, its ledger."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from letta_tui import config as configuration
from letta_tui.commands.errors import FAILED, USAGE, CommandError
from letta_tui.config import Config, ConfigError, Profile
from letta_tui.ledger.errors import LedgerError
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
def open_ledger(paths: Paths) -> Iterator[Ledger | None]:
    """The profile's ledger, or ``None`` when nothing was ever sent: looking creates no file."""
    if not paths.ledger.exists():
        yield None
        return
    from letta_tui.ledger.store import Ledger
    from letta_tui.worker.config import Hands

    try:
        ledger = Ledger.open(paths.ledger, Hands().stamp)
    except LedgerError as error:
        raise CommandError(error.words, FAILED) from None
    try:
        yield ledger
    except LedgerError as error:
        raise CommandError(error.words, FAILED) from None
    finally:
        ledger.close()


def age(wall: float) -> str:
    """How long ago ``wall`` (seconds since the epoch) was, in a few words."""
    seconds = max(0.0, time.time() - wall)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return "just now"
