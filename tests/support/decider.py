"""``python -m tests.support.decider AGENT CONVERSATION [CHOICE]``: a window without a screen, and its person.

They allow what waits. With a CHOICE (``discard`` or ``send_new``) they also take up every message that is
offered: without a risk if that is among the choices, else by CHOICE. Prints what was offered as JSON lines.
Exit code 0 once nothing waits any more and no turn runs; 1 when that does not come about.
"""

from __future__ import annotations

import json
import sys
import threading
import time

from letta_tui.commands.keeper_port import KeeperAdapter
from letta_tui.paths import resolve
from letta_tui.practice.demo import prepare
from letta_tui.seam.intents import Decide, Quit, ResolveSend
from letta_tui.seam.state import Action, ApprovalView, SendView
from letta_tui.seam.updates import ApprovalsChanged, ConnectionChanged, SendsChanged, StatusChanged
from letta_tui.worker.config import Target, WorkerConfig
from letta_tui.worker.worker import Worker

PATIENCE = 40.0
CALM = 1.0  # seconds without anything waiting or running


UNDER_WAY = ("prepared", "unconfirmed", "accepted", "queued", "started")


def chosen(send: SendView, choice: str) -> Action | None:
    """What the person takes of what is offered."""
    offered = {each.action for each in send.choices}
    wanted: tuple[Action, ...] = ("send", "resend", "send_new" if choice == "send_new" else "discard")
    return next((action for action in wanted if action in offered), None)


def main(agent: str, conversation: str, choice: str = "") -> int:
    paths = resolve("demo")
    setup = prepare(paths)
    worker = Worker(
        WorkerConfig(
            ledger_path=paths.ledger,
            keeper=KeeperAdapter(setup.paths, setup.options, "demo"),
            target=Target(agent_id=agent, conversation_id=conversation),
            window_id=f"decider-{time.time_ns()}",
        )
    )
    changed = threading.Event()
    worker.on_update(changed.set)
    worker.start()
    end = time.monotonic() + PATIENCE
    ready, activity, pending = False, "", True
    sends: tuple[SendView, ...] = ()
    asks: tuple[ApprovalView, ...] = ()
    pressed: dict[str, float] = {}
    taken: set[tuple[str, str]] = set()
    calm_since = 0.0
    try:
        while time.monotonic() < end:
            changed.clear()
            for update in worker.drain():
                match update:
                    case ConnectionChanged(connection):
                        ready = connection.phase == "ready"
                    case StatusChanged(status):
                        activity = status.activity
                    case ApprovalsChanged(items):
                        asks, pending = items, bool(items)
                    case SendsChanged(found):
                        sends = found
                    case _:
                        pass
            for item in asks if ready else ():
                # A person presses again what was given back.
                if item.state != "deciding" and time.monotonic() - pressed.get(item.request_id, 0.0) > 2:
                    pressed[item.request_id] = time.monotonic()
                    worker.send(Decide(item.request_id, "allow"))
            for send in sends if choice and ready else ():
                key, action = (send.client_message_id, send.delivery), chosen(send, choice)
                if action is not None and key not in taken:
                    taken.add(key)
                    shown = {"id": key[0], "delivery": key[1], "explanation": send.explanation}
                    choices = {each.action: each.risk for each in send.choices}
                    print(json.dumps({**shown, "choices": choices, "chosen": action}), flush=True)
                    worker.send(ResolveSend(send.client_message_id, action))
            now = time.monotonic()
            waits = choice and any(send.choices or send.delivery in UNDER_WAY for send in sends)
            if ready and not pending and activity == "idle" and not waits:
                calm_since = calm_since or now
                if now - calm_since > CALM:
                    return 0
            else:
                calm_since = 0.0
            changed.wait(0.2)
        return 1
    finally:
        worker.send(Quit("keep"))
        worker.join(10)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
