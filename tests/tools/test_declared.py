"""Tools and MCP servers in the config file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from letta_tui.config import ConfigError, load
from letta_tui.tools.declared import MCP_KEYS, TOOL_KEYS
from letta_tui.tools.running import run

DOCUMENT = Path(__file__).parents[2] / "letta_tui" / "docs" / "configuration.md"


def config(folder: Path, text: str) -> Path:
    file = folder / "config.toml"
    file.write_text(text, encoding="utf-8")
    return file


async def test_the_documented_example_works(tmp_path: Path) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    section = text[text.index("## Tools of your own") :]
    example = re.search(r"```toml\n(.*?)```", section, re.DOTALL)
    assert example is not None
    profile = load(config(tmp_path, example[1])).pick("default")
    (tool,) = profile.tools
    assert (tool.name, tool.approval, tool.timeout) == ("weather", "ask", 60)
    assert tool.wire()["parameters"]["required"] == ["city"]
    outcome = await run(tool, {"city": "Ulm"}, seconds=10)
    assert outcome.text == 'It is sunny. You asked: {"city": "Ulm"}'
    assert [server.name for server in profile.mcp] == ["files"]
    assert not [k.name for k in (*TOOL_KEYS, *MCP_KEYS) if f"`{k.name}`" not in section]


def test_paths_are_taken_from_the_files_folder_and_schemas_may_be_json(tmp_path: Path) -> None:
    schema = json.dumps({"type": "object", "properties": {"q": {"type": "string"}}})
    file = config(
        tmp_path,
        f"""
        [profiles.default.tools.find]
        description = "Finds"
        command = ["./find.sh"]
        parameters = '{schema}'
        cwd = "work"
        timeout = 5
        approval = "auto"
        environment = {{ LANG = "C" }}
        """,
    )
    (tool,) = load(file).pick(None).tools
    assert tool.cwd == tmp_path / "work"
    assert tool.parameters["properties"] == {"q": {"type": "string"}}
    assert (tool.timeout, tool.approval, dict(tool.environment)) == (5, "auto", {"LANG": "C"})


GOOD = 'description = "d"\ncommand = ["x"]\n'


@pytest.mark.parametrize(
    ("table", "body", "words"),
    [
        ("tools.w", 'command = ["x"]', "'tools.w' needs a 'description'"),
        ("tools.w", GOOD + "timeuot = 3", "There is no key 'timeuot' in 'tools.w': did you mean 'timeout'?"),
        ("tools.w", GOOD + "timeout = 900", "must be a number of seconds above zero and up to 280"),
        ("tools.w", GOOD + 'approval = "maybe"', "must be 'ask' or 'auto'"),
        ("tools.w", GOOD + "parameters = '{'", "is not valid JSON"),
        ("tools.w", GOOD + 'parameters = { type = "string" }', 'must be a JSON schema of type "object"'),
        ("tools.w", 'description = "d"\ncommand = "x"', "must be a list of texts"),
        ("tools.Bash", GOOD, "The server has a tool 'Bash' of its own"),
        ('tools."a b"', GOOD, "is no possible name"),
        ("mcp.m", 'approval = "ask"', "needs either a 'command' or a 'url'"),
        ("mcp.m", 'url = "ftp://x"', "must begin with http:// or https://"),
    ],
)
def test_a_wrong_declaration_is_one_clear_sentence(tmp_path: Path, table: str, body: str, words: str) -> None:
    file = config(tmp_path, f"[profiles.default.{table}]\n{body}\n")
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert words in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_skills_and_toolset_are_checked(tmp_path: Path) -> None:
    file = config(tmp_path, '[profiles.default]\nskill_sources = ["agent", "project"]\ntoolset = "codex"\n')
    profile = load(file).pick(None)
    assert (profile.skill_sources, profile.toolset) == (("agent", "project"), "codex")
    with pytest.raises(ConfigError, match="a list of 'bundled', 'global', 'agent' or 'project'"):
        load(config(tmp_path, '[profiles.default]\nskill_sources = ["agents"]\n'))
