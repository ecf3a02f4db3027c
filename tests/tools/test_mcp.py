"""MCP servers: a small one of the test's own, over stdio and HTTP."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from letta_tui.tools import mcp as ours
from letta_tui.tools.mcp import MISSING, McpHost
from letta_tui.tools.values import McpServer
from tests.support.server import until

SERVER = Path(__file__).with_name("mcp_server.py")
needs_mcp = pytest.mark.skipif(
    not ours.installed(), reason="the mcp package is not installed (pip install 'letta-tui[mcp]')"
)


def block(**values: Any) -> SimpleNamespace:
    return SimpleNamespace(**values)


def text(words: str) -> SimpleNamespace:
    return SimpleNamespace(type="text", text=words)


def small(pids: Path) -> McpServer:
    return McpServer("small", command=(sys.executable, str(SERVER)), environment={"PID_FILE": str(pids)})


@needs_mcp
async def test_tools_are_listed_called_and_ended_with_the_host(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    host = McpHost([small(pids), McpServer("gone", command=("/nowhere/server",))])
    try:
        tools, words = await host.offer()
        assert [tool.name for tool in tools] == [
            "small__add", "small__broken", "small__picture", "small__grow",
        ]  # fmt: skip
        assert words == ("MCP server gone did not start: /nowhere/server: No such file or directory.",)
        add, broken, picture, _ = tools
        outcome = await host.call(add, {"a": 2, "b": 3}, seconds=10)
        assert (outcome.text, outcome.failed) == ("sum 5", False)
        assert (await host.call(broken, {}, seconds=10)).failed
        assert (await host.call(picture, {}, seconds=10)).text.splitlines() == [
            "here:",
            "[image/png, 12 KB, not shown: only text is told here]",
            "[application/x-thing file:///a.bin, 3 bytes, not shown: only text is told here]",
        ]

        os.kill(int(pids.read_text()), signal.SIGKILL)
        assert (await host.call(add, {"a": 2, "b": 3}, seconds=10)).failed
        tools, _ = await host.offer()
        assert len(tools) == 4
        assert (await host.call(tools[0], {"a": 1, "b": 1}, seconds=10)).text == "sum 2"
    finally:
        await host.stop()
    assert not any(map(_exists, pids.read_text().split()))


@needs_mcp
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_server_that_has_other_tools_now_is_listed_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Any
) -> None:
    import mcp

    monkeypatch.setattr(mcp, "Client", partial(mcp.Client, mode=mode))
    news = asyncio.Event()
    host = McpHost([small(tmp_path / "pids")], news.set)
    try:
        tools, _ = await host.offer()
        assert not news.is_set()
        await host.call(tools[3], {}, seconds=10)
        await asyncio.wait_for(news.wait(), 10)
        tools, _ = await host.offer()
        assert [tool.source_name for tool in tools] == ["add", "picture", "grow", "grown"]
    finally:
        await host.stop()


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"content": [], "structured_content": {"a": [1]}}, '{"a": [1]}'),
        ({"content": [text("x")], "structured_content": {"a": 1}}, "x"),
        ({"content": [block(type="audio", data="AAA=", mime_type=None)]}, "[audio, 2 bytes, not shown"),
        ({"content": [block(type="resource_link", name="n", uri="file:///x")]}, "[link to n: file:///x]"),
        ({"content": [block(type="resource", resource=text("inside"))]}, "inside"),
        ({"content": None}, ""),
    ],
)
def test_what_is_no_text_is_named_and_not_lost(result: dict[str, Any], text: str) -> None:
    outcome = ours.outcome_of(block(**{"is_error": False, "structured_content": None, **result}))
    assert outcome.text.startswith(text)
    assert bool(outcome.text) == bool(text)


@needs_mcp
async def test_a_server_over_http_is_used_the_same_way(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SERVER), str(port), stderr=asyncio.subprocess.DEVNULL
    )
    host = McpHost([McpServer("web", url=f"http://127.0.0.1:{port}/mcp")])
    try:
        await until(lambda: _listens(port), what="it listens")
        tools, words = await host.offer()
        assert words == ()
        assert (await host.call(tools[0], {"a": 2, "b": 2}, seconds=10)).text == "sum 4"
    finally:
        await host.stop()
        process.kill()
        await process.wait()


async def test_without_the_package_there_is_one_clear_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "installed", lambda: False)
    assert await McpHost([McpServer("small", command=("x",))]).offer() == ((), (MISSING,))
    assert await McpHost([]).offer() == ((), ())


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _exists(pid: str) -> bool:
    return Path("/proc", pid).exists()
