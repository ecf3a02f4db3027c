"""What ``doctor`` says of the session: whether logging out ends turns, whether tmux lets calls through."""

from __future__ import annotations

import configparser
import getpass
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from letta_tui.commands.checks import Check

_LOGIND = (Path("/usr/lib/systemd"), Path("/run/systemd"), Path("/etc/systemd"))
_SYSTEMD = Path("/run/systemd/system")  # there when systemd is what runs the system
_YES = ("1", "yes", "y", "true", "t", "on")
_SECONDS = 5.0


def check_logout(
    folders: Iterable[Path] = _LOGIND, systemd: Path = _SYSTEMD, user: str | None = None
) -> Check:
    """Where logging out ends all processes of a user, a keeper must be a service to outlive it.

    ``folders``: where ``logind.conf`` and its drop-ins may be, the one that counts most last.
    """
    if not systemd.exists():
        return Check("logout", "ok", "No systemd here: what runs in the background outlives a logout.")
    settings: dict[str, str] = {}
    for folder in folders:
        for file in (folder / "logind.conf", *sorted((folder / "logind.conf.d").glob("*.conf"))):
            settings.update(_login_section(file))
    if settings.get("killuserprocesses", "no").lower() not in _YES:
        return Check("logout", "ok", "The keeper outlives a logout.")
    name = user or _user()
    if name in settings.get("killexcludeusers", "root").split():
        return Check("logout", "ok", f"The keeper outlives a logout: {name} is spared.")
    return Check(
        "logout",
        "warn",
        "Logging out ends every process of yours, the keeper and its turns too (KillUserProcesses=yes).",
        'loginctl enable-linger, and run letta-tui keep as a service: README, "Being away".',
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no name for the user id
        return ""


def _login_section(file: Path) -> Mapping[str, str]:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    try:
        parser.read_string(file.read_text(encoding="utf-8", errors="replace"))
    except (OSError, configparser.Error):
        return {}
    return dict(parser["Login"]) if parser.has_section("Login") else {}


def check_calls(environ: Mapping[str, str], option: Callable[[str], str] | None = None) -> Check:
    """Whether a window can know that nobody looks at it, and call. ``option`` asks tmux for a setting."""
    if not environ.get("TMUX"):
        return Check("calls", "ok", "The terminal is told of approvals and long turns while nobody looks.")
    ask = option or _tmux_option
    if ask("focus-events") == "off":
        words = "tmux does not tell a window that nobody looks at it, so it does not call you."
        return Check("calls", "warn", words, "tmux set -g focus-events on  (in ~/.tmux.conf: without tmux)")
    if ask("allow-passthrough") == "off":
        words = "Inside tmux a window only rings the bell."
        return Check("calls", "ok", words, "For a notification: tmux set -g allow-passthrough on")
    return Check("calls", "ok", "tmux passes on that a window calls you.")


def _tmux_option(name: str) -> str:
    try:
        done = subprocess.run(
            ["tmux", "show-options", "-gv", name],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
