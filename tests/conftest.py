"""Fixtures for all tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server import LETTA, RealServer, real_server

# The tests start hundreds of programs. What is compiled is kept, whatever the machine's habit is.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.setdefault("NODE_COMPILE_CACHE", str(Path(__file__).parents[1] / ".pytest_cache" / "node"))


@pytest.fixture(scope="session")
def letta_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    """One real server for the whole run. Do not stop it: tests that need that use ``own_server``.

    ``await letta_server.conversation()`` makes a conversation for the test at hand.
    """
    if not LETTA.exists():
        pytest.skip("the real server is not installed (pip install 'letta-tui[server]')")
    with real_server(tmp_path_factory.mktemp("letta")) as server:
        yield server


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RealServer]:
    """A real server of the test's own, to be killed and restarted at will (takes 3 s)."""
    if not LETTA.exists():
        pytest.skip("the real server is not installed (pip install 'letta-tui[server]')")
    with real_server(tmp_path / "letta") as server:
        yield server
