"""A small MCP server: stdin and stdout, or Streamable HTTP on the port named as the argument."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("small")


@server.tool()
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return f"sum {a + b}"


@server.tool()
def broken() -> str:
    """Always fails."""
    raise ValueError("out of order")


if note := os.environ.get("PID_FILE"):
    with Path(note).open("a", encoding="ascii") as file:
        file.write(f"{os.getpid()}\n")
if len(sys.argv) > 1:
    server.run("streamable-http", port=int(sys.argv[1]))
else:
    server.run("stdio")
