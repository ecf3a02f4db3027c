"""Another Letta program on the same data folder is found and named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from letta_tui.keeper.identity import identify
from letta_tui.keeper.sharing import data_folder, is_letta, others, words_about
from tests.support.server import until


def test_the_data_folder_is_the_one_the_program_uses(tmp_path: Path) -> None:
    assert data_folder({"HOME": "/h"}) == Path("/h/.letta/lc-local-backend")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert data_folder({"LETTA_LOCAL_BACKEND_DIR": str(tmp_path / "link")}) == tmp_path / "real"


@pytest.mark.parametrize(
    ("command", "is_one"),
    [
        (["/x/node", "/y/app/letta.js", "server"], True),
        (["/usr/bin/python3", "/v/bin/letta"], True),
        (["letta"], True),
        (["python", "-m", "letta_tui"], False),
        (["vim", "notes", "letta"], False),
        ([], False),
    ],
)
def test_programs_are_known_by_name(command: list[str], is_one: bool) -> None:
    assert is_letta(command) == is_one


async def test_others_on_the_folder_are_told_by_process(tmp_path: Path) -> None:
    program = tmp_path / "letta"
    program.write_text("import subprocess, sys\nsys.stdin.read()\n")
    command = [sys.executable, str(program)]

    def run(folder: str) -> subprocess.Popen[bytes]:
        environ = {"LETTA_LOCAL_BACKEND_DIR": str(tmp_path / folder), "HOME": str(tmp_path)}
        return subprocess.Popen(command, env=environ, stdin=subprocess.PIPE)

    running = [run("data"), run("data"), run("elsewhere")]
    try:
        own = identify(running[0].pid)
        assert own is not None
        environ = {"LETTA_LOCAL_BACKEND_DIR": str(tmp_path / "data")}
        await until(lambda: others(environ, own) == [running[1].pid])
        words = words_about(others(environ, own), tmp_path / "data")
        assert f"(process {running[1].pid})" in words
        assert str(tmp_path / "data") in words
    finally:
        for process in running:
            process.kill()
            process.wait()
    assert others(environ, own) == []
    assert words_about([], tmp_path) == ""
