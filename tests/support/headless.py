"""A window without a screen as a process of its own, to be killed at a named point.

``python -m tests.support.headless FOLDER URL TOKEN_FILE CWD AGENT CONVERSATION STEPS``. STEPS is a JSON
list: ``["say", TEXT]``, ``["approval"]`` (wait for one), ``["allow"]``, ``["deny", REASON]``, ``["words"]``
(wait for the first words of a reply), ``["queued", N]``, ``["cancel"]`` (the first queued), ``["abort"]``,
``["rest"]``, ``["quit"]``. Prints each step when it is done.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from letta_tui.seam.intents import Abort, CancelQueued, Decide
from letta_tui.transport.endpoint import direct
from letta_tui.worker.config import Target, WorkerConfig
from tests.support.seat import Seat


def config(folder: str, url: str, token_file: str, cwd: str, agent: str, conversation: str) -> WorkerConfig:
    return WorkerConfig(
        ledger_path=Path(folder) / "ledger.sqlite3",
        endpoint=direct(url, token_file=Path(token_file)),
        cwd=cwd,
        target=Target(agent_id=agent or None, conversation_id=conversation or None),
        window_id="headless",
    )


async def play(seat: Seat, steps: list[list[object]]) -> None:
    await seat.ready()
    for step in steps:
        match step:
            case ["say", str(text)]:
                await seat.said(text)
            case ["approval"]:
                await seat.until(lambda: seat.approvals, what="an approval")
            case ["allow"]:
                seat.send(Decide(seat.approvals[0].request_id, "allow"))
                await seat.until(lambda: not seat.approvals, what="the approval is settled")
            case ["deny", str(reason)]:
                seat.send(Decide(seat.approvals[0].request_id, "deny", reason))
                await seat.until(lambda: not seat.approvals, what="the approval is settled")
            case ["words"]:
                await seat.until(lambda: seat.texts("assistant"), what="words")
            case ["queued", int(count)]:
                await seat.until(
                    lambda count=count: sum(i.item_id != i.client_message_id for i in seat.queue) >= count,
                    what="queued",
                )
            case ["cancel"]:
                first = seat.queue[0]
                seat.send(CancelQueued(first.item_id))
                await seat.until(
                    lambda first=first: all(
                        i.client_message_id != first.client_message_id for i in seat.queue
                    )
                )
            case ["abort"]:
                seat.send(Abort())
                await seat.until(lambda: seat.status.activity == "idle", what="aborted")
            case ["rest"]:
                await seat.rest()
            case ["quit"]:
                await seat.quit()
            case _:
                raise ValueError(step)
        print(json.dumps(step), flush=True)


async def main() -> None:
    *where, steps = sys.argv[1:]
    seat = Seat.start(config(*where))
    await play(seat, json.loads(steps))


if __name__ == "__main__":
    asyncio.run(main())
