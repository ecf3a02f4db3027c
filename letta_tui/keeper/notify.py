"""Desktop notifications for what happens while no window shows the conversation.

The program that shows them is looked for when one is due: on a machine without a desktop there is none, and
nothing happens. Text of a conversation is never in them; the name of a tool, or the words of an error, only
when that was asked for.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from letta_tui.keeper.ends import End

_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Manners:
    """``after``: turns shorter than so many seconds end quietly. ``details``: name the tool or the error."""

    on: bool = True
    after: float = 10.0
    details: bool = False


CALLS = {
    "approval": "A tool call waits for you.",
    "turn_ended": "The turn has ended.",
    "failed": "The turn failed.",
}
"""What a window may ask to be called for when nobody can see it."""


def words_for(end: End, manners: Manners) -> str:
    """What to say about ``end``; empty for nothing."""
    if not manners.on:
        return ""
    if end.kind == "approval":
        named = ", ".join(tool for tool in end.tools if tool)
        return (
            f"{named} waits for your answer." if manners.details and named else "A tool call waits for you."
        )
    if end.kind != "turn" or end.stop_reason in ("cancelled", "requires_approval"):
        return ""
    if end.stop_reason in ("end_turn", "tool_rule"):
        long = end.seconds is not None and end.seconds >= manners.after
        return "The turn has ended." if long else ""
    return f"The turn failed: {end.words}" if manners.details and end.words else "The turn failed."


def command_for(
    words: str,
    environ: Mapping[str, str],
    platform: str = sys.platform,
    which: Callable[[str], str | None] = shutil.which,
) -> list[str] | None:
    """The program that shows ``words`` on this machine; ``None`` where there is none."""
    clean = " ".join("".join(c if c.isprintable() else " " for c in words).split())[:_LONGEST]
    if platform == "darwin":
        program = which("osascript")
        script = 'on run argv\ndisplay notification (item 1 of argv) with title "letta-tui"\nend run'
        return [program, "-e", script, clean] if program else None
    if not any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS")):
        return None
    program = which("notify-send")
    return [program, "--app-name=letta-tui", "--", "letta-tui", clean] if program else None


def show(words: str, environ: Mapping[str, str]) -> None:
    """Show it if that is possible here. Never waits and never fails."""
    command = command_for(words, environ)
    if command is None:
        return
    with contextlib.suppress(OSError):
        process = subprocess.Popen(
            command,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        # Waited for, so that it does not stay behind as a zombie.
        threading.Thread(target=process.wait, daemon=True).start()
