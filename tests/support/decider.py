"""``python -m tests.support.decider AGENT CONVERSATION``: a window without a screen that allows what waits.

Exit code 0 once nothing waits any more and no turn runs; 1 when that does not come about.
"""

from __future__ import annotations

import sys
import threading
import time

from letta_tui.commands.keeper_port import KeeperAdapter
from letta_tui.paths import resolve
from letta_tui.practice.demo import prepare
from letta_tui.seam.intents import Decide, Quit
from letta_tui.seam.updates import ApprovalsChanged, ConnectionChanged, StatusChanged
from letta_tui.worker.config import Target, WorkerConfig
from letta_tui.worker.worker import Worker

PATIENCE = 40.0
CALM = 1.0  # seconds without anything waiting or running


def main(agent: str, conversation: str) -> int:
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
                        pending = bool(items)
                        for item in items:
                            if item.state == "pending":
                                worker.send(Decide(item.request_id, "allow"))
                    case _:
                        pass
            now = time.monotonic()
            if ready and not pending and activity == "idle":
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
