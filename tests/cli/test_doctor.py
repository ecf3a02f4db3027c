"""What ``doctor`` finds, and what it advises."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from letta_tui.commands.checks import check_folder
from letta_tui.commands.session_checks import check_calls, check_logout
from letta_tui.paths import resolve


@pytest.mark.parametrize(
    ("conf", "dropin", "verdict"),
    [
        ("", "", "ok"),
        ("[Login]\n#KillUserProcesses=yes\n", "", "ok"),
        ("[Login]\nKillUserProcesses=yes\n", "", "warn"),
        ("[Login]\nKillUserProcesses=yes\n", "[Login]\nKillUserProcesses=no\n", "ok"),
        ("[Login]\nKillUserProcesses=no\n", "[Login]\nKillUserProcesses=true\n", "warn"),
        ("[Login]\nKillUserProcesses=yes\nKillExcludeUsers=root me\n", "", "ok"),
        ("no ini file at all", "", "ok"),
    ],
)
def test_a_logout_that_ends_turns_is_warned_of(tmp_path: Path, conf: str, dropin: str, verdict: str) -> None:
    (tmp_path / "logind.conf.d").mkdir()
    (tmp_path / "logind.conf").write_text(conf)
    (tmp_path / "logind.conf.d" / "50-x.conf").write_text(dropin)
    found = check_logout([tmp_path], systemd=tmp_path, user="me")
    assert found.verdict == verdict
    assert ("enable-linger" in found.advice) == (verdict == "warn")
    assert check_logout([tmp_path], systemd=tmp_path / "none", user="me").verdict == "ok"


@pytest.mark.parametrize(
    ("settings", "verdict", "advice"),
    [
        ({"focus-events": "off"}, "warn", "focus-events on"),
        ({"focus-events": "on", "allow-passthrough": "off"}, "ok", "allow-passthrough on"),
        ({"focus-events": "on", "allow-passthrough": "on"}, "ok", ""),
        ({}, "ok", ""),
    ],
)
def test_tmux_that_keeps_calls_back(settings: dict[str, str], verdict: str, advice: str) -> None:
    found = check_calls({"TMUX": "x"}, lambda name: settings.get(name, ""))
    assert found.verdict == verdict
    assert advice in found.advice
    assert check_calls({}, lambda name: "off").verdict == "ok"


def test_a_folder_that_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = resolve(environ={"LETTA_TUI_DATA_DIR": str(tmp_path)}).create()
    assert check_folder(paths).verdict == "ok"
    usage = shutil.disk_usage(tmp_path)
    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda folder: usage._replace(free=4096))
        assert check_folder(paths).verdict == "fail"
        assert "room" in check_folder(paths).advice

    class ReadOnly:
        f_flag = os.ST_RDONLY

    monkeypatch.setattr(os, "statvfs", lambda folder: ReadOnly)
    found = check_folder(paths)
    assert found.verdict == "fail"
    assert "read-only" in found.words
