"""Tools, MCP servers and results as immutable values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Approval = Literal["ask", "auto"]

SERVER_WAITS = 300.0
"""Seconds the server waits for a result at most. It passes over longer wishes without a word (0.34.12)."""
MOST_SECONDS = 280.0  # of one run, so that its answer is in time
DEFAULT_SECONDS = 60.0

# What the server takes without complaint but models refuse is refused here.
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

# The server lets a tool of ours take the place of its own, without a word.
TAKEN = frozenset(
    (
        "Bash",
        "Monitor",
        "WatchPR",
        "Wake",
        "EnterWorktree",
        "ExitWorktree",
        "SetWorkingDirectory",
        "Edit",
        "TaskStop",
        "Read",
        "Skill",
        "Memory",
        "Workflow",
        "Agent",
        "SendAgentMessage",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskUpdate",
        "Write",
        "Glob",
        "Grep",
        "LS",
        "AskUserQuestion",
    )
)


@dataclass(frozen=True, slots=True)
class Tool:
    """``parameters`` is a JSON schema of type "object". ``timeout`` in seconds. ``command`` is a program
    with arguments; empty for a tool of the MCP server ``source``, which calls it ``source_name``."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    command: tuple[str, ...] = ()
    approval: Approval = "ask"
    timeout: float = DEFAULT_SECONDS
    cwd: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    source_name: str = ""

    def wire(self) -> dict[str, Any]:
        """As ``runtime_start`` registers it. The wait includes the time a person takes to decide."""
        return {
            "name": self.name,
            "label": self.name,
            "description": self.description,
            "parameters": dict(self.parameters),
            "timeout_ms": int(SERVER_WAITS * 1000),
            # In the background its result would come as a message of nobody's, after the turn.
            "auto_background": False,
        }


@dataclass(frozen=True, slots=True)
class McpServer:
    """``command`` (over stdin and stdout) or ``url`` (Streamable HTTP). ``token_file`` and ``token_env``
    say where the bearer token of ``url`` is."""

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    approval: Approval = "ask"
    timeout: float = DEFAULT_SECONDS
    cwd: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    token_file: Path | None = None
    token_env: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a tool said. ``text`` is what the model is told; ``failed`` marks it as an error."""

    text: str
    failed: bool = False
