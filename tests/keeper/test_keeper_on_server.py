"""The keeper with the real server: what must survive, what must end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time

import pytest

from letta_tui.keeper import client
from letta_tui.keeper.client import KeeperError, KeeperHandle, find_keeper, stop_keeper
from letta_tui.keeper.files import read_state
from tests.keeper.conftest import Household
from tests.support.server import until

pytestmark = pytest.mark.real


async def noted(window: KeeperHandle, kind: str, conversation: str, times: int = 1) -> bool:
    ends = await window.ends_since(0, conversation_id=conversation)
    return sum(e.kind == kind for e in ends) >= times


async def busy(window: KeeperHandle, agent: str, conversation: str) -> bool:
    return (agent, conversation) in (await window.status()).busy


async def held(window: KeeperHandle, agent: str, conversation: str) -> bool:
    return (agent, conversation) in (await window.status()).holds


@pytest.mark.long  # the same is shown with the whole program in tests/terminal
async def test_a_turn_goes_on_when_the_window_dies_in_the_middle(household: Household) -> None:
    window = await household.ensure()
    agent, conversation = await household.conversation(window)
    assert await window.hold(agent, conversation)
    begun = time.time()
    async with await household.socket(window) as socket:
        await socket.join(agent, conversation)
        await socket.say(agent, conversation, "top secret [[words 30 rate=20; say THE END]]")
        await socket.wait(lambda f: (f.get("delta") or {}).get("message_type") == "assistant_message")
        socket.cut()
    await window.close()
    later = await household.ensure()
    assert (agent, conversation) in (await later.status()).busy

    await until(lambda: noted(later, "turn", conversation))
    left, end = await later.ends_since(begun, agent, conversation)
    assert left.kind == "left"
    assert end.stop_reason == "end_turn"
    assert end.seconds is not None
    async with await household.socket(later) as socket:
        rows = await socket.ask(
            "conversation_messages_list", conversation_id=conversation, query={"agent_id": agent}
        )
        assert "THE END" in str(rows["messages"])
        # Not wedged: it takes another message.
        await socket.join(agent, conversation)
        await socket.say(agent, conversation, "[[say again]]")
        assert (await socket.finished())["stop_reason"] == "end_turn"
    await until(lambda: noted(later, "turn", conversation, times=2))
    notes = household.paths.ends.read_text()
    assert "secret" not in notes
    assert "THE END" not in notes
    await later.forget(agent, conversation)
    assert await later.ends_since(0, agent, conversation) == ()


@pytest.mark.long  # the same is shown with the whole program in tests/terminal
async def test_an_approval_waits_for_the_next_window(household: Household) -> None:
    window = await household.ensure()
    agent, conversation = await household.conversation(window)
    assert await window.hold(agent, conversation)
    async with await household.socket(window) as socket:
        await socket.join(agent, conversation, cwd=str(household.folder / "work"))
        await socket.say(agent, conversation, "[[run touch it-ran; run touch never ==> say done]]")
        asked = await socket.asked()
        socket.cut()
    await window.close()
    later = await household.ensure()
    async with await household.socket(later) as socket:
        await socket.join(agent, conversation)
        again = await socket.asked()
        assert again["request_id"] == asked["request_id"]
        mark = len(socket.frames)
        await socket.decide(agent, conversation, again["request_id"], allow=True)
        second = await socket.wait(
            lambda f: f.get("type") == "control_request" and f["request_id"] != asked["request_id"], mark
        )
        await socket.decide(agent, conversation, second["request_id"], allow=False, reason="not this")
        await socket.finished()
    assert (household.folder / "work" / "it-ran").exists()
    assert not (household.folder / "work" / "never").exists()

    await until(lambda: noted(later, "turn", conversation))
    ends = await later.ends_since(0, agent, conversation)
    ends = tuple(e for e in ends if e.kind != "left")
    assert [e.kind for e in ends] == ["approval", "approval", "turn"]
    assert (ends[-1].tools, ends[-1].denied) == (("Bash",), ("Bash",))


@pytest.mark.long  # the same is shown with the whole program in tests/terminal
async def test_a_killed_keeper_is_replaced_and_its_server_adopted(household: Household) -> None:
    window = await household.ensure()
    agent, conversation = await household.conversation(window)
    assert await window.hold(agent, conversation)
    before = await window.endpoint()
    async with await household.socket(window) as socket:
        await socket.join(agent, conversation)
        await socket.say(agent, conversation, "[[words 150 rate=25; say THE END]]")
        os.kill(window.pid, signal.SIGKILL)
        await until(lambda: window.gone)
        with pytest.raises(KeeperError, match="gone"):
            await window.status()
        second = await household.ensure()
        assert second.pid != window.pid
        after = await second.endpoint()
        assert (after.url, after.life) == (before.url, before.life)
        # It held the conversation again by itself, so the other client may go as well.
        await until(lambda: held(second, agent, conversation))
        await until(lambda: busy(second, agent, conversation))
        socket.cut()
    await until(lambda: noted(second, "turn", conversation))
    (end,) = await second.ends_since(0, agent, conversation)
    assert end.stop_reason == "end_turn"


HASTY = """
import sys
from letta_tui.keeper import custody
custody._ADOPT_SECONDS = 0.01
from letta_tui.keeper.__main__ import main
sys.exit(main())
"""


@pytest.mark.long
async def test_a_server_that_is_slow_to_answer_is_adopted_with_its_turn(
    household: Household, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = await household.ensure()
    agent, conversation = await household.conversation(window)
    assert await window.hold(agent, conversation)
    before = await window.endpoint()
    socket = await household.socket(window)
    async with socket:
        await socket.join(agent, conversation)
        await socket.say(agent, conversation, "[[words 60 rate=20; say THE END]]")
        await until(lambda: busy(window, agent, conversation))
        os.kill(window.pid, signal.SIGKILL)
        servers = [process for process in household.ours() if process.pid != window.pid]
        for process in servers:
            process.suspend()
        monkeypatch.setattr(client, "_PROGRAM", (sys.executable, "-c", HASTY))
        second = await household.ensure()
        assert (await second.status()).holds == ()
        for process in servers:
            process.resume()
        after = await second.endpoint()
        assert after.life == before.life
        await until(lambda: held(second, agent, conversation))
        socket.cut()
    await until(lambda: noted(second, "turn", conversation))
    (end,) = await second.ends_since(0, agent, conversation)
    assert end.stop_reason == "end_turn"


@pytest.mark.long
async def test_a_killed_server_is_noted_and_started_anew_on_demand(household: Household) -> None:
    window = await household.ensure()
    agent, conversation = await household.conversation(window)
    assert await window.hold(agent, conversation)
    news: list[str] = []
    window.on_news(lambda message: news.append(f"{message['news']} {message.get('state', '')}"))
    before = await window.endpoint()
    async with await household.socket(window) as socket:
        await socket.join(agent, conversation)
        await socket.say(agent, conversation, "[[words 100 rate=10]]")
        status = await window.status()
        assert status.server_pid is not None
        await until(lambda: busy(window, agent, conversation))
        os.kill(status.server_pid, signal.SIGKILL)
        await until(lambda: "server stopped" in news)
    ends = await window.ends_since(0, agent, conversation)
    assert [e.kind for e in ends] == ["server"]
    assert "unexpectedly" in ends[0].words
    assert (await window.status()).server == "stopped"
    after = await window.endpoint()
    assert after.life != before.life
    assert await window.hold(agent, conversation)


@pytest.mark.long
async def test_restart_is_another_life_of_the_server_and_sigterm_ends_it(household: Household) -> None:
    window = await household.ensure()
    agent, conversation = await household.conversation(window)
    assert await window.hold(agent, conversation)
    before = await window.endpoint()
    after = await window.restart_server()
    assert after.life != before.life
    await until(lambda: held(window, agent, conversation))
    os.kill(window.pid, signal.SIGTERM)
    await until(lambda: not household.ours(), what="keeper and server gone")


async def test_two_started_at_once_are_one(household: Household) -> None:
    windows = await asyncio.gather(*(household.ensure() for _ in range(4)))
    assert len({w.pid for w in windows}) == 1
    assert (await windows[0].status()).windows == 4
    where = await asyncio.gather(*(w.endpoint() for w in windows))
    assert len({w.life for w in where}) == 1


async def test_it_leaves_when_idle_and_takes_the_server_along(household: Household) -> None:
    window = await household.ensure(idle_seconds=0.3)
    await window.endpoint()
    status = await window.status()
    assert status.leaves_in is None
    await window.close()
    await until(lambda: not household.ours(), what="keeper and server gone")
    assert await find_keeper(household.paths) is None
    assert read_state(household.paths.state_file).server is None


async def test_an_open_approval_keeps_it_from_leaving(household: Household) -> None:
    window = await household.ensure(idle_seconds=0.3)
    agent, conversation = await household.conversation(window)
    assert await window.hold(agent, conversation)
    async with await household.socket(window) as socket:
        await socket.join(agent, conversation, cwd=str(household.folder / "work"))
        await socket.say(agent, conversation, "[[run touch kept]]")
        asked = await socket.asked()
        await window.close()
        watcher = await find_keeper(household.paths)
        assert watcher is not None
        household.handles.append(watcher)
        await asyncio.sleep(1)  # three times what it would wait
        status = await watcher.status()
        assert status.windows == 0
        assert status.leaves_in is None
        await socket.decide(agent, conversation, asked["request_id"], allow=True)
        await socket.finished()
    await until(lambda: not household.ours(), what="keeper and server gone")


async def test_stop_leaves_nothing(household: Household) -> None:
    companion = (
        sys.executable, "-m", "letta_tui.practice", "--log", str(household.folder / "companion.jsonl"),
    )  # fmt: skip
    window = await household.ensure(companions=(companion,))
    await window.endpoint()
    assert len(household.ours()) >= 3
    assert await stop_keeper(household.paths)
    assert household.ours() == []
    assert not await stop_keeper(household.paths)


async def test_stop_ends_what_a_killed_keeper_left(household: Household) -> None:
    window = await household.ensure()
    await window.endpoint()
    os.kill(window.pid, signal.SIGKILL)
    await until(lambda: window.gone)
    assert household.ours()
    assert await stop_keeper(household.paths)
    assert household.ours() == []


@pytest.mark.long
@pytest.mark.parametrize("delay", [step * 0.15 for step in range(20)])
async def test_killed_at_any_moment_it_is_replaced_and_nothing_is_left_twice(
    household: Household, delay: float
) -> None:
    companion = (
        sys.executable, "-m", "letta_tui.practice", "--log", str(household.folder / "companion.jsonl"),
    )  # fmt: skip
    window = await household.ensure(companions=(companion,))
    asking = asyncio.create_task(window.endpoint())
    await asyncio.sleep(delay)  # a moment, not a condition: each of them is to be survived
    os.kill(window.pid, signal.SIGKILL)
    await asyncio.gather(asking, return_exceptions=True)
    again = await household.ensure(companions=(companion,))
    agent, conversation = await household.conversation(again)
    assert await again.hold(agent, conversation)
    async with await household.socket(again) as socket:
        await socket.join(agent, conversation)
        await socket.say(agent, conversation, "[[say still here]]")
        assert (await socket.finished())["stop_reason"] == "end_turn"
    words = [" ".join(process.cmdline()) for process in household.ours()]
    assert sum("letta_tui.practice" in line for line in words) == 1
    assert sum("letta_tui.keeper" in line for line in words) == 1
    servers = [p for p in household.ours() if "--ws-token-file" in p.cmdline()]
    pids = {p.pid for p in servers}
    assert sum(p.ppid() not in pids for p in servers) == 1  # the wheel's script and its Node are one
    assert await stop_keeper(household.paths)
    assert household.ours() == []
