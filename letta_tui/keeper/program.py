"""Finding the ``letta`` program, and the environment it gets."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

MISSING = (
    "No letta program was found. Get one with  pip install 'letta-tui[server]',  name yours in "
    "LETTA_CLI_PATH, or use a running server with  --url ws://…"
)

# A value inherited from the shell of another agent would make every agent write to that agent's memory.
_DROPPED = ("MEMORY_DIR", "LETTA_MEMORY_DIR")
# Off unless the person has set them: a background process reports nothing and does not replace itself.
_QUIET = {"LETTA_CODE_TELEM": "0", "DISABLE_AUTOUPDATER": "1"}


class NoProgram(Exception):
    """There is no ``letta`` to start; the text is one sentence."""


def find_letta(named: Path | None, environ: Mapping[str, str]) -> list[str]:
    """The command that starts ``letta``: the one that is named, else ``LETTA_CLI_PATH``, else the one
    beside this Python, else the first on PATH."""
    if named is not None:
        return _command(named, "the named program", environ)
    configured = environ.get("LETTA_CLI_PATH", "")
    if configured:
        return _command(Path(configured).expanduser(), "LETTA_CLI_PATH", environ)
    name = "letta.exe" if os.name == "nt" else "letta"
    beside = Path(sys.executable).parent / name
    if beside.is_file() and os.access(beside, os.X_OK):
        return [str(beside)]
    found = shutil.which("letta", path=environ.get("PATH"))
    if found:
        return [str(Path(found).absolute())]
    raise NoProgram(MISSING)


def _command(path: Path, whence: str, environ: Mapping[str, str]) -> list[str]:
    if not path.is_file():
        raise NoProgram(f"There is no letta program at {path} ({whence}).")
    if path.suffix in (".js", ".mjs", ".cjs"):
        node = shutil.which("node", path=environ.get("PATH"))
        if node is None:
            raise NoProgram(f"{path} ({whence}) needs Node, and there is no node on PATH.")
        return [node, str(path.absolute())]
    if not os.access(path, os.X_OK):
        raise NoProgram(f"{path} ({whence}) cannot be executed.")
    return [str(path.absolute())]


def server_environment(environ: Mapping[str, str], over: Mapping[str, str | None]) -> dict[str, str]:
    """The server's environment: the inherited one, cleaned, with ``over`` laid on top (``None`` drops)."""
    result = {k: v for k, v in environ.items() if k not in _DROPPED}
    for name, value in _QUIET.items():
        result.setdefault(name, value)
    for name, chosen in over.items():
        if chosen is None:
            result.pop(name, None)
        else:
            result[name] = chosen
    return result
