"""What is said, and kept, about an error nobody foresaw."""

from __future__ import annotations

import os
import tempfile
import time
import traceback
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
