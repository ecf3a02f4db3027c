"""The script language and the plain words, without a server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from letta_tui.practice import speech, texts
from letta_tui.practice.script import Step, parse, script_in, unescape
from letta_tui.worker.approving import DENIED, DENIED_BECAUSE


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def called(*calls: tuple[str, str]) -> dict[str, Any]:
    return {
        "role": "assistant",
        "tool_calls": [{"id": i, "function": {"name": n, "arguments": "{}"}} for i, n in calls],
    }


def returned(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def request(*messages: dict[str, Any], tools: bool = True) -> dict[str, Any]:
    return {"messages": list(messages), "tools": [{"function": {"name": "Bash"}}] if tools else []}


def test_steps_are_read_in_order_with_their_options() -> None:
    steps = parse("words 3 rate=20 tag=AB; sleep 1.5; reason 2; say a, b; run ls -l; hang")
    assert steps is not None
    assert [s.kind for s in steps] == ["words", "sleep", "reason", "say", "call", "hang"]
    assert (steps[0].amount, steps[0].rate, steps[0].tag) == (3, 20, "AB")
    assert steps[3].text == "a, b"
    assert steps[4].arguments == {"command": "ls -l"}


def test_a_tool_takes_the_rest_and_a_call_its_json() -> None:
    assert parse("tool a; b") == (Step("call", tool="shell", arguments={"command": "a; b"}),)
    steps = parse('call Grep {"pattern": "a;b"}; say x')
    assert steps == (Step("call", tool="Grep", arguments={"pattern": "a;b"}), Step("say", "x"))


def test_replies_follow_the_arrow() -> None:
    script = "run a ==> run b ==> say end"
    assert parse(script, 2) == (Step("say", "end"),)
    assert parse(script, 3) is None


@given(st.text())
def test_no_script_raises(text: str) -> None:
    parse(text)
    script_in(f"[[{text}]]")
    unescape(text)


def test_escapes_become_the_characters_they_name() -> None:
    assert unescape(r"\e[31m\x9b\u202e\a\\n") == "\x1b[31m\x9b\u202e\a\\n"


def test_reminders_are_nobodys_words() -> None:
    reminder = "<system-reminder>run a command</system-reminder>"
    ask = speech.read(
        request(user(f"{reminder}\nhello"), called(("c", "Bash")), returned("c", "42"), user(reminder))
    )
    assert ask.user == "hello"
    summary = '{"type":"system_alert","message":"run a command"}'
    assert speech.read(request(user(f"{summary}\nhello"))).user == "hello"
    assert (ask.reply, ask.results) == (1, (("Bash", "42"),))


def test_a_new_message_starts_anew_even_after_tools() -> None:
    ask = speech.read(
        request(user("[[run a]]"), called(("c", "Bash")), returned("c", "42"), user("[[say b]]"))
    )
    assert ask.reply == 0
    assert speech.answer(ask) == (Step("say", "b"),)


def test_the_denials_reason_is_repeated() -> None:
    ask = speech.Ask(
        "run a command", 1, (("Bash", "Error: request to call tool denied. User reason: too early"),)
    )
    (step,) = speech.answer(ask)
    assert "too early" in step.text


def test_the_words_this_program_denies_with_are_understood() -> None:
    for words in (DENIED, DENIED_BECAUSE.format(reason="too early")):
        (step,) = speech.answer(speech.Ask("run a command", 1, (("Bash", words),)))
        assert "It ran" not in step.text
        assert ("too early" in step.text) == ("too early" in words)


def test_a_result_that_only_mentions_denial_is_none() -> None:
    ask = speech.Ask("run a command", 1, (("Bash", "x" * 500 + " permission denied"),))
    (step,) = speech.answer(ask)
    assert step.text.startswith("It ran.")


@pytest.mark.parametrize(
    ("words", "tool"),
    [
        ("please run a command", "shell"),
        ("write a file", "write"),
        ("edit the file", "edit"),
        ("look around", "shell"),
    ],
)
def test_plain_words_call_tools(words: str, tool: str) -> None:
    assert speech.answer(speech.Ask(words))[-1].tool == tool


def test_two_tools_are_two_calls_and_three_steps_come_one_by_one() -> None:
    assert [s.kind for s in speech.answer(speech.Ask("two tools at once"))].count("call") == 2
    for done in range(3):
        results = (("Bash", "ok"),) if done else ()
        steps = speech.answer(speech.Ask("three steps", done, results))
        assert [s.kind for s in steps].count("call") == 1
    assert all(s.kind != "call" for s in speech.answer(speech.Ask("three steps", 3, (("Write", "ok"),))))


def test_without_tools_it_is_a_title_or_a_summary() -> None:
    ask = speech.read(request(user("[[hang]]"), tools=False))
    assert [s.kind for s in speech.answer(ask)] == ["say"]


def test_calls_follow_the_servers_schema() -> None:
    tools = [
        {
            "function": {
                "name": "Bash",
                "parameters": {
                    "properties": {"command": {"type": "string"}, "description": {"type": "string"}},
                    "required": ["command", "description"],
                },
            }
        }
    ]
    name, arguments = speech.call(Step("call", tool="shell", arguments={"command": "ls"}), tools)
    assert name == "Bash"
    assert arguments["command"] == "ls"
    assert arguments["description"]
    json.dumps(arguments)


@given(st.text())
def test_fragments_lose_nothing(text: str) -> None:
    assert "".join(texts.fragments(text)) == text


def test_markdown_has_the_size_asked_for_and_is_the_same_every_time() -> None:
    text = texts.markdown(20, seed=3)
    assert 20 * 1024 <= len(text) < 21 * 1024
    assert text == texts.markdown(20, seed=3) != texts.markdown(20, seed=4)
