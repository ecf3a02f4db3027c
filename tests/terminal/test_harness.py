"""The harness itself can fail: otherwise no test that uses it means anything."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.terminal.screen import Gone, Terminal

pytestmark = pytest.mark.terminal


def run(code: str, folder: Path) -> Terminal:
    return Terminal(
        [sys.executable, "-c", code], {"PATH": os.environ["PATH"], "TERM": "xterm-256color"}, folder
    )


def test_it_sees_text_keys_and_exit_codes(tmp_path: Path) -> None:
    with run("print('ready'); print(input()[::-1]); raise SystemExit(3)", tmp_path) as terminal:
        terminal.wait("ready")
        terminal.say("abc")
        terminal.wait("cba")
        assert terminal.ended() == 3
        assert terminal.restored()


def test_it_notices_what_does_not_come(tmp_path: Path) -> None:
    with run("print('one')", tmp_path) as terminal, pytest.raises(Gone, match="did not show"):
        terminal.wait("two", timeout=5)


def test_it_notices_a_terminal_left_in_mouse_and_raw_mode(tmp_path: Path) -> None:
    code = "import tty; tty.setraw(0); print('\\x1b[?1003h', end='', flush=True)"
    with run(code, tmp_path) as terminal:
        terminal.ended()
        assert not terminal.restored(timeout=0.3)
