"""Fixtures of the reducers' tests."""

from __future__ import annotations

import pytest

from tests.conversation.screen import Screen


@pytest.fixture
def screen() -> Screen:
    return Screen()
