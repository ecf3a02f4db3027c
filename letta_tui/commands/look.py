"""The colours that were chosen with ``/theme``, remembered for the next start.

They stand in one file for all profiles: eyes and terminal stay the same. The later word counts: what the
config file said at the time of the choice is stored with it, and as soon as it says something else, it wins.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from letta_tui.ui.options import Theme

_THEMES: dict[str, Theme] = {"dark": "dark", "light": "light"}


def chosen_theme(file: Path, configured: Theme) -> Theme:
    """The colours chosen before, "" for none. ``configured``: what the config file says now, "" for nothing.

    A file that cannot be read or understood counts as none: it holds nothing that would be missed.
    """
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return ""
    if not isinstance(raw, dict):
        return ""
    if configured and raw.get("instead_of") != configured:
        return ""
    theme = raw.get("theme")
    return _THEMES.get(theme, "") if isinstance(theme, str) else ""


def remember_theme(file: Path, theme: Theme, configured: Theme) -> str:
    """Store the choice, or forget it for "". Returns one sentence when that is not possible, else ""."""
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        if not theme:
            file.unlink(missing_ok=True)
            return ""
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.write_text(json.dumps({"theme": theme, "instead_of": configured}), encoding="ascii")
        draft.replace(file)
    except OSError as error:
        return f"The colours are for this window alone, {file} cannot be written: {error.strerror or error}."
    return ""
