"""The config file: named endpoints ("profiles"), read from TOML and checked key by key.

Every key is described once, in ``KEYS``; the reader, the messages about mistakes and the table in
``docs/configuration.md`` of this package rest on it. Secrets are never values here: a profile says where its
token or key is to be found.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from letta_tui.paths import DEFAULT_PROFILE, PathsError, check_profile_name
from letta_tui.tools.declared import Undeclared, mcp_servers, tools
from letta_tui.tools.values import McpServer, Tool

Kind = Literal["embedded", "direct", "hosted"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MODES = ("standard", "acceptEdits", "unrestricted", "strict")
SKILL_SOURCES = ("bundled", "global", "agent", "project")
TOOLSETS = ("auto", "default", "codex", "letta", "none")
DEFAULT_API_BASE = "https://api.letta.com"
DEFAULT_API_KEY_ENV = "LETTA_API_KEY"
DEFAULT_IDLE_MINUTES = 30.0
DEFAULT_SANDBOX_MINUTES = 5.0
MOST_REPOSITORIES = 10  # that the hosted service clones into one sandbox


class ConfigError(Exception):
    """The config file is wrong; the message is one clear sentence."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a profile. ``kinds``: the kinds of endpoint it means something to."""

    name: str
    type: Literal["text", "path", "command", "number", "switch", "texts", "table", "tools", "mcp"]
    words: str
    kinds: tuple[Kind, ...] = KINDS
    choices: tuple[str, ...] = ()


_REMOTE: tuple[Kind, ...] = ("direct", "hosted")

KEYS: tuple[Key, ...] = (
    Key("kind", "text", "`embedded` (started here, the default), `direct` or `hosted`", choices=KINDS),
    Key("url", "text", "address of the server: `ws://`, `wss://`, `http://` or `https://`", ("direct",)),
    Key("token_file", "path", "file with the token or API key, read again on every connect", _REMOTE),
    Key("token_command", "command", "program, with arguments, that prints the token or API key", _REMOTE),
    Key("token_env", "text", f"environment variable with it (hosted: `{DEFAULT_API_KEY_ENV}`)", _REMOTE),
    Key("keyring", "text", "`service/user` of it in the system's keyring (extra `keyring`)", _REMOTE),
    Key("ca_file", "path", "certificates (PEM) to trust besides the system's", _REMOTE),
    Key("api_base", "text", f"address of the hosted API (default `{DEFAULT_API_BASE}`)", ("hosted",)),
    Key("device", "text", "id of the device whose runtime is used", ("hosted",)),
    Key("sandbox", "switch", "run on a managed sandbox instead of a device (default false)", ("hosted",)),
    Key(
        "repositories",
        "texts",
        "GitHub repositories cloned into the sandbox: `owner/name`, or `owner/name@commit` (40 digits)",
        ("hosted",),
    ),
    Key("sandbox_minutes", "number", "how long an unused sandbox is kept, 1 to 60 (default 5)", ("hosted",)),
    Key(
        "letta",
        "path",
        "the `letta` program (default: `LETTA_CLI_PATH`, this environment, `PATH`)",
        ("embedded",),
    ),
    Key(
        "idle_minutes",
        "number",
        "the keeper, and the server it started, leave after this long with nothing to do",
        ("embedded", "direct"),
    ),
    Key("telemetry", "switch", "let the server send its telemetry (default false)", ("embedded",)),
    Key("self_update", "switch", "let the server update itself (default false)", ("embedded",)),
    Key("environment", "table", "environment variables for the server and its tools", ("embedded",)),
    Key("agent", "text", "agent to talk to when none is named"),
    Key("mode", "text", "permission mode of new conversations (default `standard`)", choices=MODES),
    Key("cwd", "path", "working folder of new conversations (default: the current one)"),
    Key(
        "notifications",
        "text",
        "what happens while nobody looks: `on`, `bell` (of the terminal only) or `off` (default `on`)",
        choices=("on", "bell", "off"),
    ),
    Key("notification_seconds", "number", "turns shorter than this end quietly (default 10)"),
    Key("notification_details", "switch", "let notifications name the tool or the error (default false)"),
    Key(
        "theme",
        "text",
        "colours of the window: `dark` or `light` (default: as `COLORFGBG` tells, else `dark`)",
        choices=("dark", "light"),
    ),
    Key(
        "skill_sources",
        "texts",
        "where the agent's skills come from (default: as the conversation has them)",
        choices=SKILL_SOURCES,
    ),
    Key(
        "toolset", "text", "the server's own tools (default: as the conversation has them)", choices=TOOLSETS
    ),
    Key("toolset_include", "texts", 'more of the server\'s tools, such as `["AskUserQuestion"]`'),
    Key("tools", "tools", "tools of your own, one table each: see below"),
    Key("mcp", "mcp", "MCP servers, one table each: see below"),
)

_BY_NAME = {key.name: key for key in KEYS}
_REPOSITORY = re.compile(r"(?P<owner>[A-Za-z0-9-]+)/(?P<repo>[A-Za-z0-9._-]+)(@(?P<commit>[0-9a-fA-F]{40}))?")
_SECRETS = ("token", "api_key", "key", "password", "secret")


@dataclass(frozen=True, slots=True)
class Profile:
    """A named endpoint. Paths are absolute. See ``KEYS`` for what each field means."""

    name: str = DEFAULT_PROFILE
    kind: Kind = "embedded"
    url: str = ""
    token_file: Path | None = None
    token_command: tuple[str, ...] = ()
    token_env: str = ""
    keyring: str = ""
    ca_file: Path | None = None
    api_base: str = DEFAULT_API_BASE
    device: str = ""
    sandbox: bool = False
    repositories: tuple[str, ...] = ()
    sandbox_minutes: float = DEFAULT_SANDBOX_MINUTES
    letta: Path | None = None
    idle_minutes: float = DEFAULT_IDLE_MINUTES
    telemetry: bool = False
    self_update: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    agent: str = ""
    mode: str = ""
    cwd: Path | None = None
    notifications: Literal["on", "bell", "off"] = "on"
    notification_seconds: float = 10.0
    notification_details: bool = False
    theme: Literal["dark", "light", ""] = ""
    skill_sources: tuple[str, ...] = ()
    toolset: str = ""
    toolset_include: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    mcp: tuple[McpServer, ...] = ()

    @property
    def where(self) -> str:
        """The endpoint in a few words, without secrets."""
        if self.kind == "direct":
            return self.url
        if self.kind == "hosted":
            where = "a sandbox" if self.sandbox else f"device {self.device}" if self.device else ""
            return f"{where} at {self.api_base}" if where else self.api_base
        return "embedded server"


@dataclass(frozen=True, slots=True)
class Config:
    """The whole file. ``file`` need not exist: then it is an empty one."""

    file: Path
    profile: str = DEFAULT_PROFILE
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    exists: bool = False

    def pick(self, name: str | None) -> Profile:
        """The profile called ``name``, or the file's default one; :class:`ConfigError` when there is none."""
        wanted = name or self.profile
        found = self.profiles.get(wanted)
        if found is not None:
            return found
        if wanted == DEFAULT_PROFILE:
            return Profile()
        near = difflib.get_close_matches(wanted, [DEFAULT_PROFILE, *self.profiles], n=1)
        hint = f" Did you mean {near[0]!r}?" if near else f" Add a table [profiles.{wanted}]."
        raise ConfigError(f"There is no profile {wanted!r} in {self.file}.{hint}")


def load(file: Path) -> Config:
    """Read ``file``; a file that does not exist is an empty one."""
    try:
        with file.open("rb") as opened:
            raw = tomllib.load(opened)
    except FileNotFoundError:
        return Config(file)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not text in UTF-8 (byte {error.start + 1}).") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} is not valid TOML: {error}.") from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror or error}.") from None
    return parse(raw, file)


def parse(raw: Mapping[str, Any], file: Path) -> Config:
    """Check the parsed TOML ``raw`` key by key. Relative paths are taken from the folder of ``file``."""
    for name in raw:
        if name not in ("profile", "profiles"):
            raise _unknown(name, ("profile", "profiles"), "at the top of", file)
    tables = raw.get("profiles", {})
    if not isinstance(tables, dict):
        raise ConfigError(f"'profiles' in {file} must be tables such as [profiles.work].")
    profiles: dict[str, Profile] = {}
    for name, table in tables.items():
        try:
            check_profile_name(name)
        except PathsError as error:
            raise ConfigError(f"{str(error).rstrip('.')} ({file}).") from None
        if not isinstance(table, dict):
            raise ConfigError(f"'profiles.{name}' in {file} must be a table: [profiles.{name}].")
        profiles[name] = _profile(name, table, file)
    default = raw.get("profile", DEFAULT_PROFILE)
    if not isinstance(default, str):
        raise ConfigError(f"'profile' in {file} must be the name of a profile.")
    config = Config(file, default, profiles, exists=True)
    config.pick(None)
    return config


def _profile(name: str, table: Mapping[str, Any], file: Path) -> Profile:
    where = f"in [profiles.{name}] of"
    values: dict[str, Any] = {}
    for key_name, value in table.items():
        key = _BY_NAME.get(key_name)
        if key is None:
            if key_name in _SECRETS:
                raise ConfigError(
                    f"No secret belongs {where} {file}: use token_file, token_command, token_env or keyring "
                    f"instead of {key_name!r}."
                )
            raise _unknown(key_name, _BY_NAME, where, file)
        values[key_name] = _value(key, value, where, file)
    kind = values.get("kind", "embedded")
    for key_name in values:
        kinds = _BY_NAME[key_name].kinds
        if kind not in kinds:
            raise ConfigError(
                f"{key_name!r} {where} {file} belongs to kind {_any_of(kinds)}, but this one is {kind!r}."
            )
    if kind == "direct" and not values.get("url"):
        raise ConfigError(f"A direct profile needs a 'url': add one {where} {file}.")
    sources = [name for name in ("token_file", "token_command", "token_env", "keyring") if name in values]
    if len(sources) > 1:
        raise ConfigError(f"Use one of {_any_of(tuple(sources))}, not several, {where} {file}.")
    if kind == "hosted":
        _check_sandbox(values, where, file)
    return Profile(name=name, **values)


def _check_sandbox(values: Mapping[str, Any], where: str, file: Path) -> None:
    if values.get("sandbox") and values.get("device"):
        raise ConfigError(f"Use one of 'device' or 'sandbox', not both, {where} {file}.")
    for key in ("repositories", "sandbox_minutes"):
        if key in values and not values.get("sandbox"):
            raise ConfigError(f"{key!r} {where} {file} means nothing without 'sandbox = true'.")
    minutes = values.get("sandbox_minutes", DEFAULT_SANDBOX_MINUTES)
    if not (1 <= minutes <= 60 and minutes == int(minutes)):
        raise ConfigError(f"'sandbox_minutes' {where} {file} must be a whole number from 1 to 60.")
    repositories = values.get("repositories", ())
    if len(repositories) > MOST_REPOSITORIES:
        raise ConfigError(f"'repositories' {where} {file} must be {MOST_REPOSITORIES} at most.")
    for text in repositories:
        if _REPOSITORY.fullmatch(text) is None:
            raise ConfigError(
                f"{text!r} in 'repositories' {where} {file} must look like 'owner/name[@commit]'."
            )


def repository_of(text: str) -> dict[str, str]:
    """A repository as the hosted service takes it; ``text`` has been checked."""
    found = _REPOSITORY.fullmatch(text)
    assert found is not None, text
    return {name: value for name, value in found.groupdict().items() if value}


def _value(key: Key, value: Any, where: str, file: Path) -> Any:
    """``value`` as the type that ``key`` has in :class:`Profile`."""

    def wrong(wanted: str) -> ConfigError:
        return ConfigError(f"{key.name!r} {where} {file} must be {wanted}.")

    if key.type in ("text", "path"):
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            raise wrong("text between quotes, not empty")
        if key.choices and value not in key.choices:
            near = difflib.get_close_matches(value, key.choices, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigError(f"{key.name!r} {where} {file} must be {_any_of(key.choices)}{hint or '.'}")
        if key.type == "text":
            return value
        path = Path(value).expanduser()
        return path if path.is_absolute() else file.absolute().parent / path
    if key.type == "number":
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
            raise wrong("a number above zero")
        return float(value)
    if key.type == "switch":
        if not isinstance(value, bool):
            raise wrong("true or false")
        return value
    if key.type in ("tools", "mcp"):
        folder = file.absolute().parent
        try:
            return tools(value, folder) if key.type == "tools" else mcp_servers(value, folder)
        except Undeclared as error:
            raise ConfigError(f"{_capital(str(error))} ({where.removesuffix(' of')}, {file}).") from None
    if key.type == "table":
        if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
            raise wrong('a table of texts, such as { NAME = "value" }')
        return dict(value)
    if not isinstance(value, list) or not value or not all(isinstance(v, str) for v in value):
        raise wrong(f'a list of texts, such as ["{key.choices[0] if key.choices else "program"}", …]')
    if key.choices and not set(value) <= set(key.choices):
        raise wrong(f"a list of {_any_of(key.choices)}")
    return tuple(value)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _unknown(name: str, known: Any, where: str, file: Path) -> ConfigError:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else f" Possible are: {', '.join(known)}."
    return ConfigError(f"There is no key {name!r} {where} {file}.{hint}")


def _any_of(names: tuple[str, ...]) -> str:
    quoted = [repr(name) for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
