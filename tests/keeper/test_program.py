"""Finding letta, and the environment it is given."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from letta_tui.keeper.program import NoProgram, find_letta, server_environment


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_order_of_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = executable(tmp_path / "named")
    configured = executable(tmp_path / "configured")
    python = executable(tmp_path / "venv" / "python")
    on_path = executable(tmp_path / "bin" / "letta")
    monkeypatch.setattr(sys, "executable", str(python))
    environ = {"LETTA_CLI_PATH": str(configured), "PATH": str(on_path.parent)}
    assert find_letta(named, environ) == [str(named)]
    assert find_letta(None, environ) == [str(configured)]
    assert find_letta(None, {"PATH": environ["PATH"]}) == [str(on_path)]
    beside = executable(tmp_path / "venv" / "letta")
    assert find_letta(None, {"PATH": environ["PATH"]}) == [str(beside)]


def test_a_script_is_run_by_node(tmp_path: Path) -> None:
    script = tmp_path / "letta.js"
    script.write_text("")
    node = executable(tmp_path / "bin" / "node")
    assert find_letta(None, {"LETTA_CLI_PATH": str(script), "PATH": str(node.parent)}) == [
        str(node),
        str(script),
    ]
    with pytest.raises(NoProgram, match="Node"):
        find_letta(None, {"LETTA_CLI_PATH": str(script), "PATH": ""})


def test_without_any_the_sentence_names_the_ways_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(NoProgram) as refused:
        find_letta(None, {"PATH": str(tmp_path)})
    for way in ("letta-tui[server]", "LETTA_CLI_PATH", "--url"):
        assert way in str(refused.value)
    with pytest.raises(NoProgram, match="LETTA_CLI_PATH"):
        find_letta(None, {"LETTA_CLI_PATH": str(tmp_path / "gone")})


def test_the_environment_is_cleaned_and_quiet_unless_the_person_said_otherwise() -> None:
    inherited = {"MEMORY_DIR": "/other", "LETTA_MEMORY_DIR": "/other", "KEEP": "1", "SECRET": "s"}
    assert server_environment(inherited, {"SECRET": None, "HOME": "/h"}) == {
        "KEEP": "1",
        "HOME": "/h",
        "LETTA_CODE_TELEM": "0",
        "DISABLE_AUTOUPDATER": "1",
    }
    wanted = server_environment({"LETTA_CODE_TELEM": "1", "DISABLE_AUTOUPDATER": "0"}, {})
    assert (wanted["LETTA_CODE_TELEM"], wanted["DISABLE_AUTOUPDATER"]) == ("1", "0")
