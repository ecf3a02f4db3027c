"""Starting the server so that it can write to nothing but its own state and one agent's memory.

The policy is Letta's own: the ``memory-confinement`` module that ships with it, called by its Node, says
which wrapper (bubblewrap on Linux, sandbox-exec on macOS) to put before the command. It fails closed, and
so does everything here: what cannot be confined is not started.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_SECONDS = 30.0
_AGENT_ID = re.compile(r"agent-[A-Za-z0-9-]{1,80}")
_ASK = """
import { pathToFileURL } from "node:url";
const { createMemoryConfinementLauncher } = await import(pathToFileURL(process.argv[1]).href);
const launcher = JSON.parse(process.argv[2]);
try {
    const made = createMemoryConfinementLauncher({ launcher, env: process.env });
    console.log(JSON.stringify({ launcher: made.launcher, sandbox: made.env.LETTA_SANDBOX ?? made.backend }));
} catch (error) {
    console.log(JSON.stringify({ error: String(error.message) }));
}
"""


class CannotConfine(Exception):
    """The text is one sentence; nothing has been started."""


def memory_folder(agent_id: str, environ: Mapping[str, str]) -> Path:
    """Where the local backend keeps an agent's memory. The rule is the launcher's, from its types."""
    if not _AGENT_ID.fullmatch(agent_id):
        raise CannotConfine(f"{agent_id!r} is no id of an agent, so nothing can be confined to its memory.")
    home = Path(environ.get("HOME") or Path.home())
    backend = Path(environ.get("LETTA_LOCAL_BACKEND_DIR") or home / ".letta" / "lc-local-backend")
    if not backend.is_relative_to(home / ".letta"):
        # The policy leaves only ~/.letta writable: such a server could not store one message.
        raise CannotConfine(
            f"A confined server can only keep its data below {home / '.letta'}, but it is in {backend}."
        )
    folder = backend / "memfs" / agent_id / "memory"
    if not folder.is_dir():
        raise CannotConfine(f"The agent has no memory folder at {folder}, so nothing can be confined to it.")
    return folder


def confine(
    command: Sequence[str], environ: Mapping[str, str], agent_id: str
) -> tuple[list[str], dict[str, str]]:
    """The command and environment that start it confined, or ``CannotConfine``. Blocks for some 100 ms."""
    folder = memory_folder(agent_id, environ)
    node, module = _launcher(command)
    confined = {**environ, "MEMORY_DIR": str(folder), "TMPDIR": str(_temporary(environ))}
    try:
        done = subprocess.run(
            [str(node), "--input-type=module", "-e", _ASK, str(module), json.dumps(list(command))],
            env=confined,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        answer = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        raise CannotConfine("Letta's confinement launcher gave no usable answer.") from None
    launcher = answer.get("launcher") if isinstance(answer, dict) else None
    if not isinstance(launcher, list) or len(launcher) <= len(command):
        reason = answer.get("error") if isinstance(answer, dict) else None
        raise CannotConfine(str(reason or "Letta's confinement launcher gave no usable answer."))
    return [str(word) for word in launcher], {**confined, "LETTA_SANDBOX": str(answer.get("sandbox"))}


def _temporary(environ: Mapping[str, str]) -> Path:
    """A temporary folder that the policy leaves writable: without one the server's shell tool cannot run."""
    folder = Path(environ.get("HOME") or Path.home()) / ".letta" / "tmp"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CannotConfine(f"The folder {folder} cannot be made: {error.strerror or error}.") from None
    return folder


def _launcher(command: Sequence[str]) -> tuple[Path, Path]:
    """Node, and the confinement module, of the letta that ``command`` starts."""
    relative = Path("dist") / "memory-confinement.js"
    program = Path(command[0])
    if len(command) > 1 and command[1].endswith("js"):
        return program, _existing(Path(command[1]).resolve().parent / relative)
    target = program.resolve()
    if target.suffix in (".js", ".mjs"):
        return Path("node"), _existing(target.parent / relative)
    spec = importlib.util.find_spec("letta_code")
    for place in spec.submodule_search_locations or () if spec is not None else ():
        # The wheel's script belongs to the environment that the package is in.
        if Path(place).is_relative_to(program.parent.parent):
            payload = Path(place) / "_payload"
            return payload / "bin" / "node", _existing(payload / "app" / relative)
    raise CannotConfine(f"{program} does not say where its confinement launcher is.")


def _existing(module: Path) -> Path:
    if not module.is_file():
        raise CannotConfine("This letta ships no confinement launcher; a newer one does.")
    return module
