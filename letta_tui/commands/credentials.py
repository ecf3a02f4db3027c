"""Tokens and keys, fetched from where a profile says they are, each time they are needed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from letta_tui.config import ConfigError, Profile


def read_secret_file(file: Path, what: str) -> str:
    """The stripped text of ``file``; ``what`` names it in the sentence when that fails."""
    try:
        text = file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise ConfigError(f"The {what} {file} does not exist.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"The {what} {file} holds no text.") from None
    except OSError as error:
        raise ConfigError(f"The {what} {file} cannot be read: {error.strerror or error}.") from None
    if not text:
        raise ConfigError(f"The {what} {file} is empty.")
    if any(c.isspace() or not c.isprintable() for c in text):
        raise ConfigError(f"The {what} {file} must hold one word and nothing else.")
    return text


def run_secret_command(command: tuple[str, ...], timeout: float = 60) -> str:
    """What ``command`` prints, stripped. It gets no standard input."""
    shown = command[0]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False
        )
    except FileNotFoundError:
        raise ConfigError(f"The token command {shown!r} was not found.") from None
    except subprocess.TimeoutExpired:
        raise ConfigError(f"The token command {shown!r} gave no answer within {timeout:.0f} s.") from None
    except OSError as error:
        raise ConfigError(f"The token command {shown!r} cannot be run: {error.strerror or error}.") from None
    if done.returncode != 0:
        raise ConfigError(f"The token command {shown!r} failed with exit code {done.returncode}.")
    token = done.stdout.decode("utf-8", "replace").strip()
    if not token or any(c.isspace() or not c.isprintable() for c in token):
        raise ConfigError(f"The token command {shown!r} must print one word and nothing else.")
    return token


def token_of(profile: Profile) -> str | None:
    """The token of a direct profile, read now; ``None`` when it has none."""
    if profile.token_file is not None:
        return read_secret_file(profile.token_file, "token file")
    if profile.token_command:
        return run_secret_command(profile.token_command)
    return None


def api_key_of(profile: Profile, environ: Mapping[str, str] | None = None) -> str:
    """The key of a hosted profile: from its file, its keyring entry, or the environment, in this order."""
    if profile.api_key_file is not None:
        return read_secret_file(profile.api_key_file, "API key file")
    if profile.api_key_keyring:
        return _from_keyring(profile.api_key_keyring)
    values = os.environ if environ is None else environ
    key = values.get(profile.api_key_env, "").strip()
    if not key:
        raise ConfigError(
            f"The hosted profile {profile.name!r} needs a key: set {profile.api_key_env}, or name an "
            "api_key_file or api_key_keyring in its table."
        )
    return key


def _from_keyring(entry: str) -> str:
    service, _, user = entry.partition("/")
    try:
        import keyring
    except ImportError:
        raise ConfigError(
            "api_key_keyring needs the package keyring: pip install 'letta-tui[keyring]'."
        ) from None
    try:
        key = keyring.get_password(service, user or service)
    except Exception as error:  # every backend has errors of its own
        raise ConfigError(f"The keyring gave no answer: {error}.") from None
    if not key:
        raise ConfigError(f"The keyring has no entry {entry!r}.")
    return key
