"""The practice model behind the real server: what a person of the demo meets."""

from __future__ import annotations

import uuid

import pytest

from tests.support.server import PlainSocket, RealServer

pytestmark = pytest.mark.real


def said(socket: PlainSocket, kind: str = "assistant_message", after: int = 0) -> str:
    text = ""
    for frame in socket.frames[after:]:
        delta = frame.get("delta") or {}
        if delta.get("message_type") == kind:
            content = delta.get("content") or delta.get("reasoning") or ""
            text += content if isinstance(content, str) else "".join(p.get("text", "") for p in content)
    return text


async def test_plain_words_and_scripts_stream(letta_server: RealServer) -> None:
    agent, conversation = letta_server.agent_id, await letta_server.conversation()
    async with letta_server.plain() as socket:
        await socket.join(agent, conversation)
        await socket.say(agent, conversation, "[[reason 3; words 5; say  exactly this]]")
        await socket.finished()
        assert said(socket, "reasoning_message") == "think0000 think0001 think0002 "
        assert said(socket) == "w0000 w0001 w0002 w0003 w0004 exactly this"
        mark = len(socket.frames)
        await socket.say(agent, conversation, "good morning")
        await socket.finished(mark)
        assert "show me markdown" in said(socket, after=mark)


async def test_a_command_asks_runs_once_and_its_result_is_told(letta_server: RealServer) -> None:
    agent, conversation = letta_server.agent_id, await letta_server.conversation()
    async with letta_server.plain() as socket:
        await socket.join(agent, conversation, cwd=str(letta_server.work))
        await socket.say(agent, conversation, "please run a command")
        asked = await socket.asked()
        assert asked["request"]["tool_name"] == "Bash"
        assert not (letta_server.work / "practice.txt").exists()
        await socket.decide(agent, conversation, asked["request_id"], allow=True)
        await socket.finished()
        made = (letta_server.work / "practice.txt").read_text()
        assert made.split()[0] in said(socket)


async def test_the_reason_of_a_denial_reaches_the_model(letta_server: RealServer) -> None:
    agent, conversation = letta_server.agent_id, await letta_server.conversation()
    async with letta_server.plain() as socket:
        await socket.join(agent, conversation, cwd=str(letta_server.work))
        await socket.say(agent, conversation, "write a file")
        asked = await socket.asked()
        assert asked["request"]["tool_name"] == "Write"
        assert asked["request"]["diffs"]
        await socket.decide(agent, conversation, asked["request_id"], allow=False, reason="plums, not pears")
        await socket.finished()
        assert "plums, not pears" in said(socket)
        assert not (letta_server.work / "practice.md").exists()


async def test_two_tools_ask_one_after_the_other(letta_server: RealServer) -> None:
    agent, conversation = letta_server.agent_id, await letta_server.conversation()
    async with letta_server.plain() as socket:
        await socket.join(agent, conversation, cwd=str(letta_server.work))
        await socket.say(agent, conversation, "two tools at once")
        first = await socket.asked()
        mark = len(socket.frames)
        await socket.decide(agent, conversation, first["request_id"], allow=True)
        second = await socket.wait(
            lambda f: f.get("type") == "control_request" and f["request_id"] != first["request_id"], mark
        )
        await socket.decide(agent, conversation, second["request_id"], allow=True)
        await socket.finished()
        assert (letta_server.work / "first.txt").exists()
        assert (letta_server.work / "second.txt").exists()


async def test_a_file_is_written_and_then_edited(letta_server: RealServer) -> None:
    agent, conversation = letta_server.agent_id, await letta_server.conversation()
    async with letta_server.plain() as socket:
        await socket.join(agent, conversation, cwd=str(letta_server.work))
        for words in ("write a file", "edit the file"):
            mark = len(socket.frames)
            await socket.say(agent, conversation, words)
            asked = await socket.asked(mark)
            await socket.decide(agent, conversation, asked["request_id"], allow=True)
            await socket.finished(mark)
        assert "twelve of them" in (letta_server.work / "practice.md").read_text()


async def test_scripted_replies_follow_each_other_and_runs_are_counted(letta_server: RealServer) -> None:
    agent, conversation = letta_server.agent_id, await letta_server.conversation()
    marker = uuid.uuid4().hex
    async with letta_server.plain() as socket:
        await socket.join(agent, conversation)
        await socket.say(
            agent, conversation, f"{marker} [[run echo one ==> say between; run echo two ==> say end]]"
        )
        await socket.finished()
        assert said(socket) == "betweenend"
    assert letta_server.runs(marker) == 1
    assert len(letta_server.model_requests(marker)) == 3
