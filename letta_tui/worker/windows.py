"""Which windows of this client are alive: a draft or an unsent message is taken over only from a dead one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from letta_tui.ledger.errors import LedgerError
from letta_tui.ledger.store import Ledger

_PREFIX = "window:"


def register(ledger: Ledger, window_id: str) -> None:
    """Note this process as the owner of the window. Failing is no harm: its draft can then be taken over."""
    started = _started(os.getpid())
    if started is None:
        return
    try:
        ledger.set_setting(_PREFIX + window_id, {"pid": os.getpid(), "started": started})
    except LedgerError:
        return


def is_alive(ledger: Ledger, window_id: str) -> bool:
    """Whether the process that owns the window still runs. A recycled process id has another start time."""
    noted: Any = ledger.setting(_PREFIX + window_id)
    if not isinstance(noted, Mapping) or not isinstance(noted.get("pid"), int):
        return False
    started = _started(noted["pid"])
    if started is None:
        return False
    return isinstance(noted.get("started"), int | float) and abs(started - noted["started"]) < 2.0


def _started(pid: int) -> float | None:
    """When the process began; ``None`` when there is none."""
    import psutil  # not before the window has something to show

    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return None
