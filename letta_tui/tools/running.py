"""One run of a tool's program: input as JSON on stdin, result from stdout, ended when its time is over."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from letta_tui.tools.values import Outcome, Tool

MOST_BYTES = 200_000  # of stdout that the model is told
_ERROR_BYTES = 4_000  # of stderr, from its end
_GRACE = 1.0  # seconds between the request to end and the end


async def run(
    tool: Tool, arguments: Mapping[str, Any], *, seconds: float, cwd: Path | None = None
) -> Outcome:
    """Run ``tool`` once. Every failure is an outcome. Cancelled: the program is ended first."""
    folder = tool.cwd or cwd
    try:
        process = await asyncio.create_subprocess_exec(
            *tool.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=folder,
            env={**os.environ, **tool.environment},
            start_new_session=True,  # so that what it starts can be ended with it
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        if folder is not None and not folder.is_dir():
            return Outcome(f"{tool.name} was not run: its folder {folder} does not exist.", failed=True)
        return Outcome(f"{tool.name} was not run: {tool.command[0]}: {reason}.", failed=True)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = _Kept(MOST_BYTES), _Kept(_ERROR_BYTES, newest=True)
    try:
        async with asyncio.timeout(seconds):
            await asyncio.gather(
                _feed(process.stdin, json.dumps(dict(arguments), ensure_ascii=False).encode()),
                out.read(process.stdout),
                err.read(process.stderr),
            )
            code = await process.wait()
    except TimeoutError:
        return Outcome(
            f"{tool.name} was stopped after {seconds:g} s; what it had done by then stays done.", failed=True
        )
    finally:
        await _end(process)
    text = out.text().rstrip("\n")
    if code == 0:
        return Outcome(text)
    how = f"exit code {code}" if code > 0 else f"signal {-code}"
    said = "\n".join(part for part in (text, err.text().strip()) if part)
    return Outcome(f"{tool.name} failed ({how}).{chr(10) + said if said else ''}", failed=True)


class _Kept:
    """What a pipe said, up to ``most`` bytes; the rest is read and dropped, so that nobody waits."""

    def __init__(self, most: int, *, newest: bool = False) -> None:
        self._most, self._newest = most, newest
        self._kept = bytearray()
        self._dropped = 0

    async def read(self, pipe: asyncio.StreamReader) -> None:
        while chunk := await pipe.read(65_536):
            if self._newest:
                self._kept += chunk
                del self._kept[: -self._most]
                continue
            room = self._most - len(self._kept)
            self._kept += chunk[:room]
            self._dropped += max(0, len(chunk) - room)

    def text(self) -> str:
        text = self._kept.decode(errors="replace")
        return f"{text}\n[{self._dropped} more bytes were left out]" if self._dropped else text


async def _feed(pipe: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(ConnectionError):  # it need not read its input
        pipe.write(data)
        await pipe.drain()
    with contextlib.suppress(ConnectionError):
        pipe.close()
        await pipe.wait_closed()


async def _end(process: asyncio.subprocess.Process) -> None:
    """End it and what it started, if any of it is left; nothing here may be cut short."""
    await asyncio.shield(asyncio.ensure_future(_ended(process)))


async def _ended(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        _signal(process, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                await process.wait()
    if process.returncode is None:
        _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
        await process.wait()
    elif hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGTERM)


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
