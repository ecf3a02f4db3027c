"""Tokens: read anew at each connect, so that a rotated one is picked up without a restart.

A capability token or API key is sent as it stands, and so is a signed bearer token (a JWT): both are
opaque here. No token is ever put in a message, a log line or an address.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

from letta_tui.transport.connection import NoToken
from letta_tui.transport.endpoint import Endpoint

_LARGEST = 64 * 1024  # bytes of a token file or of a command's output
_COMMAND_SECONDS = 30.0  # a password manager may ask its owner first


async def read_token(endpoint: Endpoint, environ: Mapping[str, str] = os.environ) -> str | None:
    """The token to present, or None when the endpoint names none. Raises ``NoToken``."""
    if endpoint.token is not None:
        return _checked(endpoint.token, "The token given")
    if endpoint.token_file is not None:
        return _checked(await asyncio.to_thread(_from_file, endpoint.token_file), str(endpoint.token_file))
    if endpoint.token_command:
        shown = endpoint.token_command[0]
        return _checked(await _from_command(endpoint.token_command), f"The token command {shown}")
    if endpoint.token_env:
        value = environ.get(endpoint.token_env, "")
        if value.strip():
            return _checked(value, f"The environment variable {endpoint.token_env}")
        raise NoToken(_not_set(endpoint))
    return None


def missing_key(endpoint: Endpoint, environ: Mapping[str, str] = os.environ) -> str:
    """One sentence when it can be told without asking anybody that there is no token to present, else ""."""
    if endpoint.token is not None:
        return ""
    try:
        if endpoint.token_file is not None:
            _checked(_from_file(endpoint.token_file), str(endpoint.token_file))
        elif endpoint.token_command:
            if shutil.which(endpoint.token_command[0]) is None:
                return f"The token command {endpoint.token_command[0]} was not found."
        elif endpoint.token_env and not environ.get(endpoint.token_env, "").strip():
            return _not_set(endpoint)
    except NoToken as refused:
        return refused.words
    return ""


def renewal(endpoint: Endpoint) -> str:
    """How a token that was refused is replaced, in one sentence; "" when none was named."""
    if endpoint.token is not None:
        return "Store a new one in the keyring and start again."
    if endpoint.token_file is not None:
        return f"Put a new one into {endpoint.token_file}: it is taken up at once."
    if endpoint.token_command:
        return f"{endpoint.token_command[0]} is asked for a new one at the next attempt."
    if endpoint.token_env:
        return f"Set {endpoint.token_env} to a new one and start again."
    return ""


def mark_of(endpoint: Endpoint) -> tuple[int, int] | None:
    """Changes when the token file does; None where there is nothing to look at."""
    if endpoint.token is not None or endpoint.token_file is None:
        return None
    try:
        found = endpoint.token_file.expanduser().stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _not_set(endpoint: Endpoint) -> str:
    if endpoint.kind == "hosted":
        ways = f"set {endpoint.token_env}, or name a token file, a command or a keyring entry in the profile"
        return f"No API key: {ways}."
    return f"No token: the environment variable {endpoint.token_env} is not set."


def token_file_advice(path: Path) -> str | None:
    """One sentence when others on this machine can read the token, else None."""
    if os.name != "posix":
        return None
    try:
        mode = path.stat().st_mode
    except OSError:
        return None
    if stat.S_IMODE(mode) & 0o077:
        return f"Others on this machine can read the token in {path}: run chmod 600 on it."
    return None


def _checked(value: str, source: str) -> str:
    token = value.strip()
    if not token:
        raise NoToken(f"{source} holds no token: it is empty.")
    if not token.isascii() or any(ord(c) <= 32 or ord(c) == 127 for c in token):
        raise NoToken(f"{source} does not hold a token: it has spaces, line breaks or other signs.")
    return token


def _from_file(path: Path) -> str:
    try:
        with path.expanduser().open("rb") as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        raise NoToken(f"The token file {path} does not exist.") from None
    except PermissionError:
        raise NoToken(f"The token file {path} may not be read by you.") from None
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        raise NoToken(f"The token file {path} cannot be read: {reason}.") from None
    if len(data) > _LARGEST:
        raise NoToken(f"The token file {path} is too large to be a token.")
    return data.decode("utf-8", "replace")


async def _from_command(argv: tuple[str, ...]) -> str:
    shown = argv[0]
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise NoToken(f"The token command {shown} was not found.") from None
    except (OSError, ValueError):
        raise NoToken(f"The token command {shown} cannot be run.") from None
    try:
        out, _ = await asyncio.wait_for(process.communicate(), _COMMAND_SECONDS)
    except TimeoutError:
        seconds = round(_COMMAND_SECONDS)
        raise NoToken(f"The token command {shown} gave no token within {seconds} seconds.") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
    if process.returncode != 0:
        raise NoToken(f"The token command {shown} failed with exit status {process.returncode}.")
    return out[: _LARGEST + 1].decode("utf-8", "replace")
