"""Tools and MCP servers as the config file declares them, checked key by key."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from letta_tui.tools.values import DEFAULT_SECONDS, MOST_SECONDS, NAME, TAKEN, McpServer, Tool


class Undeclared(Exception):
    """A declaration is wrong; the message is a sentence without its place, such as "'timeout' must be …"."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a declaration, as letta_tui/docs/configuration.md describes it."""

    name: str
    type: Literal["text", "path", "command", "seconds", "approval", "schema", "table"]
    words: str


_APPROVAL = Key("approval", "approval", '`"ask"` (the default): before each call; `"auto"`: never')
_TIMEOUT = Key(
    "timeout", "seconds", f"of one call (default {DEFAULT_SECONDS:.0f}, at most {MOST_SECONDS:.0f})"
)
_CWD = Key("cwd", "path", "folder to run in (default: the conversation's, where it is on this machine)")
_ENVIRONMENT = Key("environment", "table", "environment variables besides those of this program")

TOOL_KEYS: tuple[Key, ...] = (
    Key("description", "text", "what it does, for the model (needed)"),
    Key("command", "command", "program with arguments; input as JSON on stdin, result on stdout (needed)"),
    Key("parameters", "schema", "JSON schema of the input, as a table or as JSON text (default: no input)"),
    _APPROVAL,
    _TIMEOUT,
    _CWD,
    _ENVIRONMENT,
)
MCP_KEYS: tuple[Key, ...] = (
    Key("command", "command", "program with arguments that speaks MCP on stdin and stdout"),
    Key("url", "text", "address of a Streamable HTTP server, instead of `command`"),
    Key("token_file", "path", "file with the bearer token for `url`, read on every start"),
    Key("token_env", "text", "environment variable with it"),
    _APPROVAL,
    _TIMEOUT,
    _CWD,
    _ENVIRONMENT,
)

NO_INPUT: Mapping[str, Any] = {"type": "object", "properties": {}}


def tools(tables: object, folder: Path) -> tuple[Tool, ...]:
    """The tools of a ``tools`` table. Relative paths are taken from ``folder``. Raises ``Undeclared``."""
    found = []
    for name, table in _tables(tables, "tools"):
        if name in TAKEN:
            raise Undeclared(f"the server has a tool {name!r} of its own: choose another name")
        values = _values(table, TOOL_KEYS, f"tools.{name}", folder)
        for needed in ("description", "command"):
            if needed not in values:
                raise Undeclared(f"'tools.{name}' needs a {needed!r}")
        found.append(Tool(name=name, parameters=values.pop("parameters", NO_INPUT), **values))
    return tuple(found)


def mcp_servers(tables: object, folder: Path) -> tuple[McpServer, ...]:
    """The servers of an ``mcp`` table. Raises ``Undeclared``."""
    found = []
    for name, table in _tables(tables, "mcp"):
        values = _values(table, MCP_KEYS, f"mcp.{name}", folder)
        if ("command" in values) == ("url" in values):
            raise Undeclared(f"'mcp.{name}' needs either a 'command' or a 'url'")
        url = values.get("url", "http://")
        if not url.startswith(("http://", "https://")):
            raise Undeclared(f"'mcp.{name}.url' must begin with http:// or https://")
        if "token_file" in values and "token_env" in values:
            raise Undeclared(f"'mcp.{name}' must have only one of 'token_file' and 'token_env'")
        found.append(McpServer(name=name, **values))
    return tuple(found)


def _tables(tables: object, what: str) -> list[tuple[str, Mapping[str, Any]]]:
    if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
        raise Undeclared(f"'{what}' must hold tables such as [….{what}.weather]")
    for name in tables:
        if not NAME.fullmatch(name):
            raise Undeclared(
                f"'{what}.{name}' is no possible name: up to 64 letters without accents, digits, - and _"
            )
    return list(tables.items())


def _values(table: Mapping[str, Any], keys: tuple[Key, ...], where: str, folder: Path) -> dict[str, Any]:
    known = {key.name: key for key in keys}
    values: dict[str, Any] = {}
    for name, value in table.items():
        key = known.get(name)
        if key is None:
            near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"possible are {', '.join(known)}"
            raise Undeclared(f"there is no key {name!r} in '{where}': {hint}")
        values[name] = _value(key, value, f"'{where}.{name}'", folder)
    return values


def _value(key: Key, value: Any, where: str, folder: Path) -> Any:
    match key.type:
        case "text" | "path":
            if not isinstance(value, str) or not value.strip() or "\0" in value:
                raise Undeclared(f"{where} must be text between quotes, not empty")
            return value if key.type == "text" else folder / Path(value).expanduser()
        case "approval":
            if value not in ("ask", "auto"):
                raise Undeclared(f"{where} must be 'ask' or 'auto'")
            return value
        case "seconds":
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MOST_SECONDS:
                raise Undeclared(
                    f"{where} must be a number of seconds above zero and up to {MOST_SECONDS:.0f}"
                )
            return float(value)
        case "table":
            if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
                raise Undeclared(f'{where} must be a table of texts, such as {{ NAME = "value" }}')
            return dict(value)
        case "schema":
            return _schema(value, where)
        case "command":
            texts = isinstance(value, list) and all(isinstance(v, str) and "\0" not in v for v in value)
            if not texts or not value or not value[0]:
                raise Undeclared(f'{where} must be a list of texts, such as ["program", "argument"]')
            return tuple(value)


def _schema(value: Any, where: str) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise Undeclared(f"{where} is not valid JSON: {error}") from None
    if not isinstance(value, dict) or value.get("type", "object") != "object":
        raise Undeclared(f'{where} must be a JSON schema of type "object"')
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise Undeclared(f"{where} holds a value that JSON has no word for") from None
    return {"type": "object", "properties": {}, **value}
