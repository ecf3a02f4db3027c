"""Where things live, and who may look at them."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from letta_tui.paths import SOCKET_PATH_LIMIT, PathsError, private_folder, resolve


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_one_variable_moves_everything_below_one_folder() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        check_everything_is_below(Path(short))


def check_everything_is_below(tmp_path: Path) -> None:
    paths = resolve("work", {"LETTA_TUI_DATA_DIR": str(tmp_path)}).create()
    for folder in (paths.config, paths.data, paths.state, paths.cache, paths.runtime):
        assert folder.is_dir()
        assert folder.is_relative_to(tmp_path)
    assert paths.data.name == "work"
    assert resolve("other", {"LETTA_TUI_DATA_DIR": str(tmp_path)}).ledger != paths.ledger


def test_nobody_else_can_enter(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        paths = resolve("work", {"LETTA_TUI_DATA_DIR": str(tmp_path / "new")}).create()
    finally:
        os.umask(old)
    for folder in (paths.data, paths.state, paths.cache, paths.runtime):
        assert mode(folder) == 0o700


def test_a_folder_that_was_open_is_closed_but_a_chosen_one_is_left_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    paths = resolve("work", {"LETTA_TUI_DATA_DIR": str(tmp_path)}).create()
    paths.state.chmod(0o755)
    paths.create()
    assert mode(paths.state) == 0o700
    assert mode(tmp_path) == 0o755


def test_the_socket_folder_is_short_whatever_the_data_folder_is(tmp_path: Path) -> None:
    deep = tmp_path / ("long" * 20) / ("longer" * 10)
    paths = resolve("work", {"LETTA_TUI_DATA_DIR": str(deep)})
    again = resolve("work", {"LETTA_TUI_DATA_DIR": str(deep)})
    other = resolve("play", {"LETTA_TUI_DATA_DIR": str(deep)})
    assert len(os.fsencode(paths.runtime / ("x" * 16))) <= SOCKET_PATH_LIMIT
    assert paths.runtime == again.runtime != other.runtime


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "-x", "a b", "ä", "x" * 65, "a\n"])
def test_a_profile_name_cannot_leave_its_folder(name: str) -> None:
    with pytest.raises(PathsError, match="no name for a profile"):
        resolve(name, {"LETTA_TUI_DATA_DIR": "/nowhere"})


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "profiles").write_text("")
    with pytest.raises(PathsError, match=r"cannot be made|needed as a folder"):
        resolve("work", {"LETTA_TUI_DATA_DIR": str(tmp_path)}).create()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 12345, 12345)
    with pytest.raises(PathsError, match="belongs to another user"):
        private_folder(theirs)
