"""Which tools of the person's own are offered: declared ones and those of MCP servers, which may change."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from letta_tui.protocol import commands
from letta_tui.tools.deciding import changed_note
from letta_tui.tools.mcp import McpHost
from letta_tui.tools.values import Outcome, Tool
from letta_tui.worker.desk import AskFailed, Desk

PATIENCE = 8.0  # seconds the opening of a conversation waits for MCP servers; later ones are added
NEWS_SECONDS = 0.3  # a server that changes several tools says so several times


class Offering:
    """The tools as they are registered with every start, and again when an MCP server has others."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._host = McpHost(desk.config.mcp, self._news)
        self._own = {tool.name: tool for tool in desk.config.tools}
        self._offered: dict[str, Tool] = dict(self._own)
        self._missing: tuple[str, ...] = ()
        self._looking: asyncio.Task[None] | None = None
        self._late = False
        self._changed = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._offered)

    @property
    def missing(self) -> tuple[str, ...]:
        """A sentence for each server whose tools could not be offered."""
        return self._missing

    def get(self, name: str) -> Tool | None:
        return self._offered.get(name)

    async def groups(self) -> list[dict[str, Any]]:
        """What a start registers; MCP servers that do not run are started, and all are listed afresh."""
        if self._desk.config.mcp:
            if self._looking is None or self._looking.done():
                self._late = False
                self._looking = self._desk.tasks.spawn(self._look(), "MCP servers")
            done, _ = await asyncio.wait({self._looking}, timeout=PATIENCE)
            self._late = not done
        return self._groups()

    async def call(self, tool: Tool, arguments: Mapping[str, Any], *, seconds: float) -> Outcome:
        """Have the tool's MCP server run it."""
        return await self._host.call(tool, arguments, seconds=seconds)

    async def close(self) -> None:
        """End the MCP servers."""
        await self._host.stop()

    def _groups(self) -> list[dict[str, Any]]:
        return [{"tools": [tool.wire() for tool in self._offered.values()]}] if self._offered else []

    async def _list(self) -> None:
        self._changed = False
        tools, self._missing = await self._host.offer()
        self._offered = {**{tool.name: tool for tool in tools}, **self._own}

    async def _look(self) -> None:
        await self._list()
        if not self._late or self._desk.room is None:
            return
        for words in self._missing:
            self._desk.tell(words, "warning")
        added = [name for name in self._offered if name not in self._own]
        if added and await self._register():
            self._desk.tell(f"Tools are ready: {', '.join(added)}.")

    def _news(self) -> None:
        """An MCP server says that it has other tools now."""
        self._changed = True
        if self._looking is None or self._looking.done():
            self._looking = self._desk.tasks.spawn(self._look_again(), "MCP servers")

    async def _look_again(self) -> None:
        while self._changed:
            await asyncio.sleep(NEWS_SECONDS)
            before = self._offered
            await self._list()
            if self._offered == before or self._desk.link is None:
                continue  # the next start registers them
            if await self._register():
                note = changed_note(list(before), list(self._offered))
                self._desk.tell(note or "An MCP server described its tools anew; they are registered again.")

    async def _register(self) -> bool:
        desk, room = self._desk, self._desk.room
        if room is None:
            return False
        room.own_tools = frozenset(self._offered)
        try:
            await desk.ask(commands.external_tools_update([room.runtime], self._groups()))
        except AskFailed as failed:
            desk.tell(f"Tools of MCP servers could not be registered: {failed.words}", "warning")
            return False
        # As at a start: what the conversation has is what the next start compares with.
        desk.ledger.remember_conversation(room.place, state={"external_tools": list(self.names)}, used=False)
        return True
