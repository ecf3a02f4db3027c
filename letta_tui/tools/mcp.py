"""MCP servers of the config file: started with the session, their tools listed, ended with it.

The official ``mcp`` package is an extra; nothing of it is imported before a server is declared.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import logging
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import IO, Any

from letta_tui import __version__
from letta_tui.tools.values import TAKEN, McpServer, Outcome, Tool

log = logging.getLogger(__name__)

START_SECONDS = 20.0
STOP_SECONDS = 8.0  # longer than the package takes to end a server that does not want to
LIST_SECONDS = 10.0
LISTEN_AGAIN_SECONDS = 1.0
_MOST_PAGES = 100

MISSING = "MCP servers need a package: pip install 'letta-tui[mcp]'."


class McpFailed(Exception):
    """A server did not start or does not answer; the message is one sentence."""


def installed() -> bool:
    """Whether the package is there."""
    try:
        importlib.import_module("mcp")
    except ImportError:
        return False
    return True


class McpSession:
    """One server. ``start`` again after it has died starts it anew. ``on_change``: it offers other tools."""

    def __init__(self, server: McpServer, on_change: Callable[[], None] = lambda: None) -> None:
        self.server = server
        self._on_change = on_change
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._client: Any = None

    @property
    def alive(self) -> bool:
        return self._task is not None and not self._task.done() and self._client is not None

    async def start(self) -> None:
        """Start the server and shake hands with it. Raises ``McpFailed``."""
        if self.alive:
            return
        await self.stop()
        self._stop = asyncio.Event()
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Its contexts must be left by the task that entered them.
        self._task = asyncio.create_task(self._live(ready, self._stop), name=f"mcp {self.server.name}")
        try:
            await asyncio.wait_for(asyncio.shield(ready), START_SECONDS)
        except TimeoutError:
            ready.cancel()
            await self.stop()
            raise McpFailed(
                f"MCP server {self.server.name} did not answer within {START_SECONDS:.0f} s."
            ) from None

    async def stop(self) -> None:
        """End the server; its process is gone afterwards."""
        task, self._task = self._task, None
        if task is None:
            return
        self._stop.set()
        if self._client is None:
            task.cancel()
        done, _ = await asyncio.wait({task}, timeout=STOP_SECONDS)
        if not done:
            task.cancel()
            await asyncio.wait({task}, timeout=STOP_SECONDS)
        self._client = None

    async def tools(self) -> tuple[Tool, ...]:
        """What it offers now. Raises ``McpFailed``."""
        found: list[Tool] = []
        cursor: str | None = None
        try:
            async with asyncio.timeout(LIST_SECONDS):
                for _ in range(_MOST_PAGES):
                    page = await self._client.list_tools(cursor=cursor, cache_mode="refresh")
                    found += [tool_of(self.server, tool) for tool in page.tools]
                    cursor = page.next_cursor
                    if not cursor:
                        break
        except Exception as error:
            raise McpFailed(
                f"MCP server {self.server.name} did not list its tools: {_words(error)}."
            ) from None
        return tuple(found)

    async def call(self, name: str, arguments: Mapping[str, Any], *, seconds: float) -> Outcome:
        """One call. Every failure is an outcome; after the time is over the server may still finish it."""
        if not self.alive:
            return Outcome(f"MCP server {self.server.name} has ended; {name} was not run.", failed=True)
        try:
            async with asyncio.timeout(seconds):
                result = await self._client.call_tool(name, dict(arguments))
        except TimeoutError:
            return Outcome(
                f"{name} gave no answer within {seconds:g} s; whether it did its work is not known.",
                failed=True,
            )
        except Exception as error:
            return Outcome(f"{name} failed: {_words(error)}.", failed=True)
        return outcome_of(result)

    async def _live(self, ready: asyncio.Future[None], stop: asyncio.Event) -> None:
        """From start to end, in one task."""
        client = None
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
            try:
                async with AsyncExitStack() as stack:
                    client = await stack.enter_async_context(await self._connect(stack, said))
                    self._client = client
                    if not ready.done():
                        ready.set_result(None)
                    listening = asyncio.create_task(self._listen(client), name=f"mcp {self.server.name} news")
                    try:
                        await stop.wait()
                    finally:
                        listening.cancel()
                        await asyncio.gather(listening, return_exceptions=True)
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                log.info("MCP server %s ended: %r", self.server.name, error)
                if not ready.done():
                    ready.set_exception(
                        McpFailed(f"MCP server {self.server.name} did not start: {_why(error, said)}.")
                    )
            finally:
                if self._client is client:
                    self._client = None
                if not ready.done():
                    ready.set_exception(McpFailed(f"MCP server {self.server.name} did not start."))
                if not ready.cancelled():
                    ready.exception()  # whoever gave up waiting does not read it

    async def _listen(self, client: Any) -> None:
        """Newer servers tell of changes to those who ask for it; older ones by a message (``_heard``)."""
        refused = importlib.import_module("mcp.client.subscriptions").ListenNotSupportedError
        while True:
            try:
                async with client.listen(tools_list_changed=True) as news:
                    async for _ in news:
                        self._on_change()
            except refused:
                return
            except Exception as error:
                log.info("MCP server %s tells no news: %r", self.server.name, error)
                if not self.alive or "Lost" not in type(error).__name__:
                    return
                self._on_change()  # what was told meanwhile is not repeated
            await asyncio.sleep(LISTEN_AGAIN_SECONDS)

    async def _heard(self, message: object) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            self._on_change()

    async def _connect(self, stack: AsyncExitStack, said: IO[str]) -> Any:
        mcp = importlib.import_module("mcp")
        server = self.server
        info = mcp.Implementation(name="letta-tui", version=__version__)
        if server.url:
            http = importlib.import_module("mcp.client.streamable_http")
            token = token_of(server)
            headers = {"Authorization": f"Bearer {token}"} if token else None
            client = await stack.enter_async_context(http.create_mcp_http_client(headers=headers))
            transport = http.streamable_http_client(server.url, http_client=client)
            return mcp.Client(transport, client_info=info, message_handler=self._heard)
        parameters = mcp.StdioServerParameters(
            command=server.command[0],
            args=list(server.command[1:]),
            env={**os.environ, **server.environment},
            cwd=server.cwd,
        )
        transport = mcp.stdio_client(parameters, errlog=said)
        return mcp.Client(transport, client_info=info, message_handler=self._heard)


class McpHost:
    """All servers of a profile. A server that fails is told of and does not keep the others waiting."""

    def __init__(self, servers: Sequence[McpServer], on_change: Callable[[], None] = lambda: None) -> None:
        self._sessions = {server.name: McpSession(server, on_change) for server in servers}

    async def offer(self) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
        """Start what does not run, and list; the tools, and a sentence for each server that failed."""
        if not self._sessions:
            return (), ()
        if not await asyncio.to_thread(installed):  # importing it takes seconds
            return (), (MISSING,)
        results = await asyncio.gather(*(self._offer(s) for s in self._sessions.values()))
        tools = tuple(tool for found, _ in results for tool in found)
        return tools, tuple(words for _, words in results if words)

    async def call(self, tool: Tool, arguments: Mapping[str, Any], *, seconds: float) -> Outcome:
        return await self._sessions[tool.source].call(tool.source_name, arguments, seconds=seconds)

    async def stop(self) -> None:
        await asyncio.gather(*(session.stop() for session in self._sessions.values()))

    @staticmethod
    async def _offer(session: McpSession) -> tuple[tuple[Tool, ...], str]:
        for _ in range(2):
            try:
                await session.start()
                return await session.tools(), ""
            except McpFailed as failed:
                words = str(failed)
                if not session.alive:
                    break
                await session.stop()  # it answers no more: a new one may
        return (), words


def token_of(server: McpServer) -> str:
    """The bearer token of ``url``; "" for none. Raises ``OSError`` for a file that cannot be read."""
    if server.token_file is not None:
        return server.token_file.read_text(encoding="utf-8").strip()
    return os.environ.get(server.token_env, "") if server.token_env else ""


def tool_of(server: McpServer, raw: Any) -> Tool:
    """One of a server's tools under a name that no other server's can have."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", f"{server.name}__{raw.name}")[:64]
    schema = raw.input_schema if isinstance(raw.input_schema, dict) else {}
    return Tool(
        name=f"{name[:60]}_own" if name in TAKEN else name,
        description=raw.description or raw.title or raw.name,
        parameters={"type": "object", "properties": {}, **schema},
        approval=server.approval,
        timeout=server.timeout,
        source=server.name,
        source_name=raw.name,
    )


def outcome_of(result: Any) -> Outcome:
    """A result as text. What is no text is named with its size, since a model reads only text here."""
    parts = [_part(part) for part in result.content or ()]
    structured = getattr(result, "structured_content", None)
    if structured is not None and not any(getattr(part, "text", None) for part in result.content or ()):
        # A server says the same as text too, unless it is of the kind that does not.
        parts.append(json.dumps(structured, ensure_ascii=False))
    return Outcome("\n".join(parts), failed=bool(result.is_error))


def _part(part: Any) -> str:
    """One block of a result."""
    resource = getattr(part, "resource", None)
    text = getattr(part, "text", None) if resource is None else getattr(resource, "text", None)
    if isinstance(text, str):
        return text
    kind = getattr(part, "type", "something")
    if kind == "resource_link":
        return f"[link to {part.name}: {part.uri}]"
    source = part if resource is None else resource
    data = getattr(source, "data", None) or getattr(source, "blob", None) or ""
    what = getattr(source, "mime_type", None) or kind
    where = f" {source.uri}" if resource is not None else ""
    return f"[{what}{where}, {_size(data)}, not shown: only text is told here]"


def _size(encoded: str) -> str:
    """Of base64 text, decoded."""
    size = len(encoded) * 3 // 4 - encoded[-2:].count("=")
    return f"{size} bytes" if size < 1000 else f"{round(size / 1000)} KB"


def _words(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return "it gave no answer"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return (str(error) or type(error).__name__).splitlines()[0].rstrip(".")


def _why(error: BaseException, said: IO[str]) -> str:
    """The error, and the last line the server wrote about it."""
    with contextlib.suppress(OSError, ValueError):
        said.seek(0)
        lines = [line.strip() for line in said.read().splitlines() if line.strip()]
        if lines:
            return f"{_words(error)} ({lines[-1][:200].rstrip('.')})"
    return _words(error)
