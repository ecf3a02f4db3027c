"""``python -m tests.killmatrix.window AGENT CONVERSATION STEPS``: a window without a screen, to be killed.

STEPS is a JSON list: ``["say", TEXT, ID]``; ``["words"]`` (wait for the first words of a reply);
``["queued", ID]`` (wait until the server has it in its queue); ``["taken", ID]`` (until its fate shows, or
the connection goes); ``["approval"]``; ``["allow"]``; ``["cancel", ID]``; ``["choose", ACTION, ID]``;
``["through"]`` (allow what waits until everything has come to its end or is offered).

A step that its kill keeps from happening is given up after some seconds, for a window that lives on.
``STRANGE`` in the environment: a client that counts on none of the server's habits.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from letta_tui.paths import resolve
from letta_tui.practice.demo import prepare
from letta_tui.seam.intents import CancelQueued, Decide, ResolveSend, Submit
from letta_tui.seam.state import Action
from letta_tui.worker.config import Target
from tests.killmatrix.hands import opened, through
from tests.support.seat import Seat

UNTAKEN = ("prepared", "unconfirmed")


async def play(
    seat: Seat, steps: list[list[str]], done: Callable[[list[str]], None] = lambda step: None
) -> None:
    await opened(seat)
    for step in steps:
        match step:
            case ["say", text, key]:
                seat.send(Submit(key, text, key))
                await until(seat, on_disk, key)
            case ["words"]:
                await seat.until(lambda: seat.texts("assistant"), what="words")
            case ["queued", key]:
                await until(seat, in_queue, key)
            case ["taken", key]:
                with suppress(AssertionError):
                    await until(seat, taken, key, 8)
            case ["approval"]:
                await seat.until(lambda: seat.approvals, what="an approval")
            case ["allow"]:
                for approval in seat.approvals:
                    seat.send(Decide(approval.request_id, "allow"))
            case ["cancel", key]:
                item = next(i for i in seat.queue if i.client_message_id == key)
                seat.send(CancelQueued(item.item_id))
                with suppress(AssertionError):
                    await until(seat, gone, key, 8)
            case ["choose", action, key]:
                await through(seat)
                await choose(seat, cast(Action, action), key)
            case ["through"]:
                await through(seat)
            case _:
                raise ValueError(step)
        done(step)


async def choose(seat: Seat, action: Action, key: str) -> None:
    before = seat.view_of(key)
    seat.send(ResolveSend(key, action))
    with suppress(AssertionError):
        await seat.until(lambda: seat.view_of(key) != before, 8, f"{action} is taken up: {key}")


async def until(seat: Seat, fate: Callable[[Seat, str], bool], key: str, seconds: float = 20) -> None:
    await seat.until(lambda: fate(seat, key), seconds, f"{fate.__name__}: {key}")


def on_disk(seat: Seat, key: str) -> bool:
    return key in seat.settled


def gone(seat: Seat, key: str) -> bool:
    return not in_queue(seat, key)


def in_queue(seat: Seat, key: str) -> bool:
    """On the server's side, not held here."""
    return any(i.client_message_id == key and i.item_id != key for i in seat.queue)


def taken(seat: Seat, key: str) -> bool:
    view = seat.view_of(key)
    away = seat.connection is None or seat.connection.phase != "ready"
    return away or view is None or view.delivery not in UNTAKEN or bool(view.choices)


async def main(agent: str, conversation: str, steps: str) -> None:
    from tests.killmatrix.field import STRANGE, config

    paths = resolve("demo")
    target = Target(agent_id=agent, conversation_id=conversation)
    policy = STRANGE if os.environ.get("STRANGE") else None
    seat = Seat.start(config(paths, prepare(paths), target, f"window-{os.getpid()}", policy))
    await play(seat, json.loads(steps), lambda step: print(json.dumps(step), flush=True))
    await seat.quit()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
