"""Going away and coming back: the same conversation, nothing lost, nothing twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from letta_tui.seam.intents import AnswerQuestion, Decide, NewConversation, OpenConversation, SaveDraft
from letta_tui.worker.config import Target
from tests.support.seat import Seat, config_for
from tests.support.server import RealServer

pytestmark = pytest.mark.real


async def test_a_relaunch_opens_the_same_conversation_with_its_draft(
    letta_server: RealServer, tmp_path: Path
) -> None:
    first = await Seat.start(
        config_for(letta_server, tmp_path, target=Target(agent_id=letta_server.agent_id, new=True))
    ).ready()
    await first.said("[[say remembered]]")
    await first.reply("remembered")
    await first.rest()
    first.send(SaveDraft("half a thou"))
    conversation = first.status.conversation_id
    rows = [(r.kind, r.text) for r in first.rows]
    await first.quit()

    # Another window id: as a new process has it. The first one's process lives, but its window is the same
    # process here, so the draft is looked for under the old id.
    second = await Seat.start(config_for(letta_server, tmp_path)).ready()
    try:
        assert second.status.conversation_id == conversation
        assert [(r.kind, r.text) for r in second.rows] == rows
        assert [d.text for d in second.drafts] == ["half a thou"]
        assert second.recovery is None
    finally:
        await second.quit()


async def test_an_unknown_conversation_is_a_question_and_never_a_new_one(
    letta_server: RealServer, tmp_path: Path
) -> None:
    seat = Seat.start(
        config_for(
            letta_server,
            tmp_path,
            target=Target(agent_id=letta_server.agent_id, conversation_id="local-conv-99999"),
        )
    )
    try:
        question = await seat.until(lambda: seat.question, what="a question")
        assert "local-conv-99999" in question.body
        assert [choice.action for choice in question.choices] == ["new", "open_other", "reconnect"]
        assert (seat.status.mode, seat.status.cwd) == ("", "")  # of nothing that is open
        seat.send(OpenConversation("agent-local-of-another-server", "local-conv-1"))
        await seat.until(lambda: seat.question and "does not know the agent" in seat.question.title)
        assert [choice.action for choice in seat.question.choices] == ["open_other", "reconnect"]
        assert seat.connection is not None
        assert not seat.connection.can_send
        token = seat.say("into the void")
        settled = await seat.until(lambda: seat.settled.get(token))
        assert not settled.ok
        # The person chooses a conversation that exists.
        conversation = await letta_server.conversation()
        seat.send(OpenConversation(letta_server.agent_id, conversation))
        await seat.ready()
        await seat.until(lambda: seat.status.conversation_id == conversation)
        assert seat.question is None
    finally:
        await seat.quit()


@pytest.mark.long  # the same is shown with the whole program in tests/terminal
async def test_a_pending_approval_is_there_after_a_relaunch(letta_server: RealServer, tmp_path: Path) -> None:
    conversation = await letta_server.conversation()
    target = Target(agent_id=letta_server.agent_id, conversation_id=conversation)
    async with letta_server.plain() as keeper:  # somebody else holds the conversation
        await keeper.ask(
            "sync", runtime={"agent_id": letta_server.agent_id, "conversation_id": conversation},
            recover_approvals=False,
        )  # fmt: skip
        first = await Seat.start(config_for(letta_server, tmp_path, target=target)).ready()
        await first.said("[[run touch kept ==> say after]]")
        asked = (await first.until(lambda: first.approvals, what="an approval"))[0]
        await first.quit()

        second = await Seat.start(config_for(letta_server, tmp_path, target=target)).ready()
        try:
            again = (await second.until(lambda: second.approvals, what="the approval"))[0]
            assert again.request_id == asked.request_id
            second.send(Decide(again.request_id, "allow"))
            await second.reply("after")
            await second.rest()
            assert len(second.texts("user")) == 1
        finally:
            await second.quit()


async def test_switching_and_starting_conversations(letta_server: RealServer, tmp_path: Path) -> None:
    seat = await Seat.start(
        config_for(letta_server, tmp_path, target=Target(agent_id=letta_server.agent_id, new=True))
    ).ready()
    try:
        here = seat.status.conversation_id
        await seat.said("[[say in the first]]")
        await seat.reply("in the first")
        await seat.rest()
        seat.send(NewConversation())
        await seat.until(lambda: seat.status.conversation_id != here)
        await seat.ready()
        await seat.until(lambda: not seat.rows)
        await seat.said("[[say in the second]]")
        await seat.reply("in the second")
        await seat.rest()
        seat.send(OpenConversation(letta_server.agent_id, here))
        await seat.reply("in the first")
        assert seat.texts("assistant") == ["in the first"]
    finally:
        await seat.quit()


async def test_a_wedged_conversation_goes_on_in_a_copy(own_server: RealServer, tmp_path: Path) -> None:
    """The only window dies in mid-reply and nobody else holds the conversation: the server wedges it."""
    target, folder = Target(agent_id=own_server.agent_id, new=True), str(tmp_path)
    first = await Seat.start(
        config_for(own_server, tmp_path, target=target, cwd=folder, mode="strict")
    ).ready()
    await first.said("[[words 200 rate=20]]")
    await first.until(lambda: first.texts("assistant"), what="the first words")
    await first.quit()

    second = await Seat.start(config_for(own_server, tmp_path)).ready()
    try:
        wedged = second.status.conversation_id
        key = await second.said("[[say hello again]]")
        question = await second.until(lambda: second.question, what="a question")
        assert question.id == "wedged"
        view = await second.until(lambda: (v := second.view_of(key)) and v.delivery == "failed" and v)
        assert "send_new" in [choice.action for choice in view.choices]
        second.send(AnswerQuestion(question.id, "fork"))
        await second.until(lambda: second.status.conversation_id != wedged, what="the copy")
        await second.ready()
        assert (second.status.cwd, second.status.mode) == (folder, "strict")
        await second.said("[[say in the copy]]")
        await second.reply("in the copy")
        await second.rest()
    finally:
        await second.quit()


@pytest.mark.long
async def test_a_restarted_server_is_found_again(own_server: RealServer, tmp_path: Path) -> None:
    seat = await Seat.start(
        config_for(own_server, tmp_path, target=Target(agent_id=own_server.agent_id, new=True))
    ).ready()
    try:
        await seat.said("[[say before]]")
        await seat.reply("before")
        await seat.rest()
        own_server.kill()
        await seat.until(lambda: seat.connection is not None and seat.connection.phase == "lost")
        held = await seat.said("[[say after the restart]]")
        assert seat.view_of(held) is None or seat.view_of(held).delivery == "prepared"  # type: ignore[union-attr]
        own_server.start()
        await seat.reply("after the restart", timeout=40)
        await seat.rest()
        assert own_server.runs("after the restart") == 1
        assert [r.delivery for r in seat.rows if r.kind == "user"] == ["delivered", "delivered"]
    finally:
        await seat.quit()


async def test_a_server_that_dies_in_mid_reply_runs_it_again_and_that_is_said(
    own_server: RealServer, tmp_path: Path
) -> None:
    seat = await Seat.start(
        config_for(own_server, tmp_path, target=Target(agent_id=own_server.agent_id, new=True))
    ).ready()
    try:
        key = await seat.said("mark-a [[words 40 rate=20]]")
        await seat.until(lambda: seat.texts("assistant"), what="the first words")
        behind = await seat.said("mark-b [[say second]]")
        await seat.until(
            lambda: any(i.client_message_id == behind and i.item_id != behind for i in seat.queue)
        )
        own_server.kill()
        await seat.until(lambda: seat.connection is not None and seat.connection.phase == "lost")
        own_server.start()
        await seat.reply("second", timeout=60)
        await seat.rest(40)
        history = await own_server.history(seat.status.conversation_id)
        otids = [row["otid"] for row in history if row["message_type"] == "user_message"]
        view = seat.view_of(key)
        if otids.count(key) > 1:
            assert view is not None
            assert view.word == "ran twice"
            assert seat.recovery is not None
            assert seat.recovery.notes.count("The server restarted and ran one message twice.") == 1
        assert otids.count(behind) == 1
        assert (row := seat.row_of(behind)) is not None
        assert row.delivery == "delivered"
        assert len(seat.texts("user")) == len(otids)
        assert seat.recovery is None or not [s for s in seat.recovery.sends if s.choices]
    finally:
        await seat.quit()
