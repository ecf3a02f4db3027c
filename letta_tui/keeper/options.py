"""Where a keeper lives and how it behaves: plain values that travel as JSON to the keeper process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

DEFAULT_IDLE_SECONDS = 30 * 60.0


@dataclass(frozen=True, slots=True)
class KeeperPaths:
    """The folders of one profile that the keeper uses; both are absolute.

    ``state`` holds the lock, the state file, the token, logs and the ends of turns; ``runtime`` holds the
    control socket (a folder that may vanish at logout).
    """

    state: Path
    runtime: Path

    @property
    def lock(self) -> Path:
        return self.state / "keeper.lock"

    @property
    def state_file(self) -> Path:
        return self.state / "keeper.json"

    @property
    def token(self) -> Path:
        return self.state / "server.token"

    @property
    def log(self) -> Path:
        return self.state / "keeper.log"

    @property
    def server_log(self) -> Path:
        return self.state / "server.log"

    def companion_log(self, number: int) -> Path:
        return self.state / f"companion-{number}.log"

    @property
    def ends(self) -> Path:
        return self.state / "ends.jsonl"


@dataclass(frozen=True, slots=True)
class KeeperOptions:
    """How the keeper is to run.

    ``url``: watch this server instead of starting one. Its token, if any, comes from the first that is set
    of ``token``, ``token_file``, ``token_command`` and ``token_env``; ``ca_file`` is trusted besides the
    system's certificates. All of it reaches the keeper over a pipe, and no token is ever written down.
    ``letta``: the ``letta`` program, else it is searched. ``server_env`` is laid over the inherited
    environment of the server; a value of ``None`` drops a variable. ``cwd``: the server's working folder.
    ``companions``: commands that live as long as the server does (each starts before it, and prints a line
    with "Listening" when it is ready). ``idle_seconds``: how long nothing may happen before the keeper
    leaves. ``notify``: show on the desktop what happens while no window shows the conversation, with turns of
    ``notify_after`` seconds or more, and with the tool's name or the error if ``notify_details``.
    ``confine_agent``: the agent whose memory folder is all that the server may write to.
    """

    url: str | None = None
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    token_command: tuple[str, ...] = ()
    token_env: str = ""
    ca_file: Path | None = None
    letta: Path | None = None
    server_env: Mapping[str, str | None] = field(default_factory=dict)
    cwd: Path | None = None
    companions: tuple[tuple[str, ...], ...] = ()
    idle_seconds: float = DEFAULT_IDLE_SECONDS
    confine_agent: str | None = None
    notify: bool = True
    notify_after: float = 10.0
    notify_details: bool = False

    def to_json(self) -> str:
        raw = asdict(self)
        for key in ("token_file", "ca_file", "letta", "cwd"):
            raw[key] = None if raw[key] is None else str(raw[key])
        return json.dumps(raw)

    @classmethod
    def from_json(cls, text: str) -> KeeperOptions:
        raw: dict[str, Any] = json.loads(text)

        def path(key: str) -> Path | None:
            return Path(raw[key]) if raw.get(key) else None

        return cls(
            url=raw.get("url"),
            token=raw.get("token"),
            token_file=path("token_file"),
            token_command=tuple(raw.get("token_command") or ()),
            token_env=str(raw.get("token_env") or ""),
            ca_file=path("ca_file"),
            letta=path("letta"),
            server_env=dict(raw.get("server_env") or {}),
            cwd=path("cwd"),
            companions=tuple(tuple(c) for c in raw.get("companions") or ()),
            idle_seconds=float(raw.get("idle_seconds", DEFAULT_IDLE_SECONDS)),
            confine_agent=raw.get("confine_agent"),
            notify=raw.get("notify") is not False,
            notify_after=float(raw.get("notify_after", 10.0)),
            notify_details=raw.get("notify_details") is True,
        )
