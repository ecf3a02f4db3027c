"""Background tasks that are never lost: referenced until they end, and their errors are told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

log = logging.getLogger(__name__)


class Tasks:
    """``on_error`` gets the name of the task and the error it did not expect itself."""

    def __init__(self, on_error: Callable[[str, Exception], None]) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._on_error = on_error

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(self._guard(work, name), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _guard(self, work: Coroutine[Any, Any, None], name: str) -> None:
        try:
            await work
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log.exception("task %s failed", name)
            self._on_error(name, error)

    async def cancel_all(self) -> None:
        """Cancel everything and wait until it is gone, the caller excepted."""
        current = asyncio.current_task()
        tasks = [task for task in self._tasks if task is not current]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
