"""``python -m tests.screenshots``: the pictures of README.md, taken from the real program.

The view, the worker, the keeper, the real server and the practice model all run; only the terminal is
replaced by Textual's own, which can write what it would show as SVG.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path

from textual.pilot import Pilot

from letta_tui.commands.demo import HINTS
from letta_tui.commands.keeper_port import KeeperAdapter
from letta_tui.keeper.client import stop_keeper
from letta_tui.paths import DATA_DIR_VARIABLE, Paths, resolve
from letta_tui.practice.demo import DemoSetup, furnish, prepare
from letta_tui.ui.app import LettaTuiApp
from letta_tui.ui.options import AppOptions
from letta_tui.worker.config import Target, WorkerConfig
from letta_tui.worker.worker import Worker

SIZE = (96, 30)
FOLDER = Path(__file__).parents[1] / "screenshots"
PATIENCE = 60.0  # seconds for anything to show


class Stage:
    """A demo of its own, and one window after the other on it."""

    def __init__(self, paths: Paths, setup: DemoSetup, agent: str) -> None:
        self.paths = paths
        self.setup = setup
        self.agent = agent

    async def scene(self, name: str, play: Callable[[Pilot[int]], object], *, new: bool = True) -> None:
        """Open a window, let ``play`` (a coroutine function) act in it, and take its picture."""
        worker = Worker(
            WorkerConfig(
                ledger_path=self.paths.ledger,
                cache_path=self.paths.cache_db,
                keeper=KeeperAdapter(self.setup.paths, self.setup.options, "demo"),
                target=Target(agent_id=self.agent, new=new),
                cwd=str(self.setup.scratch),
                window_id=uuid.uuid4().hex[:12],
            )
        )
        worker.start()
        app = LettaTuiApp(worker, AppOptions(hints=HINTS, blink=False))
        try:
            async with app.run_test(size=SIZE) as pilot:
                await until(pilot, "Connected")
                acted = play(pilot)
                assert asyncio.iscoroutine(acted)
                await acted
                write(name, app.export_screenshot(title="letta-tui"))
        finally:
            await asyncio.to_thread(worker.stop)


def shown(pilot: Pilot[int]) -> str:
    """The text on the screen."""
    strips = pilot.app.screen._compositor.render_strips(pilot.app.size)
    return "\n".join(strip.text for strip in strips)


async def until(pilot: Pilot[int], text: str, *, times: int = 1) -> None:
    """Wait until ``text`` is on the screen."""
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE
    while shown(pilot).count(text) < times:
        if loop.time() > end:
            raise SystemExit(f"{text!r} did not show:\n{shown(pilot)}")
        await pilot.pause(0.05)


async def say(pilot: Pilot[int], text: str) -> None:
    await pilot.press(*["space" if c == " " else c for c in text], "enter")


async def chat(pilot: Pilot[int]) -> None:
    await say(pilot, "show me markdown")
    await until(pilot, "And the last line")
    await until(pilot, "Ready")


async def approval(pilot: Pilot[int]) -> None:
    await say(pilot, "write a file")
    await until(pilot, "F8 allow")
    await pilot.pause(0.3)


async def queue(pilot: Pilot[int]) -> None:
    await say(pilot, "talk slowly")
    await until(pilot, "Answering")
    await say(pilot, "and then tell me about pears")
    await say(pilot, "think aloud")
    await until(pilot, "2 messages wait")
    await pilot.pause(1.5)


async def recovery(pilot: Pilot[int]) -> None:
    await until(pilot, "Send again")
    await pilot.pause(0.3)


def lose_a_message(text: str) -> None:
    """Send from a process that dies between the disk and the wire, as in a power cut."""
    command = [sys.executable, "-m", "letta_tui", "--profile", "demo", "send", text]
    env = {**os.environ, "LETTA_TUI_CRASH_AT": "send.after_attempt"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode != -9:
        raise SystemExit(f"The sending process was to die, but: {done}")


def write(name: str, svg: str) -> None:
    FOLDER.mkdir(exist_ok=True)
    file = FOLDER / f"{name}.svg"
    file.write_text(svg, encoding="utf-8")
    print(file.relative_to(FOLDER.parent))


async def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="letta-tui-"))
    os.environ[DATA_DIR_VARIABLE] = str(folder)
    paths = resolve("demo")
    setup = prepare(paths)
    try:
        stage = Stage(paths, setup, await furnish(setup))
        await stage.scene("chat", chat)
        await stage.scene("approval", approval)
        await stage.scene("queue", queue)
        await stage.scene("first", lambda pilot: pilot.pause(0.5))
        await asyncio.to_thread(lose_a_message, "Please water the plants tomorrow at seven.")
        await stage.scene("recovery", recovery, new=False)
    finally:
        await stop_keeper(setup.paths)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    asyncio.run(main())
