"""The keeper process: how it comes to life, what it notes of what it hears, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from letta_tui.keeper import notify
from letta_tui.keeper.control import SOCKET_NAME, ControlError
from letta_tui.keeper.custody import Custody
from letta_tui.keeper.desk import Desk
from letta_tui.keeper.ends import End, EndLog
from letta_tui.keeper.errors import AlreadyRunning, CannotRun
from letta_tui.keeper.files import KeeperLock, read_state
from letta_tui.keeper.identity import identify
from letta_tui.keeper.leaving import Leaving
from letta_tui.keeper.logs import limit
from letta_tui.keeper.options import KeeperOptions, KeeperPaths
from letta_tui.keeper.record import Look, Record
from letta_tui.keeper.watch import Place, Watch
from letta_tui.protocol import Frame

_TIDY_SECONDS = 60.0
_TRIM_SECONDS = 24 * 3600.0
_ONCE_SECONDS = 5.0  # in which windows that ask to be called for the same are one
_LINGER_SECONDS = 15.0  # after handing over: the next keeper has to be subscribed before this one is not


class Keeper:
    """One keeper. ``await run()`` returns when it has left; everything else happens on its event loop."""

    def __init__(
        self,
        paths: KeeperPaths,
        options: KeeperOptions,
        environ: Mapping[str, str],
        *,
        holds: tuple[Place, ...] = (),
        say: Callable[[str], None] = lambda words: None,
    ) -> None:
        me = identify(os.getpid())
        if me is None:
            raise CannotRun("This system does not tell a process about itself.")
        self._me = me
        self._paths = paths
        self._environ = environ
        self._manners = notify.Manners(options.notify, options.notify_after, options.notify_details)
        self._say = say
        self._companions = len(options.companions)
        self._own_holds = set(holds)
        self._lock = KeeperLock(paths.lock)
        self._log = EndLog(paths.ends)
        self._record = Record(paths.state_file, me)
        self._watch = Watch()
        self._was_busy: tuple[Place, ...] = ()
        self._called: dict[tuple[Place, str], float] = {}
        self._leave = asyncio.Event()
        self._leaving = Leaving(options.idle_seconds, self.leave)
        self._handed_over = False  # files, socket and server are the next keeper's
        self._custody = Custody(paths, options, environ, self._watch, self)
        self._desk = Desk(me, options, self._custody, self._watch, self._log, self)
        self._tasks: set[asyncio.Task[Any]] = set()

    # -- life ---------------------------------------------------------------------------------------------

    async def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Run until told to stop or idle for long enough. ``ready`` is called once windows can connect.

        Raises ``AlreadyRunning``, or ``CannotRun`` with one sentence.
        """
        try:
            if not self._lock.acquire():
                raise AlreadyRunning
        except OSError as error:
            raise CannotRun(f"The keeper cannot use {self._paths.state}: {error.strerror}.") from None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.leave)
        loop.add_signal_handler(signal.SIGHUP, lambda: None)  # the terminal it came from may go
        try:
            self._custody.link.wanted |= self._own_holds
            before = read_state(self._paths.state_file)
            died = before.server is not None and not before.server.identity.alive()
            last = _written(self._paths.state_file)
            await self._custody.take_over(before)
            if died:
                self._note_loss(before.busy, last)
            self.save()
            await self._desk.control.start(self._paths.runtime / SOCKET_NAME)
            self.consider()
            self._spawn(self._tidy())
            ready()
            await self._leave.wait()
        except ControlError as error:
            raise CannotRun(str(error)) from None
        finally:
            await self._end()

    def _note_loss(self, busy: tuple[Place, ...], since: float) -> None:
        """The keeper before this one left no word, and its server did not outlive it: ``busy`` went along.

        Windows may have gone the same way, so nobody noted that they left: ``since`` is when at the earliest.
        """
        now, words = (
            time.time(),
            "Keeper and server were ended from outside, perhaps by a logout or a restart.",
        )
        for place in busy:
            self._log.note(End(min(since, now), "left", *place))
        self._note([End(now, "server", *place, words=words) for place in busy])

    async def _end(self) -> None:
        self._leaving.cancel()
        for task in self._tasks:
            task.cancel()
        await self._custody.close(leave_running=self._handed_over)
        if not self._handed_over:
            self._record.leave()
        await self._desk.control.close()
        if not self._handed_over:
            with contextlib.suppress(OSError):  # something else is in it
                self._paths.runtime.rmdir()
        self._lock.release()

    def leave(self) -> None:
        self._leave.set()

    async def hand_over(self) -> None:
        """Make room for another keeper without a moment in which nobody is subscribed."""
        self.save()
        self._record.close()
        self._handed_over = True
        self._custody.retire(True)
        self._leaving.cancel()
        await self._desk.control.stop_listening()
        self._lock.release()
        asyncio.get_running_loop().call_later(_LINGER_SECONDS, self._after_handing_over)

    def _after_handing_over(self) -> None:
        """Leave; but go on if there never was a next keeper, which may not have been able to start."""
        if not self._handed_over:
            return  # two windows had asked
        try:
            # Whoever came wrote itself down, and whoever ended it wrote that.
            alone = self._lock.acquire() and read_state(self._paths.state_file).keeper == self._me
        except OSError:
            alone = False
        if not alone:
            self.leave()
            return
        self._handed_over = False
        self._custody.retire(False)
        self._record.reopen()
        self._spawn(self._listen())
        self.consider()

    async def _listen(self) -> None:
        try:
            await self._desk.control.start(self._paths.runtime / SOCKET_NAME)
        except ControlError as error:
            self.say(str(error))
            self.leave()

    def save(self) -> None:
        """Write down what the next keeper would adopt. Any thread."""
        self._record.save(self._look)

    def _look(self) -> Look:
        server = self._custody.server
        return Look(server.running, server.started, tuple(self._custody.link.wanted), self._watch.busy)

    def consider(self) -> None:
        """Something changed: let go of what nobody needs, and see whether there is a reason to stay."""
        if not self._custody.taking_back:
            self._custody.link.wanted &= set(self._was_busy) | self._own_holds | self._desk.places
        self.save()
        if self._handed_over:
            return
        # What a server that is not there was doing is no reason to wait for it for ever.
        kept_busy = bool(self._was_busy) and self._custody.reachable
        self._leaving.consider(self._desk.windows > 0 or kept_busy or bool(self._own_holds))

    def say(self, words: str) -> None:
        with contextlib.suppress(OSError):  # a full disk, a terminal that went
            self._say(words)

    async def _tidy(self) -> None:
        """However long it lives: let neither logs nor notes fill the disk, and be found by windows."""
        paths = self._paths
        logs = (paths.log, paths.server_log, *map(paths.companion_log, range(self._companions)))
        trimmed = -_TRIM_SECONDS
        while True:
            if (now := time.monotonic()) >= trimmed + _TRIM_SECONDS:
                trimmed = now
                with contextlib.suppress(OSError):
                    self._log.trim(time.time())
            await asyncio.to_thread(lambda: [limit(log) for log in logs])
            if not self._handed_over:
                with contextlib.suppress(ControlError):  # tried again in a minute
                    await self._desk.control.listen_again()
            await asyncio.sleep(_TIDY_SECONDS)

    @property
    def leaves_in(self) -> float | None:
        return self._leaving.leaves_in

    @property
    def words(self) -> str:
        """What is wrong with the keeper itself."""
        return self._record.words

    # -- what it hears ------------------------------------------------------------------------------------

    def frame(self, frame: Frame) -> None:
        self._note(self._watch.apply(frame, time.time()))
        busy = self._watch.busy
        if busy != self._was_busy:
            self._was_busy = busy
            # Prompts of every live conversation are heard; what is busy is held, window or not.
            for place in set(busy) - self._custody.link.wanted:
                self._custody.link.wanted.add(place)
                self._spawn(self._custody.link.hold(place))
            self.consider()

    def server_gone(self, words: str) -> None:
        self._note(self._watch.server_gone(time.time(), words))
        self._was_busy = ()

    def server_news(self, state: str, **more: str) -> None:
        self._desk.control.news({"news": "server", "state": state, **more})

    def _note(self, ends: list[End]) -> None:
        for end in ends:
            self._log.note(end)
            # A window that shows the conversation rings by itself, and the next keeper hears the same.
            words = "" if self._handed_over else notify.words_for(end, self._manners)
            if words and not self._desk.shows((end.agent_id, end.conversation_id)):
                notify.show(words, self._environ)
            self._desk.control.news({"news": "end", **end.to_json()})

    def call(self, place: Place, what: str) -> None:
        """For a window that nobody can see. Several may ask about the same: the person is called once."""
        now, words = time.monotonic(), notify.CALLS.get(what, "")
        if (
            words
            and self._manners.on
            and now - self._called.get((place, what), -_ONCE_SECONDS) >= _ONCE_SECONDS
        ):
            self._called[place, what] = now
            notify.show(words, self._environ)

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)  # the loop itself would let it be collected
        task.add_done_callback(self._tasks.discard)


def _written(file: Path) -> float:
    """When a file was last written, in seconds since the epoch; now if that cannot be told."""
    try:
        return file.stat().st_mtime
    except OSError:
        return time.time()
