"""SIGKILL at every named point of the worker, on the real server; then a relaunch has to find the truth.

The server lives on and another socket holds the conversation, as the keeper would; ``tests.killmatrix`` kills
those two as well, with commands in place of a window.

What is checked against the server's own history and the model's log, after each kill:

* the relaunch opens the same conversation;
* every message that was on disk is delivered, or shown with what is known and what can be done;
* "delivered" is said of a message exactly when history has its row, and history has no row twice;
* nothing was run twice, and nothing is still being checked at the end;
* the conversation is usable.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from letta_tui.conversation.reconcile import Policy
from letta_tui.ledger.store import Ledger
from letta_tui.ledger.values import Send
from letta_tui.seam.intents import Decide, ResolveSend
from letta_tui.worker.config import Hands, Target
from letta_tui.worker.crashpoints import POINTS, VARIABLE
from tests.support.seat import Seat, config_for
from tests.support.server import RealServer

pytestmark = pytest.mark.real

Steps = list[list[object]]


def scenarios(mark: str) -> dict[str, Steps]:
    """What the window was doing, by name. Each text carries ``mark``, to be counted in the model's log."""
    return {
        "idle": [["say", f"{mark}a [[say one {mark}]]"], ["rest"]],
        "busy": [
            ["say", f"{mark}a [[words 60 rate=40]]"],
            ["words"],
            ["say", f"{mark}b [[say two]]"],
            ["queued", 1],
            ["rest"],
        ],
        "cancel": [
            ["say", f"{mark}a [[words 80 rate=40]]"],
            ["words"],
            ["say", f"{mark}b [[say two]]"],
            ["queued", 1],
            ["cancel"],
            ["rest"],
        ],
        "allow": [
            ["say", f"{mark}a [[run touch {mark}.made ==> say done]]"],
            ["approval"],
            ["allow"],
            ["rest"],
        ],
        "deny": [
            ["say", f"{mark}a [[run touch {mark}.made ==> say done]]"],
            ["approval"],
            ["deny", "no"],
            ["rest"],
        ],
    }


# Which points a scenario passes; the others would only repeat an ordinary run.
COMMON = (
    "submit.before_prepare", "submit.after_prepare", "send.before_attempt", "send.after_attempt",
    "send.after_write", "send.after_accept", "send.after_accept_recorded", "turn.started", "turn.finished",
    "reconcile.before_read", "reconcile.after_read", "reconcile.after_verdicts", "turn.delivered",
)  # fmt: skip
PASSES: dict[str, tuple[str, ...]] = {
    "idle": COMMON,
    "busy": (*(f"{p}#2" for p in COMMON[:7]), "queue.seen", "queue.dequeued"),
    "cancel": ("queue.before_cancel", "queue.after_cancel"),
    "allow": (
        "approval.seen", "approval.before_record", "approval.after_record", "approval.after_write",
        "approval.after_answer",
    ),
    "deny": ("approval.after_record", "approval.after_write", "approval.after_answer"),
}  # fmt: skip
ALL = [(scenario, point) for scenario, points in PASSES.items() for point in points]


def test_every_point_is_known() -> None:
    assert {point.partition("#")[0] for _, point in ALL} <= set(POINTS)


@dataclass
class Outcome:
    """How a run ended: the sends in the ledger, and what was wrong."""

    sends: tuple[Send, ...]
    violations: list[str]
    chosen: list[str]  # what the person took for messages that were offered, with their state


def make(folder: Path) -> None:
    folder.mkdir(0o700, parents=True)


async def kill_and_return(
    server: RealServer, folder: Path, scenario: str, point: str, mark: str, *, held: bool
) -> Outcome:
    conversation = await server.conversation()
    make(folder)
    runtime = {"agent_id": server.agent_id, "conversation_id": conversation}
    async with server.plain() as holder:
        if held:
            await holder.ask("sync", runtime=runtime, recover_approvals=False)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.support.headless", str(folder), server.url, str(server.token_file),
            str(server.work), server.agent_id, conversation, json.dumps(scenarios(mark)[scenario]),
            env={**os.environ, VARIABLE: point}, cwd=Path(__file__).parents[2],
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        output, _ = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == -signal.SIGKILL, f"{scenario} never came to {point}:\n{output.decode()}"
        return await come_back(server, folder, conversation, scenario, mark, held=held)


async def come_back(
    server: RealServer, folder: Path, conversation: str, scenario: str, mark: str, *, held: bool
) -> Outcome:
    wrong: list[str] = []
    # No conversation is named: the relaunch has to know it by itself.
    seat = Seat.start(
        config_for(server, folder, target=Target(), window_id="relaunch", policy=Policy(settle=0.5))
    )
    try:
        await seat.ready(40)
        if seat.status.conversation_id != conversation:
            wrong.append(f"opened {seat.status.conversation_id} instead of {conversation}")
        decided = await settle(seat)
        for send in seat.sends:
            if not send.choices and send.delivery != "delivered":
                wrong.append(f"{send.delivery} and nothing offered: {send.text}")
        chosen = await release_what_was_never_sent(seat)
        if held:
            await seat.said(f"{mark}z [[say usable {mark}]]")
            await seat.reply(f"usable {mark}", timeout=30)
            await seat.rest(30)
    finally:
        await seat.quit()
    with Ledger.open(folder / "ledger.sqlite3", Hands().stamp) as ledger:
        sends = ledger.sends()
        approvals = ledger.approvals(sends[0].place) if sends else ()
    history = await server.history(conversation)
    rows = [row.get("otid") for row in history if row["message_type"] == "user_message"]
    for send in sends:
        count = rows.count(send.otid)
        if count > 1:
            wrong.append(f"{count} rows of one message: {send.text}")
        if (send.delivery == "delivered") != (count == 1):
            wrong.append(f"{send.delivery}, and history has {count} rows: {send.text}")
    for letter in "abz":
        if server.runs(mark + letter) > 1 and scenario not in ("busy", "cancel"):
            wrong.append(f"{letter} ran {server.runs(mark + letter)} times")
    if scenario in ("allow", "deny") and len(approvals) > 1 + decided:
        wrong.append(f"{len(approvals)} decisions for one request")
    if scenario == "deny" and not decided and (server.work / f"{mark}.made").exists():
        wrong.append("a denied command ran")
    return Outcome(sends, wrong, chosen)


async def settle(seat: Seat) -> int:
    """Let what goes on by itself come to its end, answering what is asked; how many answers were given."""
    answered: set[str] = set()

    def quiet() -> bool:
        for approval in seat.approvals:
            if approval.state == "pending" and approval.request_id not in answered:
                answered.add(approval.request_id)
                seat.send(Decide(approval.request_id, "allow"))
        checking = seat.recovery is not None and seat.recovery.checking
        return seat.status.activity == "idle" and not seat.approvals and not checking and not seat.queue

    await seat.until(lambda: quiet() and not flying(seat), 40, "everything settles")
    return len(answered)


def flying(seat: Seat) -> bool:
    """Something is under way or being checked. What did not arrive is neither: it is offered."""
    under_way = ("unconfirmed", "accepted", "queued", "started")
    return any(send.delivery in under_way and not send.choices for send in seat.sends)


async def release_what_was_never_sent(seat: Seat) -> list[str]:
    """The person takes up what is offered without a risk; what is left is discarded. What they chose."""
    chosen = []
    for send in seat.sends:
        safe = [c for c in send.choices if c.action in ("send", "resend") and not c.risk]
        action = safe[0].action if safe else "discard"
        if action in [c.action for c in send.choices]:
            chosen.append(f"{send.delivery}: {action}")
            seat.send(ResolveSend(send.client_message_id, action))
    await seat.until(lambda: not seat.sends, 30, "every offer is taken")
    await seat.rest(30)
    return chosen


SAMPLE = random.Random(2).sample(ALL, 6)


@pytest.mark.parametrize(("scenario", "point"), SAMPLE)
async def test_a_kill_at_a_named_point_loses_and_doubles_nothing(
    letta_server: RealServer, tmp_path: Path, scenario: str, point: str
) -> None:
    mark = f"k{abs(hash((scenario, point, str(tmp_path)))) % 10**8}"
    outcome = await kill_and_return(letta_server, tmp_path / "ours", scenario, point, mark, held=True)
    assert outcome.violations == []


@pytest.mark.long
async def test_the_whole_matrix(letta_server: RealServer, tmp_path: Path) -> None:
    """Every scenario with every point it passes, with a keeper's stand-in holding the conversation."""
    only = os.environ.get("KILL_ONLY", "")
    counted = violations = delivered = 0
    chosen: Counter[str] = Counter()
    for number, (scenario, point) in enumerate(ALL):
        if only not in f"{scenario}:{point}":
            continue
        mark = f"m{number}x{os.getpid()}"
        outcome = await kill_and_return(letta_server, tmp_path / mark, scenario, point, mark, held=True)
        counted += 1
        violations += len(outcome.violations)
        delivered += sum(send.delivery == "delivered" for send in outcome.sends)
        chosen.update(outcome.chosen)
        print(f"{scenario:8} {point:28} {', '.join(outcome.violations) or 'ok'}", flush=True)
    print(f"{counted} kills of the window, {violations} violations; delivered once: {delivered} messages")
    print(f"settled by the person's choice: {dict(sorted(chosen.items())) or 0}")
    assert violations == 0
