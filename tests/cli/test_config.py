"""The config file: what it can say, and how a mistake in it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from letta_tui.config import KEYS, ConfigError, load

GOOD = """
profile = "work"

[profiles.work]
kind = "direct"
url = "wss://letta.example/ws"
token_file = "secrets/work.token"
mode = "strict"

[profiles.local]
idle_minutes = 5
environment = { LANG = "C" }

[profiles.cloud]
kind = "hosted"
device = "device-1"
keyring = "letta/me"
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "config.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_profiles_are_read(tmp_path: Path) -> None:
    config = load(written(tmp_path, GOOD))
    work = config.pick(None)
    assert (work.name, work.kind, work.url, work.mode) == (
        "work",
        "direct",
        "wss://letta.example/ws",
        "strict",
    )
    assert work.token_file == tmp_path / "secrets/work.token"
    local = config.pick("local")
    assert (local.kind, local.idle_minutes, local.environment) == ("embedded", 5.0, {"LANG": "C"})
    assert config.pick("cloud").where == "device device-1 at https://api.letta.com"
    assert config.pick("default").kind == "embedded"


def test_no_file_is_an_empty_one(tmp_path: Path) -> None:
    config = load(tmp_path / "config.toml")
    assert not config.exists
    assert config.pick(None).kind == "embedded"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("profil = 'x'", "no key 'profil' at the top of .* Did you mean 'profile'"),
        ("[profiles.a]\nkin = 'direct'", r"no key 'kin' in \[profiles.a\] .*'kind'"),
        ("[profiles.a]\ntokn_file = 'x'", "Did you mean 'token_file'"),
        ("[profiles.a]\nkind = 'dirct'", "did you mean 'direct'"),
        ("[profiles.a]\nkind = 'direct'", "needs a 'url'"),
        ("[profiles.a]\nkind = 'direct'\nurl = 3", "must be text"),
        ("[profiles.a]\nkind = 'direct'\nurl = 'ws://x'\ntoken = 'abc'", "No secret belongs"),
        ("[profiles.a]\nurl = 'ws://x'", "'url' .* belongs to kind 'direct'"),
        ("[profiles.a]\nidle_minutes = 0", "number above zero"),
        ("[profiles.a]\nidle_minutes = true", "number above zero"),
        ("[profiles.a]\ntelemetry = 'yes'", "true or false"),
        ("[profiles.a]\nenvironment = { A = 1 }", "table of texts"),
        ("[profiles.a]\nkind = 'direct'\nurl = 'ws://x'\ntoken_command = 'pass x'", "list of texts"),
        (
            "[profiles.a]\nkind = 'direct'\nurl = 'ws://x'\ntoken_env = 'A'\ntoken_file = 'b'",
            "one of 'token_file' or 'token_env'",
        ),
        ("[profiles.'a b']\n", "no name for a profile"),
        ("profiles = 3", "must be tables"),
        ("[profiles]\na = 3", "must be a table"),
        ("profile = 'missing'", "no profile 'missing'"),
        ("[profiles.work]\n[profiles.home]\n[profiles.work]", "not valid TOML"),
        ("profile = ", "not valid TOML"),
    ],
)
def test_a_mistake_is_named_in_one_sentence_with_the_file(tmp_path: Path, text: str, words: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ConfigError, match=words) as caught:
        load(file).pick(None)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "abc" not in str(caught.value)


def test_other_bytes_are_no_toml(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not text in UTF-8"):
        load(file)


def test_every_key_is_documented() -> None:
    words = (Path(__file__).parents[2] / "letta_tui" / "docs" / "configuration.md").read_text(
        encoding="utf-8"
    )
    missing = [key.name for key in KEYS if f"| `{key.name}` |" not in words]
    assert not missing
