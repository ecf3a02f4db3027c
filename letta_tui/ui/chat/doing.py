"""What the agent is doing, in words that are true with a connection and without one. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from letta_tui.seam.state import Activity, Phase

LINKED: tuple[Phase, ...] = ("recovering", "ready")
"""Phases in which the server can be heard."""
_NOW: dict[Activity, str] = {
    "idle": "",
    "sending": "sending",
    "waiting": "waiting for the model",
    "streaming": "answering",
    "tool": "running a tool",
    "command": "running a command",
    "approval": "waiting for you",
    "retrying": "trying again",
    "cancelling": "stopping…",
}
_THEN: dict[Activity, str] = {
    "idle": "",
    "sending": "Was sending",
    "waiting": "Was waiting for the model",
    "streaming": "Was answering",
    "tool": "Was running a tool",
    "command": "Was running a command",
    "approval": "Was waiting for you",
    "retrying": "Was trying again",
    "cancelling": "Was being stopped",
}


@dataclass(frozen=True, slots=True)
class Contact:
    """How the server can be heard. ``broke``: the connection did, and what was missed is not known yet."""

    phase: Phase = "starting"
    broke: bool = False

    @property
    def live(self) -> bool:
        """What is shown of the turn is how it is now."""
        return self.phase in LINKED and not self.broke

    def then(self, phase: Phase) -> Contact:
        """After the connection went to ``phase``. Only an end that nobody here wanted is a break."""
        lost = self.phase in LINKED and phase in ("lost", "failed")
        return Contact(phase, phase != "ready" and (self.broke or lost))


def doing(activity: Activity, words: str, contact: Contact) -> str:
    """``words`` are the worker's for what goes on now, "" for the usual ones."""
    if activity == "idle":
        return words if contact.phase == "ready" else ""  # else the header says what is being waited for
    if contact.live:
        return words or _NOW[activity]
    return f"{_THEN[activity]} {'when the connection broke' if contact.broke else 'when last seen'}"
