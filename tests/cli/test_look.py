"""The colours chosen in a window come back with the next one; the later word counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from letta_tui.commands.look import chosen_theme, remember_theme
from letta_tui.ui.options import Theme


@pytest.mark.parametrize(
    ("configured_then", "configured_now", "found"),
    [
        ("", "", "light"),
        ("dark", "dark", "light"),
        ("dark", "light", ""),  # the config file was changed after the choice
        ("", "dark", ""),  # a config file that says something now, or a profile with colours of its own
        ("dark", "", "light"),
    ],
)
def test_the_later_word_counts(
    tmp_path: Path, configured_then: Theme, configured_now: Theme, found: Theme
) -> None:
    file = tmp_path / "new" / "look.json"
    assert chosen_theme(file, configured_now) == ""
    assert remember_theme(file, "light", configured_then) == ""
    assert chosen_theme(file, configured_now) == found
    assert remember_theme(file, "", configured_now) == ""
    assert chosen_theme(file, configured_now) == ""


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "1", '{"theme": []}', '{"theme": "blue"}', "\xff", "[" * 9999]
)
def test_a_file_that_means_nothing_is_no_choice(tmp_path: Path, content: str) -> None:
    file = tmp_path / "look.json"
    file.write_text(content, encoding="latin-1")
    assert chosen_theme(file, "") == ""


def test_what_cannot_be_remembered_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    words = remember_theme(tmp_path / "file" / "look.json", "dark", "")
    assert words.startswith("The colours are for this window alone")
    assert words.endswith(".")
