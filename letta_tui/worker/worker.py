"""The background worker: a thread of its own with an event loop of its own.

A terminal that is not read freezes the view's loop for as long as it lasts, and the server drops a client
that neither answers nor reads; so sockets and the ledger live here, and the view only exchanges plain values.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from letta_tui.seam.channel import Mailbox
from letta_tui.seam.intents import Intent, Quit
from letta_tui.seam.updates import Closed, Update

if TYPE_CHECKING:
    from letta_tui.worker.config import WorkerConfig
    from letta_tui.worker.connecting import Open

log = logging.getLogger(__name__)


class Worker:
    """Implements :class:`letta_tui.seam.channel.WorkerPort`.

    ``start`` once; ``send`` from any thread, also before ``start``; the last update is always ``Closed``.
    """

    def __init__(self, config: WorkerConfig, *, open_: Open | None = None) -> None:
        """``open_`` makes a connection to an endpoint; the real one unless a test has another."""
        self._config = config
        self._open = open_
        self._mailbox = Mailbox()
        self._lock = threading.Lock()
        self._early: list[Intent] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inbox: asyncio.Queue[Intent] | None = None
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="letta-tui-worker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end of the thread; true when it has ended. Ask it to end with ``Quit`` first."""
        if self._thread.ident is None:
            return True  # never started
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def send(self, intent: Intent) -> None:
        with self._lock:
            if self._ended:
                return
            if self._loop is None or self._inbox is None:
                self._early.append(intent)
                return
            with contextlib.suppress(RuntimeError):  # the loop is closing: nobody can act on it any more
                self._loop.call_soon_threadsafe(self._inbox.put_nowait, intent)

    def drain(self) -> list[Update]:
        return self._mailbox.drain()

    def on_update(self, wake: Callable[[], None] | None) -> None:
        self._mailbox.on_update(wake)

    def stop(self, timeout: float = 10.0) -> bool:
        """Quit, keeping what runs, and wait."""
        self.send(Quit("keep"))
        return self.join(timeout)

    def _run(self) -> None:
        closed = Closed()
        try:
            closed = asyncio.run(self._main())
        except asyncio.CancelledError:
            log.info("the worker was cancelled")
        except Exception as error:
            log.exception("the worker ended by an unexpected error")
            closed = Closed(
                f"The background worker stopped by an error of its own ({type(error).__name__}); "
                "what was sent is in the ledger, start again to go on.",
                1,
            )
        finally:
            with self._lock:
                self._ended = True
                self._loop = None
            self._mailbox.put(closed)

    async def _main(self) -> Closed:
        from letta_tui.worker.engine import Engine  # here, on this thread: most of the program is behind it

        gc.freeze()  # what was loaded stays: looking through it again makes a key wait

        inbox: asyncio.Queue[Intent] = asyncio.Queue()
        with self._lock:
            self._loop = asyncio.get_running_loop()
            self._inbox = inbox
            for intent in self._early:
                inbox.put_nowait(intent)
            self._early = []
        return await Engine(self._config, self._mailbox, inbox, open_=self._open).run()
