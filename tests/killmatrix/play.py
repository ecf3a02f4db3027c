"""One cell: the window, the keeper, the server die; then somebody comes back."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import time

import psutil

from letta_tui.commands.explain import case_of
from letta_tui.conversation.explain import explain_data
from letta_tui.ledger.transitions import HOLDS
from letta_tui.seam.intents import AnswerQuestion, ResolveSend, Submit
from letta_tui.seam.state import Delivery, SendView
from letta_tui.worker.config import Target
from tests.killmatrix.cells import Cell
from tests.killmatrix.check import check, check_kept
from tests.killmatrix.field import STRANGE, Field, finish
from tests.killmatrix.hands import choice, is_gone, opened, through
from tests.killmatrix.outcome import Outcome
from tests.killmatrix.story import Story
from tests.killmatrix.window import play as play_steps
from tests.support.seat import Seat

AGAIN = 6  # times the command is repeated before its not ending is a violation
ROUNDS = 6  # of offers that are taken before their not ending is a violation


async def play(ground: Field, cell: Cell, mark: str) -> Outcome:
    outcome, story, began = Outcome(cell), Story(cell, mark), time.monotonic()
    try:
        await ground.revive()
        await _play(ground, story, outcome)
    except AssertionError as error:
        outcome.violations.append(str(error).replace("\n", " | ")[:1500])
    outcome.seconds = time.monotonic() - began
    return outcome


async def _play(ground: Field, story: Story, outcome: Outcome) -> None:
    cell = story.cell
    conversation = await ground.conversation()
    submitted = {story.mine}
    if cell.back == "command":
        beside = ground.seat(Target(agent_id=ground.agent, conversation_id=conversation))
        try:
            await play_steps(beside, story.before())
            await shoot(ground, story, outcome, conversation, beside)
            await again(ground, story, outcome, conversation, beside)
        finally:
            await beside.quit()
    else:
        submitted = await shoot(ground, story, outcome, conversation)
    await ground.revive()
    await come_back(ground, story, outcome, conversation)
    if outcome.gone:
        check_kept(ground, story, outcome, submitted)
    else:
        await check(ground, story, outcome, conversation, submitted)


async def shoot(
    ground: Field, story: Story, outcome: Outcome, conversation: str, beside: Seat | None = None
) -> set[str]:
    """Run the process that comes to the step; the ids of what it had on disk."""
    cell = story.cell
    submitted: set[str] = set()
    if cell.returning:
        steps, point = story.first_kill()
        first = ground.window(conversation, steps, point)
        out, err = await finish(first)
        assert first.returncode == -signal.SIGKILL, f"never came to the first kill: {err[-600:]}"
        submitted |= said(out) | {story.mine}
    who = await ground.victims(cell.victims)
    pids = [int(pid) for pid in who.split(",") if pid != "0"]
    if beside is not None:
        process = ground.command(story.mine, conversation, story.text, story.crash(command=True), who)
        await asyncio.gather(finish(process), answer_later(ground, story, process, beside))
    else:
        steps = story.second() if cell.returning else story.steps()
        process = ground.window(conversation, steps, story.crash(), who, strange=story.strange)
        out, err = await finish(process)
        submitted |= said(out)
        if process.returncode not in (0, -signal.SIGKILL):
            outcome.violations.append(f"the window that lived did not come through: {err.strip()[-900:]}")
    if process.returncode == -signal.SIGKILL or (pids and all(dead(pid) for pid in pids)):
        outcome.killed = list(cell.victims)
    return submitted


async def answer_later(ground: Field, story: Story, process: subprocess.Popen[str], beside: Seat) -> None:
    """The other window answers what waits once the command's message is behind it, or nothing more comes."""
    if story.cell.state != "approval":
        return
    end = time.monotonic() + 15
    while process.poll() is None and time.monotonic() < end:
        with ground.ledger() as ledger:
            send = ledger.send(story.mine)
        if send is not None and send.delivery not in ("prepared", "unconfirmed"):
            break
        await asyncio.sleep(0.2)
    await through(beside)


async def again(ground: Field, story: Story, outcome: Outcome, conversation: str, beside: Seat) -> None:
    """The same command until it reports an end, as a script would do it."""
    for _ in range(AGAIN):
        await ground.revive()
        process = ground.command(story.mine, conversation, story.text)
        (out, _err), _ = await asyncio.gather(finish(process), through(beside))
        data = json.loads(out) if out.strip() else {}
        code = data.get("exit_code", -1)
        if code == 0:
            rows = json.dumps(await ground.history(conversation))
            if story.mine not in rows or f"answer-{story.mark}" not in rows:
                outcome.violations.append("exit code 0, but history lacks the message or its reply")
        if (
            is_gone(beside)
            or code in (0, 3)
            or (code == 5 and data.get("delivery") in ("unknown", "vanished"))
        ):
            return
    outcome.violations.append(f"no end after {AGAIN} attempts: exit code {code}, {data.get('error')}")


async def come_back(ground: Field, story: Story, outcome: Outcome, conversation: str) -> None:
    """A relaunch to which no conversation is named: it has to know by itself."""
    seat = ground.seat(Target(), STRANGE if story.cell.back == "new" else None)
    try:
        await opened(seat)
        if seat.status.conversation_id != conversation:
            outcome.violations.append(f"opened {seat.status.conversation_id} instead of {conversation}")
            return
        if is_gone(seat):
            await begin_anew(ground, story, outcome, conversation, seat)
            return
        outcome.restarts += await through(seat)
        if story.cell.back == "keep":
            seat = await kept(ground, story, outcome, seat)
        await take_offers(ground, story, outcome, seat)
        await usable(story, outcome, seat)
    finally:
        await seat.quit()


async def begin_anew(ground: Field, story: Story, outcome: Outcome, conversation: str, seat: Seat) -> None:
    """The server has lost the conversation. It is said, and only the person's choice opens another one."""
    if not ground.emptied(conversation):
        outcome.violations.append(f"called gone, and the server has it: {seat.question}")
    outcome.gone += 1
    assert seat.question is not None
    seat.send(AnswerQuestion(seat.question.id, "new"))
    await seat.until(
        lambda: seat.question is None and seat.status.conversation_id not in ("", conversation),
        30,
        "a new conversation",
    )
    await seat.ready(30)
    await usable(story, outcome, seat)


async def take_offers(ground: Field, story: Story, outcome: Outcome, seat: Seat) -> None:
    for _ in range(ROUNDS):
        outcome.restarts += await through(seat)
        offered = [send for send in seat.sends if send.choices]
        if not offered:
            break
        for send in offered:
            look_at(ground, send, outcome)
            await take(story, outcome, seat, send)
    for send in seat.sends:
        if send.delivery != "delivered":
            outcome.violations.append(f"{send.delivery} in the end: {send.text}")


async def take(story: Story, outcome: Outcome, seat: Seat, send: SendView) -> None:
    action = choice(send, story.cell.back)
    if action is None:
        outcome.violations.append(f"{send.delivery}, and only {[c.action for c in send.choices]} is offered")
        action = "discard"
    outcome.chosen.append(f"{send.word}: {action}")
    drafts = len(seat.drafts)
    seat.send(ResolveSend(send.client_message_id, action))
    key, before = send.client_message_id, (send.delivery, send.choices)

    def moved() -> bool:
        now = seat.view_of(key)
        return now is None or (now.delivery, now.choices) != before

    await seat.until(moved, 20, f"the choice {action} is carried out")
    if action == "edit":
        loaded = await seat.until(lambda: seat.drafts[drafts:], 5, "the text is in the composer")
        if loaded[0].text != send.text:
            outcome.violations.append(f"another text came to the composer: {loaded[0].text}")
        new = f"edited-{send.client_message_id}"
        seat.send(Submit(new, f"{new} [[say {new}]]", new))
        await seat.until(lambda: new in seat.settled, what="on disk")


def look_at(ground: Field, send: SendView, outcome: Outcome) -> None:
    """What the card says of it: enough, and the same as ``explain``."""
    offered = {each.action: each.risk for each in send.choices}
    if not send.explanation or "discard" not in offered or not {"edit", "copy"} <= set(offered):
        outcome.violations.append(f"too little is said or offered: {send}")
    if send.delivery == "unknown" and not all(offered.get(each) for each in ("send_new", "edit")):
        outcome.violations.append(f"the risk is not told: {send}")
    with ground.ledger() as ledger:
        row = ledger.send(send.client_message_id)
        assert row is not None
        told = explain_data(case_of(ledger, row))["card"]
    shown = {"word": send.word, "explanation": send.explanation}
    if row.delivery == send.delivery and shown != {name: told[name] for name in shown}:
        outcome.violations.append(f"explain says {told}, and the card {shown}")
    if row.delivery == send.delivery and offered != {c["action"]: c["risk"] for c in told["choices"]}:
        outcome.violations.append(f"explain offers {told['choices']}, and the card {offered}")


async def kept(ground: Field, story: Story, outcome: Outcome, seat: Seat) -> Seat:
    """Nothing is decided. What comes behind is held, visibly; the next window offers the same again."""
    offered: dict[str, Delivery] = {s.client_message_id: s.delivery for s in seat.sends if s.choices}
    if not offered:
        return seat
    holds = HOLDS & set(offered.values())
    if holds:
        held = f"held-{story.mark}"
        seat.send(Submit(held, f"{held} [[say {held}]]", held))
        await seat.until(
            lambda: any(item.client_message_id == held and item.held_here for item in seat.queue),
            10,
            "what comes behind is held",
        )
        await asyncio.sleep(0.5)  # in which it must not go
        offered[held] = "prepared"
    await seat.quit()
    for key in offered:
        if holds and ground.runs(key) and key.startswith("held"):
            outcome.violations.append("written behind a message that is not known")
    outcome.chosen += [f"{delivery}: kept" for delivery in offered.values()]
    seat = ground.seat(Target())
    await opened(seat)
    await through(seat)
    now = {s.client_message_id: s.delivery for s in seat.sends if s.choices}
    if set(now) != set(offered):
        outcome.violations.append(f"offered before {offered}, and by the next window {now}")
    return seat


async def usable(story: Story, outcome: Outcome, seat: Seat) -> None:
    text = f"usable-{story.mark}"
    seat.send(Submit(text, f"{text} [[say ok-{text}]]", text))
    await seat.until(lambda: text in seat.settled, what="on disk")
    outcome.restarts += await through(seat)
    for send in seat.sends:
        if send.choices:  # it is the first to meet what a cut-off turn has left behind
            outcome.chosen.append(f"{send.word}: send_new")
            seat.send(ResolveSend(send.client_message_id, "send_new"))
            await replaced(seat, send)
    await through(seat)
    await seat.reply(f"ok-{text}", timeout=20)


async def replaced(seat: Seat, send: SendView) -> None:
    await seat.until(lambda: seat.view_of(send.client_message_id) is None, 10, "sent as a new message")


def said(output: str) -> set[str]:
    """The ids of messages that a window had on disk, from what it printed."""
    steps = [json.loads(line) for line in output.splitlines() if line.startswith("[")]
    return {step[2] for step in steps if step[0] == "say"}


def dead(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
