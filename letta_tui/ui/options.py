"""What the command line decides about the look and the manners of the view."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Theme = Literal["dark", "light", ""]


@dataclass(frozen=True, slots=True)
class ProfileChoice:
    """A profile of the config file. ``where`` is its server in a few words, ``trouble`` a sentence about
    why it cannot be used now."""

    name: str
    where: str
    current: bool = False
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class AppOptions:
    """Settings of one run of the view.

    ``theme`` is what the config file says, "": the one that goes with the terminal. ``chosen_theme`` was
    chosen in a window before and goes before it, "" for none. ``remember_theme`` stores such a choice, or
    forgets it for "", and says in one sentence why it could not; it is called from a thread. ``clock`` gives
    seconds since the epoch; tests freeze it. ``hints`` are things to try, shown while the conversation is
    empty. ``log_path`` gets tracebacks, never text of a conversation. ``on_shown`` is called once, after the
    first picture. ``profiles`` can be changed to; ``check_profile`` says, before this one is left, in one
    sentence what is wrong with another ("" when nothing is).
    """

    theme: Theme = ""
    chosen_theme: Theme = ""
    remember_theme: Callable[[Theme], str] = lambda theme: ""
    notifications: Literal["on", "bell", "off"] = "on"
    hints: tuple[str, ...] = ()
    log_path: Path | None = None
    version: str = ""
    blink: bool = True
    clock: Callable[[], float] = time.time
    on_shown: Callable[[], None] = lambda: None
    profiles: tuple[ProfileChoice, ...] = ()
    check_profile: Callable[[str], str] = lambda name: ""
