"""The channel between windows and keeper: a Unix socket, one JSON object a line, both ways.

The keeper speaks first: ``{"keeper": "letta-tui", "control": 1, "version": …, "pid": …, "started": …}``.
Then questions ``{"id": 1, "do": "hold", …}`` get answers ``{"id": 1, "ok": true, …}`` or
``{"id": 1, "ok": false, "error": "one sentence"}``; questions that take long do not delay others. Lines
with ``news`` and no id are said unasked.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from letta_tui.paths import PathsError, private_folder

CONTROL = 1  # raised when an older keeper could not serve a newer window
LINE_LIMIT = 8 * 1024 * 1024
SOCKET_NAME = "keeper.sock"
_LONGEST_PATH = 100  # bytes; macOS takes 103, Linux 107


class ControlError(Exception):
    """Told to the window as it stands: one sentence. ``lasting``: asking again will not help by itself."""

    def __init__(self, words: str, *, lasting: bool = False) -> None:
        super().__init__(words)
        self.lasting = lasting


class Peer:
    """One connected window or command."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.attached = False  # a window, that counts; not a passing command
        self.holds: set[tuple[str, str]] = set()

    def say(self, message: Mapping[str, Any]) -> None:
        if not self._writer.is_closing():
            self._writer.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")


Handler = Callable[[Peer, str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


class ControlServer:
    """``handle`` answers questions or raises ``ControlError``; ``gone`` hears of every peer that left."""

    def __init__(self, handle: Handler, gone: Callable[[Peer], None], hello: Mapping[str, Any]) -> None:
        self._handle = handle
        self._gone = gone
        self._hello = hello
        self._server: asyncio.Server | None = None
        self._path: Path | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.peers: set[Peer] = set()

    async def start(self, path: Path) -> None:
        """Listen at ``path``. The caller holds the keeper's lock, so a file found there is a dead one."""
        if len(os.fsencode(path)) > _LONGEST_PATH:
            raise ControlError(f"The path {path} is too long for a socket; choose a shorter data folder.")
        try:
            private_folder(path.parent)
            _remove(path)
        except PathsError as error:
            raise ControlError(str(error)) from None
        except OSError as error:
            raise ControlError(f"The keeper cannot listen at {path}: {error.strerror or error}.") from None
        before = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._serve, path, limit=LINE_LIMIT)
        except OSError as error:
            raise ControlError(f"The keeper cannot listen at {path}: {error.strerror or error}.") from None
        finally:
            os.umask(before)
        self._path = path

    async def listen_again(self) -> None:
        """If somebody cleaned the socket away: windows would find no keeper, and could not start one."""
        path = self._path
        if path is None or path.exists():
            return
        await self.stop_listening()
        self._path = path
        await self.start(path)

    def news(self, message: Mapping[str, Any]) -> None:
        for peer in self.peers:
            if peer.attached:
                peer.say(message)

    async def stop_listening(self) -> None:
        """Nobody new can connect, and another keeper can take the place; who is connected stays."""
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._path is not None:
            _remove(self._path)
            self._path = None

    async def close(self) -> None:
        """Stop listening and hang up on everybody, after what was said has gone out."""
        await self.stop_listening()
        tasks = self._tasks - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        me = asyncio.current_task()
        assert me is not None
        self._tasks.add(me)
        peer = Peer(writer)
        self.peers.add(peer)
        questions: set[asyncio.Task[None]] = set()
        try:
            peer.say(self._hello)
            while line := await reader.readline():
                task = asyncio.create_task(self._answer(peer, line))
                questions.add(task)
                task.add_done_callback(questions.discard)
                await writer.drain()
        except (ConnectionError, ValueError):  # ValueError: a line beyond the limit
            pass
        except asyncio.CancelledError:
            pass  # only ``close`` does this; asyncio would log a cancelled handler as an error
        finally:
            self.peers.discard(peer)
            self._tasks.discard(me)
            for task in questions:
                task.cancel()
            with contextlib.suppress(OSError, RuntimeError):
                writer.close()
            self._gone(peer)

    async def _answer(self, peer: Peer, line: bytes) -> None:
        try:
            question = json.loads(line)
        except ValueError:
            question = None
        if not isinstance(question, dict) or not isinstance(question.get("do"), str):
            peer.say({"ok": False, "error": "That was no question."})
            return
        try:
            answer = await self._handle(peer, question["do"], question)
        except ControlError as error:
            refusal = {"ok": False, "error": str(error), "lasting": error.lasting}
            peer.say({"id": question.get("id"), **refusal})
        else:
            peer.say({"id": question.get("id"), "ok": True, **answer})


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
