"""``letta-tui send`` against the real server: answers, exit codes, and an id that never runs twice."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from letta_tui.commands import errors
from tests.cli.conftest import Done, Run
from tests.support.server import RealServer

pytestmark = pytest.mark.real


def server(letta_server: RealServer) -> list[str]:
    return ["--url", letta_server.url, "--token-file", str(letta_server.token_file)]


def read(done: Done) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(done.out)
    assert data["exit_code"] == done.code, done
    return data


def test_the_answer_is_printed(run: Run, letta_server: RealServer) -> None:
    done = run("send", *server(letta_server), "--agent", letta_server.agent_id, "[[say it is noon]]")
    assert (done.code, done.out, done.err) == (errors.OK, "it is noon\n", "")


def test_running_an_id_again_reports_the_first_run(run: Run, letta_server: RealServer) -> None:
    name, mark = str(uuid.uuid4()), uuid.uuid4().hex
    text = f"{mark} [[say number {{n}}]]"
    first = read(
        run("send", *server(letta_server), "--agent", letta_server.agent_id, "--id", name, "--json", text)
    )
    again = read(run("send", "--id", name, "--json"))
    assert first == again
    assert first["success"]
    assert first["client_message_id"] == name
    assert first["delivery"] == "delivered"
    assert first["stop_reason"] == "end_turn"
    assert first["run_ids"]
    assert first["duration_ms"] > 0
    assert letta_server.runs(mark) == 1
    listed = json.loads(run("ledger", "--json").out)
    assert [(row["client_message_id"], row["state"], row["turn"]) for row in listed] == [
        (name, "delivered", "done")
    ]
    assert run("explain", name[:8]).code == errors.OK
    wrong = run("send", "--id", name, "another text")
    assert wrong.code == errors.USAGE
    assert "belongs to another text" in wrong.one_sentence()


def test_each_agent_alone_is_a_new_conversation_and_nothing_is_the_last_one(
    run: Run, letta_server: RealServer
) -> None:
    agent = ["--agent", letta_server.agent_id, "--json", "[[say a]]"]
    one = read(run("send", *server(letta_server), *agent))
    two = read(run("send", *server(letta_server), *agent))
    three = read(run("send", "--json", "[[say b]]"))
    assert one["conversation"] != two["conversation"] == three["conversation"]


def test_a_tool_that_asks_is_told_and_nothing_runs(run: Run, letta_server: RealServer) -> None:
    mark = uuid.uuid4().hex
    text = f"[[run touch {mark}]]"
    done = run("send", *server(letta_server), "--agent", letta_server.agent_id, "--json", text)
    data = read(done)
    assert done.code == errors.APPROVAL_NEEDED
    assert data["waiting_for"]
    assert not (letta_server.work / mark).exists()
    # The keeper holds the conversation: the call is still there to be answered.
    assert "Start letta-tui to answer it" in data["error"]
    again = read(run("send", "--id", data["client_message_id"], "--json"))
    assert again["exit_code"] == errors.APPROVAL_NEEDED
    assert again["waiting_for"] == data["waiting_for"]
    assert not (letta_server.work / mark).exists()


TOOL = """
[profiles.default.tools.weather]
description = "Tells the weather."
command = ["sh", "-c", "echo x >> {runs}; echo sunny"]
"""


@pytest.mark.parametrize("mode", ["standard", pytest.param("unrestricted", marks=pytest.mark.long)])
@pytest.mark.long
def test_a_tool_of_ones_own_that_asks_is_not_run_and_its_turn_is_stopped(
    run: Run, folder: Path, letta_server: RealServer, tmp_path: Path, mode: str
) -> None:
    """Only this process could have run it, so a card left behind would be answered in vain."""
    runs = tmp_path / "runs"
    folder.mkdir(mode=0o700)
    (folder / "config.toml").write_text(TOOL.format(runs=runs))
    said = "[[call weather {} ==> say fin]]"
    data = read(
        run("send", *server(letta_server), "--agent", letta_server.agent_id, "--mode", mode, "--json", said)
    )
    again = read(run("send", "--id", data["client_message_id"], "--json"))
    for told in (data, again):
        assert told["exit_code"] == errors.APPROVAL_NEEDED
        assert "weather" in told["error"]
        assert "was not run and the turn was stopped" in told["error"]
    assert (again["delivery"], again["turn"]) == ("delivered", "cancelled")
    assert "Tools re-registered: weather." in again["notes"]
    assert not runs.exists()


def test_a_failed_turn_has_a_code_of_its_own(run: Run, letta_server: RealServer) -> None:
    done = run("send", *server(letta_server), "--agent", letta_server.agent_id, "[[http 400 no such thing]]")
    assert done.code == errors.TURN_FAILED
    assert "no such thing" in done.one_sentence()


def test_from_standard_input(run: Run, letta_server: RealServer, monkeypatch: pytest.MonkeyPatch) -> None:
    import io
    import sys

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("[[say grüße]]".encode())))
    done = run("send", *server(letta_server), "--agent", letta_server.agent_id, "--stdin")
    assert done.out == "grüße\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--url", "ftp://x", "hi"], "has to begin with ws://"),
        (["--url", "ws://user:secret@x", "hi"], "user name or password"),
        (["--url", "ws://127.0.0.1:1/ws", ""], "text is empty"),
        ([], "nothing to send"),
        (["a", "--stdin"], "not both"),
        (["--id", "", "hi"], "--id takes a word"),
        (["--id", "a b", "hi"], "--id takes a word"),
        (["--cwd", "/nowhere/at/all", "hi"], "does not exist"),
    ],
)
def test_bad_input_is_one_sentence(run: Run, arguments: list[str], words: str) -> None:
    done = run("send", *arguments)
    assert done.code == errors.USAGE
    assert words in done.one_sentence()
    assert "secret" not in done.err


def test_a_port_nobody_listens_on(run: Run) -> None:
    done = run("send", "--url", "ws://127.0.0.1:9/ws", "--agent", "agent-1", "--timeout", "2", "hi")
    assert done.code == errors.FAILED
    assert "not sent" in done.one_sentence() or "Nothing listens" in done.err


def test_a_wrong_token(run: Run, letta_server: RealServer, tmp_path: Path) -> None:
    wrong = tmp_path / "token"
    wrong.write_text("wrong-token-123")
    done = run("send", "--url", letta_server.url, "--token-file", str(wrong), "--agent", "agent-1", "hi")
    assert done.code == errors.FAILED
    assert "token" in done.one_sentence()
    assert "wrong-token-123" not in done.err
    gone = run(
        "send", "--url", letta_server.url, "--token-file", str(tmp_path / "none"), "--agent", "a", "hi"
    )
    assert gone.code == errors.FAILED
    assert "does not exist" in gone.one_sentence()


def test_an_unknown_conversation_and_agent(run: Run, letta_server: RealServer) -> None:
    base = server(letta_server)
    done = run("send", *base, "--agent", letta_server.agent_id, "--conversation", "local-conv-99999", "hi")
    assert done.code == errors.FAILED
    assert "local-conv-99999" in done.one_sentence() or "conversation" in done.err
    done = run("send", *base, "--agent", "agent-local-nobody", "hi")
    assert done.code == errors.FAILED
    assert done.one_sentence()


def test_no_letta_is_told_with_what_to_do(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LETTA_CLI_PATH", str(tmp_path / "letta"))
    done = run("send", "hi")
    assert done.code == errors.FAILED
    assert "no letta program at" in done.one_sentence()
