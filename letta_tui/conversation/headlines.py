"""One clear line per tool call that asks for permission."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

_WIDTH = 200
Input = Mapping[str, Any]


def headline(tool: str, values: Input) -> str:
    """What the call wants to do, in one line. Well-known tools are told in words, others by their name."""
    known = _KNOWN.get(_plain(tool))
    words = known(values) if known is not None else ""
    return words or _generic(tool, values)


def pretty(values: object) -> str:
    """The whole input, readable."""
    try:
        return json.dumps(values, ensure_ascii=False, indent=2)
    except (TypeError, ValueError):
        return str(values)


def _plain(tool: str) -> str:
    return tool.replace("_", "").replace("-", "").lower()


def _line(value: object) -> str:
    """The first line of a text; says how many more there are."""
    if isinstance(value, list):
        value = " ".join(str(v) for v in value)
    if not isinstance(value, str):
        return ""
    lines = [line for line in value.splitlines() if line.strip()]
    if not lines:
        return ""
    first = " ".join(lines[0].split())
    if len(first) > _WIDTH:
        first = first[: _WIDTH - 1] + "…"
    more = len(lines) - 1
    return first + (f" (+{more} more line{'s' if more > 1 else ''})" if more else "")


def _first(values: Input, *names: str) -> str:
    return next((line for n in names if (line := _line(values.get(n)))), "")


def _command(values: Input) -> str:
    command = _first(values, "command", "cmd", "script")
    if not command:
        return ""
    where = _first(values, "cwd", "workdir", "dir_path")
    behind = " in the background" if values.get("run_in_background") is True else ""
    return f"Run{behind}: {command}" + (f"  (in {where})" if where else "")


def _about(verb: str, *names: str) -> Callable[[Input], str]:
    def words(values: Input) -> str:
        what = _first(values, *names)
        return f"{verb} {what}" if what else ""

    return words


def _multi_edit(values: Input) -> str:
    path = _first(values, "file_path", "path")
    edits = values.get("edits")
    count = len(edits) if isinstance(edits, list) else 0
    return f"Edit {path}" + (f" ({count} changes)" if count > 1 else "") if path else ""


def _patch(values: Input) -> str:
    text = values.get("input") or values.get("patch")
    if not isinstance(text, str):
        return ""
    marks = ("*** Add File: ", "*** Update File: ", "*** Delete File: ")
    files = [line.removeprefix(m).strip() for line in text.splitlines() for m in marks if line.startswith(m)]
    return f"Change {', '.join(files[:4])}" + (f" and {len(files) - 4} more" if len(files) > 4 else "")


def _search(values: Input) -> str:
    what = _first(values, "pattern", "query")
    where = _first(values, "path", "dir_path")
    return f"Search for {what}" + (f" in {where}" if where else "") if what else ""


def _task(values: Input) -> str:
    kind = _first(values, "subagent_type", "agent_type")
    what = _first(values, "description", "prompt")
    return f"Start a helper agent{f' ({kind})' if kind else ''}: {what}" if what else ""


def _generic(tool: str, values: Input) -> str:
    shown = [
        f"{k}={_line(v) if isinstance(v, str) else json.dumps(v, default=str)}" for k, v in values.items()
    ]
    line = f"Use {tool or 'a tool'}" + (f": {', '.join(shown)}" if shown else "")
    line = " ".join(line.split())
    return line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"


_PATHS = ("file_path", "path", "absolute_path", "target_file", "notebook_path")
_EDIT = _about("Edit", *_PATHS)
_WRITE = _about("Write", *_PATHS)
_READ = _about("Read", *_PATHS)
_LIST = _about("List", "path", "dir_path", "directory")
_KNOWN: dict[str, Callable[[Input], str]] = {
    "bash": _command,
    "shell": _command,
    "shellcommand": _command,
    "runshellcommand": _command,
    "execcommand": _command,
    "write": _WRITE,
    "writefile": _WRITE,
    "edit": _EDIT,
    "strreplace": _EDIT,
    "replace": _EDIT,
    "notebookedit": _EDIT,
    "multiedit": _multi_edit,
    "applypatch": _patch,
    "read": _READ,
    "readfile": _READ,
    "viewimage": _READ,
    "ls": _LIST,
    "listdir": _LIST,
    "listdirectory": _LIST,
    "glob": _search,
    "grep": _search,
    "grepfiles": _search,
    "searchfilecontent": _search,
    "websearch": _search,
    "webfetch": _about("Fetch", "url"),
    "fetchwebpage": _about("Fetch", "url"),
    "task": _task,
    "agent": _task,
    "killbash": _about("Stop the background command", "shell_id", "bash_id"),
    "taskstop": _about("Stop the background task", "task_id"),
    "skill": _about("Use the skill", "skill", "name"),
}
