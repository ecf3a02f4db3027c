"""What a conversation has on this client besides its text, sent again with every start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from letta_tui.worker.config import WorkerConfig
from letta_tui.worker.ports import Variables

_SCOPED = ("mode", "cwd", "skill_sources", "toolset", "device", "external_tools", "environment")


@dataclass(frozen=True, slots=True)
class Session:
    """``skill_sources`` None keeps the server's. ``toolset`` (``base``, ``include``) goes with each input,
    since the server takes it per request; None keeps the server's."""

    skill_sources: tuple[str, ...] | None = None
    toolset: Mapping[str, Any] | None = None
    device: str = ""

    def stored(self) -> dict[str, Any]:
        """As the ledger keeps it with the conversation."""
        return {
            "skill_sources": list(self.skill_sources) if self.skill_sources is not None else None,
            "toolset": dict(self.toolset) if self.toolset is not None else None,
            "device": self.device,
        }


def of_a_copy(state: Mapping[str, Any]) -> dict[str, Any]:
    """What a copy of a conversation takes over of what was stored with it; what happened there is its own."""
    return {key: state[key] for key in _SCOPED if key in state}


def session_of(config: WorkerConfig, state: Mapping[str, Any], *, device: str = "") -> Session:
    """By the config file, else as the conversation had it (``state``)."""
    kept = state.get("skill_sources")
    sources: tuple[str, ...] | None = config.skill_sources or None
    if sources is None and isinstance(kept, list) and all(isinstance(one, str) for one in kept):
        sources = tuple(kept)
    toolset: Mapping[str, Any] | None = None
    if config.toolset or config.toolset_include:
        base = {"base": config.toolset} if config.toolset else {}
        include = {"include": list(config.toolset_include)} if config.toolset_include else {}
        toolset = {**base, **include}
    elif isinstance(state.get("toolset"), Mapping):
        toolset = dict(state["toolset"])
    return Session(sources, toolset, device)


def variable_notes(had: object, now: Variables) -> list[str]:
    """What became of the environment variables that the server ``had`` for a conversation, as far as it is
    not as it was: their names alone."""
    notes = []
    if now.different:
        notes.append(
            f"The running server does not have these environment variables as the config file says: "
            f"{', '.join(now.different)}. `letta-tui keeper stop` and a new start set them."
        )
    gone = [name for name in had if name not in now.wanted] if isinstance(had, list) else []
    if gone:
        why = "no longer in the config file" if now.settable else "that cannot be set on this server"
        notes.append(f"Environment variables {why}: {', '.join(map(str, gone))}.")
    return notes
