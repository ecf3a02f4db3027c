"""What is said, and kept, about an error nobody foresaw."""

from __future__ import annotations

import os
import tempfile
import time
import traceback
from collections.abc import Mapping
from pathlib import Path

from letta_tui import paths


def describe(error: BaseException, arguments: list[str] | None = None) -> str:
    """Write the traceback of ``error`` to the log and return the sentence that names the file."""
    what = str(error).strip().splitlines()
    kind = type(error).__name__
    words = f"{kind}: {what[0]}" if what and what[0] else kind
    log = write(error, arguments)
    where = f"Details are in {log}." if log else "The details could not be written to a file."
    return f"Something unexpected went wrong ({words}). {where}"


def write(error: BaseException, arguments: list[str] | None = None) -> Path | None:
    """Append the traceback to the profile's log, 0600; to the temporary folder when that is impossible."""
    text = "".join(traceback.format_exception(error))
    # Only option names: the text of a message or a path is nobody's business in a bug report.
    shown = [a.split("=", 1)[0] if a.startswith("-") else "…" for a in arguments or ()]
    entry = f"--- {time.strftime('%Y-%m-%d %H:%M:%S %z')} {' '.join(shown)}\n{text}\n"
    for log in _places():
        try:
            log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(entry)
        except OSError:
            continue
        return log
    return None


def _places() -> list[Path]:
    try:
        first = [paths.resolve().log]
    except paths.PathsError:
        first = []
    return [*first, Path(tempfile.gettempdir()) / f"{paths.APP}-{os.getpid()}.log"]


def log_to(file: Path, environ: Mapping[str, str] = os.environ) -> None:
    """Send the program's own log to ``file`` (0600), and nothing to the terminal that is being drawn on.

    ``LETTA_TUI_LOG`` names the least level (``debug``, ``info``, ``warning``; the default is ``warning``).
    A file that cannot be written costs the log, not the conversation.
    """
    import logging
    import logging.handlers

    level = getattr(logging, environ.get("LETTA_TUI_LOG", "warning").upper(), logging.WARNING)
    root = logging.getLogger()
    root.handlers.clear()
    handler: logging.Handler
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600))
        handler = logging.handlers.RotatingFileHandler(
            file, maxBytes=2_000_000, backupCount=1, encoding="utf-8"
        )
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root.addHandler(handler)
    root.setLevel(level if isinstance(level, int) else logging.WARNING)
