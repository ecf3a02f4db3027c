"""``python -m tests.killmatrix --all``: SIGKILL at every named step, on the real server.

A cell is a step (``letta_tui.worker.crashpoints``), what the conversation was doing then (idle, busy, queued,
an approval pending), who dies at that instant (window, keeper, server, or several; a window that lives has to
notice by itself), and what the person does afterwards with what is offered: the same command again, send
again, send as a new message, edit first, forget, or decide nothing and come back once more. Checked against
the server's own history, the practice model's log and the ledger:

* every message is in history once and ran once, unless the server ran it again by itself after its own crash,
  which the ledger must then say; "delivered" is said exactly of what is in history;
* nothing that was on disk is lost; the relaunch opens the same conversation without being told which;
* whatever is not delivered is offered with its choices and their risks, the same to every window, and visibly
  holds what comes behind it; ``explain`` says of it what the card says; a choice does what it says;
* an allowed tool ran once for each decision at most; the conversation is usable afterwards, in every case.

``--runs N --seed S`` plays a sample in an order that the seed decides; ``--only WORDS`` the cells with them.
"""

from __future__ import annotations

import argparse
import asyncio
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from tests.killmatrix.cells import Cell, every, sample
from tests.killmatrix.outcome import Outcome
from tests.killmatrix.table import table, totals


async def share(cells: Sequence[Cell]) -> None:
    """Play them one after the other on a server of their own; a line of JSON for each."""
    from tests.killmatrix.field import Field
    from tests.killmatrix.play import play

    # Short, so that sockets are below it as well.
    folder = Path(tempfile.mkdtemp(prefix="letta-tui-kill-"))
    ground = Field(folder)
    try:
        for cell in cells:
            outcome = await play(ground, cell, f"k{uuid.uuid4().hex[:10]}")
            print(outcome.to_json(), flush=True)
    finally:
        await ground.close()
        shutil.rmtree(folder, ignore_errors=True)


def chosen(given: argparse.Namespace) -> list[Cell]:
    cells = every() if given.all or given.only else sample(given.seed, given.runs)
    wanted = [[word.strip() for word in each.split("/")] for each in given.only.split(",")]
    return [
        cell
        for cell in cells
        if any(all(word in f"{cell.group} / {cell}" for word in words) for words in wanted)
    ]


def shared_out(given: argparse.Namespace, cells: int) -> list[Outcome]:
    """The cells by several processes, each with a server of its own. A line is printed as each comes in."""
    lines: queue.Queue[str | None] = queue.Queue()
    argv = [sys.executable, "-m", "tests.killmatrix", *sys.argv[1:]]
    parts = [
        subprocess.Popen([*argv, "--part", f"{n}/{given.jobs}"], stdout=subprocess.PIPE, text=True)
        for n in range(given.jobs)
    ]

    def read(process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    for part in parts:
        threading.Thread(target=read, args=(part,), daemon=True).start()
    outcomes: list[Outcome] = []
    running = len(parts)
    try:
        while running:
            line = lines.get()
            if line is None:
                running -= 1
                continue
            outcomes.append(Outcome.from_json(line))
            print(f"{len(outcomes):4}/{cells} {outcomes[-1].line()}", flush=True)
    finally:
        for part in parts:
            part.terminate()  # each ends its keeper and server
            part.wait()
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.killmatrix", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--all", action="store_true", help="every cell once, and the table")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="cells whose name has these words: A / B, C")
    parser.add_argument("--jobs", type=int, default=3, help="servers that are shot at beside each other")
    parser.add_argument("--part", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing of ours stays behind
    cells = chosen(given)
    if given.part:
        number, _, of = given.part.partition("/")
        asyncio.run(share(cells[int(number) :: int(of)]))
        return 0
    given.jobs = max(1, min(given.jobs, len(cells)))
    began = time.monotonic()
    outcomes = shared_out(given, len(cells))
    print()
    for line in table(outcomes):
        print(line)
    print()
    for line in totals(outcomes):
        print(line)
    wrong = [outcome for outcome in outcomes if outcome.violations]
    for outcome in wrong:
        print(f"VIOLATED {outcome.line()}")
    missing = len(cells) - len(outcomes)
    print(f"{missing} cells not played; " if missing else "", end="")
    print(f"{(time.monotonic() - began) / 60:.0f} min")
    return 1 if wrong or missing else 0


if __name__ == "__main__":
    sys.exit(main())
