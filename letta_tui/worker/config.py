"""What a worker is started with."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from letta_tui.conversation.reconcile_values import Policy
from letta_tui.ledger.values import Stamp
from letta_tui.tools.values import McpServer, Tool
from letta_tui.transport.endpoint import Endpoint
from letta_tui.worker.ports import KeeperPort

Mode = Literal["standard", "acceptEdits", "unrestricted", "strict"]


@dataclass(frozen=True, slots=True)
class Target:
    """Which conversation the person asked for on the command line.

    ``conversation_id`` wins over everything. ``default`` asks for the agent's conversation named ``default``
    (it needs ``agent_id`` or a stored agent). ``new`` makes a conversation. All empty: the stored last one.
    """

    agent_id: str | None = None
    conversation_id: str | None = None
    new: bool = False
    default: bool = False


def boot_seconds() -> float:
    """Seconds since boot that also count the time asleep (Linux); elsewhere the monotonic clock."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.clock_gettime(clock) if clock is not None else time.monotonic()


def boot_id() -> str:
    """Names this start of the machine: monotonic times are comparable only under the same one."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        import psutil

        # Derived from the wall clock, so rounded: a small correction of the clock is no reboot.
        return f"boot-{round(psutil.boot_time() / 60)}"


@dataclass(frozen=True, slots=True)
class Hands:
    """Clocks, identities and randomness: whatever a test must be able to decide."""

    wall: Callable[[], float] = time.time
    mono: Callable[[], float] = time.monotonic
    boot: Callable[[], float] = boot_seconds
    boot_name: str = field(default_factory=boot_id)
    new_id: Callable[[], str] = lambda: str(uuid.uuid4())
    random: Callable[[], float] = field(default_factory=lambda: random.Random().random)

    def stamp(self) -> Stamp:
        return Stamp(wall=self.wall(), mono=self.mono(), boot=self.boot_name)


@dataclass(frozen=True, slots=True)
class HostedOptions:
    """Where a conversation of the hosted service runs when no machine is named.

    ``sandbox``: on a managed one. ``repositories`` are cloned into it: objects with ``owner``, ``repo`` and
    perhaps ``commit``. ``sandbox_minutes`` (1 to 60): how long it is kept after it was last used.
    """

    sandbox: bool = False
    repositories: tuple[Mapping[str, str], ...] = ()
    sandbox_minutes: int = 5


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """Either ``keeper`` (embedded server) or ``endpoint`` (a server that somebody else runs).

    ``ledger_path`` is the SQLite file of sends. ``cwd`` is the working folder of new conversations, and of
    resumed ones only when the person named it (``cwd_explicit``). ``window_id`` tells the drafts of
    two windows apart.
    """

    ledger_path: Path
    endpoint: Endpoint | None = None
    keeper: KeeperPort | None = None
    target: Target = Target()
    mode: Mode | None = None  # None: standard for a new conversation, rule 9 on resume
    cwd: str | None = None
    cwd_explicit: bool = False
    window_id: str = "main"
    tools: tuple[Tool, ...] = ()
    mcp: tuple[McpServer, ...] = ()
    skill_sources: tuple[str, ...] = ()  # empty: as the conversation has them
    toolset: str = ""  # the server's own tools; empty: as the conversation has them
    toolset_include: tuple[str, ...] = ()
    client_version: str = "0"
    hands: Hands = field(default_factory=Hands)
    policy: Policy = field(default_factory=Policy)  # what may be concluded from a reading, and after how long
    page_size: int = 50
    hold_wait: float = 10.0  # how long a send waits for the keeper to confirm its hold
    hold_again: float = 3.0  # seconds between two questions whether the keeper still holds it
    cache_path: Path | None = None
    long_turn: float = 10.0  # seconds after which its end is worth telling somebody who looks elsewhere
    notifications: Literal["on", "bell", "off"] = "on"
    hosted: HostedOptions = HostedOptions()
    confined_to: str = ""  # the agent that the embedded server was confined to; it serves no other
