"""Where everything of ours lives: one value with every folder and file of a profile.

``LETTA_TUI_DATA_DIR`` moves all of it below one folder; otherwise the platform's own folders are used.
Nothing here opens a file; :meth:`Paths.create` is the only function that writes, and what it makes can be
entered by its owner alone.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

APP = "letta-tui"
DATA_DIR_VARIABLE = "LETTA_TUI_DATA_DIR"
DEFAULT_PROFILE = "default"
DEMO_PROFILE = "demo"

#: ``sun_path`` holds 104 bytes with its closing zero on macOS and the BSDs, 108 on Linux.
SOCKET_PATH_LIMIT = 100

_LONGEST_SOCKET_NAME = len("/") + 20

_PROFILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class PathsError(Exception):
    """A folder cannot be used; the message is one clear sentence."""


@dataclass(frozen=True, slots=True)
class Paths:
    """The folders of one profile. All absolute; none is guaranteed to exist before :meth:`create`.

    ``config`` and ``shared`` are there once for every profile: the profiles are described in the one, and
    what was chosen for all of them is remembered in the other. ``runtime`` is *not* the
    session's runtime folder: that one is emptied when the person logs out, while a keeper may live on. It is
    short enough for a Unix socket with a name of 20 bytes.
    """

    profile: str
    config: Path
    shared: Path
    data: Path
    state: Path
    cache: Path
    runtime: Path

    @property
    def config_file(self) -> Path:
        return self.config / "config.toml"

    @property
    def look(self) -> Path:
        """The colours chosen in a window (JSON); may be deleted at any time."""
        return self.shared / "look.json"

    @property
    def ledger(self) -> Path:
        """The send ledger (SQLite)."""
        return self.data / "ledger.sqlite3"

    @property
    def cache_db(self) -> Path:
        """The transcript cache: may be deleted at any time, and never delays a send."""
        return self.cache / "transcripts.sqlite3"

    @property
    def log(self) -> Path:
        """Tracebacks and unknown frames; never message bodies."""
        return self.state / "letta-tui.log"

    def create(self) -> Paths:
        """Make every folder, 0700, and return ``self``; :class:`PathsError` when one cannot be used."""
        try:
            # Not closed to others when it exists: it may be a folder that the person chose and shares.
            self.config.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            words = error.strerror or error
            raise PathsError(f"The folder {self.config} cannot be made: {words}.") from None
        folders = [self.data, self.state, self.cache, self.runtime]
        if not self.runtime.is_relative_to(self.state):
            folders.insert(0, self.runtime.parent)  # in a shared temporary folder: ours, or refused
        for folder in folders:
            private_folder(folder)
        return self


def _runtime(state: Path) -> Path:
    """A folder for sockets, always the same one for the same ``state``: below it unless that is too long."""
    wanted = state / "run"
    if _fits(wanted):
        return wanted
    owner = f"{APP}-{os.getuid()}" if hasattr(os, "getuid") else APP
    digest = hashlib.sha256(os.fsencode(state)).hexdigest()[:16]
    short = Path(tempfile.gettempdir()) / owner / digest
    return short if _fits(short) else Path("/tmp") / owner / digest


def _fits(folder: Path) -> bool:
    return len(os.fsencode(folder)) + _LONGEST_SOCKET_NAME <= SOCKET_PATH_LIMIT


def private_folder(folder: Path) -> None:
    """Make ``folder`` if needed and close it to everyone else.

    A folder of another user is refused: in a shared temporary folder somebody else could have made it first.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = folder.lstat()
    except FileExistsError:
        raise PathsError(f"{folder} is needed as a folder, but a file has that name.") from None
    except OSError as error:
        raise PathsError(f"The folder {folder} cannot be made: {error.strerror or error}.") from None
    if stat.S_ISLNK(info.st_mode):
        info = folder.stat()
    if not hasattr(os, "getuid"):
        return
    if info.st_uid != os.getuid():
        raise PathsError(f"The folder {folder} belongs to another user; it is not used.")
    if stat.S_IMODE(info.st_mode) & 0o077:
        try:
            folder.chmod(0o700)
        except OSError as error:
            words = error.strerror or error
            raise PathsError(f"The folder {folder} cannot be closed to others: {words}.") from None


def check_profile_name(name: str) -> str:
    """``name`` itself, or :class:`PathsError`: it becomes the name of a folder."""
    if not _PROFILE.fullmatch(name):
        raise PathsError(
            f"{name!r} is no name for a profile: letters, digits, dots, dashes and underscores, "
            "64 at most, starting with a letter or digit."
        )
    return name


def resolve(profile: str = DEFAULT_PROFILE, environ: Mapping[str, str] | None = None) -> Paths:
    """The folders of ``profile``; ``environ`` defaults to the process's environment."""
    check_profile_name(profile)
    values = os.environ if environ is None else environ
    override = values.get(DATA_DIR_VARIABLE, "")
    if override:
        root = Path(override).expanduser().absolute()
        home = root / "profiles" / profile
        return Paths(
            profile=profile,
            config=root,
            shared=root,
            data=home,
            state=home / "state",
            cache=home / "cache",
            runtime=_runtime(home / "state"),
        )
    from platformdirs import PlatformDirs  # imported late: `--version` needs none of this

    dirs = PlatformDirs(APP, appauthor=False)
    shared = Path(dirs.user_state_dir)
    state = shared / "profiles" / profile
    return Paths(
        profile=profile,
        config=Path(dirs.user_config_dir),
        shared=shared,
        data=Path(dirs.user_data_dir) / "profiles" / profile,
        state=state,
        cache=Path(dirs.user_cache_dir) / "profiles" / profile,
        runtime=_runtime(state),
    )
