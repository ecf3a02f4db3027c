"""What must be true after a cell, by the server's own history, the model's log and the ledger."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from letta_tui.ledger.values import Send
from tests.killmatrix.field import Field
from tests.killmatrix.outcome import Outcome
from tests.killmatrix.story import Story

SETTLED = ("delivered", "discarded", "superseded")
_SAFE = ("", "safe_same_id", "text_gone")


async def check(
    ground: Field, story: Story, outcome: Outcome, conversation: str, submitted: Iterable[str]
) -> None:
    wrong = outcome.violations
    history = await ground.history(conversation)
    with ground.ledger() as ledger:
        sends = [send for send in ledger.sends() if story.mark in send.text]
        decisions = ledger.approvals(sends[0].place) if sends else ()
    known = {send.client_message_id for send in sends}
    wrong += [f"was on disk and has vanished: {key}" for key in set(submitted) - known - lost(story)]
    served = "server" in outcome.killed
    for send in sends:
        one_message(ground, send, rows_of(history, send), conversation, served, outcome)
    for word in {send.text.split()[0] for send in sends}:
        one_text(ground, word, [send for send in sends if send.text.split()[0] == word], served, outcome)
    replies = json.dumps([row for row in history if row["message_type"] == "assistant_message"])
    for send in sends:
        if send.text.startswith(("next-", "held-")):
            continue  # several queued messages can be run as one, and then the last one's script is played
        said = send.text.partition("[[say ")[2].removesuffix("]]")
        if send.delivery == "delivered" and send.outcome == "done" and said and said not in replies:
            wrong.append(f"its turn is called done, and history has no reply: {send.text}")
    if story.cell.state == "approval" or story.cell.group == "approve":
        allowed = sum(decision.decision == "allow" for decision in decisions)
        one_tool(ground, story, allowed, served, outcome)


def check_kept(ground: Field, story: Story, outcome: Outcome, submitted: Iterable[str]) -> None:
    """The server has lost the conversation: what was sent into it is still in the ledger, text and all."""
    with ground.ledger() as ledger:
        known = {send.client_message_id for send in ledger.sends() if story.mark in send.text}
    outcome.violations += [f"has vanished: {key}" for key in set(submitted) - known - lost(story)]


def lost(story: Story) -> set[str]:
    """What need not be on disk: the kill came before."""
    return {story.mine} if story.cell.point == "submit.before_prepare" else set()


def rows_of(history: list[dict[str, Any]], send: Send) -> int:
    users = [row for row in history if row["message_type"] == "user_message"]
    return sum(row.get("otid") == send.otid for row in users)


def one_message(
    ground: Field, send: Send, rows: int, conversation: str, served: bool, outcome: Outcome
) -> None:
    wrong, text = outcome.violations, send.text
    if send.place.conversation_id != conversation:
        wrong.append(f"in the conversation {send.place.conversation_id}: {text}")
    if send.delivery not in SETTLED:
        wrong.append(f"left {send.delivery}: {text}")
    if (send.delivery == "delivered") != (rows > 0):
        choice = send.last.get("person")
        risk = str(choice.payload.get("risk", "")) if choice is not None else ""
        if rows and risk not in _SAFE:
            outcome.unlucky += 1
        else:
            wrong.append(f"{send.delivery}, and history has {rows} rows: {text}")
    if rows == 1:
        outcome.delivered += 1
    if rows > 1:
        if not served:
            wrong.append(f"{rows} rows of one message, although the server lived: {text}")
        elif "history_twice" not in send.last:
            wrong.append(f"{rows} rows of one message, and the ledger does not say so: {text}")
        else:
            outcome.reran += 1


def one_text(ground: Field, word: str, sends: list[Send], served: bool, outcome: Outcome) -> None:
    """A text is run once, or as often as the person took the risk."""
    runs, wrong = ground.runs(word), outcome.violations
    choices = [send.last["person"].payload for send in sends if send.superseded_by and "person" in send.last]
    risks = sum(str(choice.get("risk", "")) not in _SAFE for choice in choices)
    if runs <= 1:
        return
    again = any({"history_twice", "server_reran"} & send.seen for send in sends)
    if served and again:
        outcome.reran += all("history_twice" not in send.last for send in sends)
    elif runs <= 1 + risks:
        outcome.unlucky += 1
    else:
        told = "and the ledger does not say so" if served else "although the server lived"
        wrong.append(f"{word} ran {runs} times, {told}")


def one_tool(ground: Field, story: Story, allowed: int, served: bool, outcome: Outcome) -> None:
    file = ground.setup.scratch / story.file
    lines = file.read_text().count("x\n") if file.exists() else 0
    if lines > (allowed if served else 1):
        outcome.violations.append(f"the tool ran {lines} times on {allowed} decisions")
    watched = outcome.killed in (["window"], ["keeper"])
    if lines == 0 and (watched or not outcome.killed):
        outcome.violations.append("the tool was allowed and has not run")
    outcome.tools += lines == 1
