"""What is left behind when the view itself fails."""

from __future__ import annotations

import traceback
from pathlib import Path


def report(error: BaseException, log_path: Path | None) -> str:
    """Append the traceback to the log and give back the one sentence for the person.

    Values of variables are left out: they may hold text of the conversation.
    """
    name = type(error).__name__
    saved = "What you were writing is kept, and nothing was sent."
    if log_path is None:
        return f"letta-tui stopped because of an error of its own ({name}). {saved}"
    try:
        log_path.parent.mkdir(parents=True, exist_ok=True)
        with log_path.open("a", encoding="utf-8") as log:
            log.write("".join(traceback.format_exception(error)))
    except OSError as trouble:
        return (
            f"letta-tui stopped because of an error of its own ({name}). {saved} "
            f"The log could not be written: {trouble.strerror}."
        )
    return f"letta-tui stopped because of an error of its own ({name}). {saved} Details: {log_path}"
