"""A small MCP server: stdin and stdout, or Streamable HTTP on the port named as the argument."""

from __future__ import annotations

import base64
import os
import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import BlobResourceContents, CallToolResult, EmbeddedResource, ImageContent, TextContent

server = MCPServer("small")


@server.tool()
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return f"sum {a + b}"


@server.tool()
def broken() -> str:
    """Always fails."""
    raise ValueError("out of order")


@server.tool()
def picture() -> CallToolResult:
    """Draws."""
    data = base64.b64encode(bytes(12_000)).decode()
    blob = BlobResourceContents(uri="file:///a.bin", mime_type="application/x-thing", blob="AAAA")
    return CallToolResult(
        content=[
            TextContent(text="here:"),
            ImageContent(data=data, mime_type="image/png"),
            EmbeddedResource(resource=blob),
        ]
    )


@server.tool()
async def grow(ctx: Context) -> str:
    """Adds a tool, takes one away, and tells so."""
    server.add_tool(lambda: "grown", name="grown", description="New.")
    server.remove_tool("broken")
    await ctx.session.send_tool_list_changed()
    await ctx.notify_tools_changed()
    return "more"


if note := os.environ.get("PID_FILE"):
    with Path(note).open("a", encoding="ascii") as file:
        file.write(f"{os.getpid()}\n")
if len(sys.argv) > 1:
    server.run("streamable-http", port=int(sys.argv[1]))
else:
    server.run("stdio")
