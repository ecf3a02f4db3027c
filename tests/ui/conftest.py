"""Makes the helpers beside the tests importable, and gives each test a fake worker."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fakeport import FakePort


@pytest.fixture
def port() -> FakePort:
    return FakePort()
