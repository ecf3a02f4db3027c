"""Runs of a tool's program."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from letta_tui.tools.running import MOST_BYTES, run
from letta_tui.tools.values import Tool
from tests.support.server import until


def tool(code: str, **changes: object) -> Tool:
    values: dict[str, object] = {"command": (sys.executable, "-c", code), **changes}
    return Tool(name="t", description="d", parameters={}, **values)  # type: ignore[arg-type]


async def test_input_goes_in_as_json_and_stdout_is_the_result(tmp_path: Path) -> None:
    code = (
        "import json, os, sys\n"
        "print(json.load(sys.stdin)['city'], os.path.basename(os.getcwd()), os.environ['WHO'])"
    )
    outcome = await run(tool(code, environment={"WHO": "me"}), {"city": "Zürich"}, seconds=10, cwd=tmp_path)
    assert (outcome.text, outcome.failed) == (f"Zürich {tmp_path.name} me", False)


async def test_a_failure_says_how_and_what_it_wrote() -> None:
    outcome = await run(
        tool("import sys; print('half'); print('no city', file=sys.stderr); sys.exit(3)"), {}, seconds=10
    )
    assert outcome.failed
    assert outcome.text == "t failed (exit code 3).\nhalf\nno city"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"command": ("/nowhere/prog",)}, "t was not run: /nowhere/prog: No such file or directory."),
        ({"cwd": Path("/nowhere")}, "its folder /nowhere does not exist"),
    ],
)
async def test_what_cannot_be_begun_is_one_sentence(changes: dict[str, object], words: str) -> None:
    outcome = await run(tool("", **changes), {}, seconds=10)
    assert outcome.failed
    assert words in outcome.text


async def test_time_over_ends_the_program_and_what_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = (
        "import json, os, subprocess, sys, time, pathlib\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"pathlib.Path({str(pids)!r}).write_text(json.dumps([os.getpid(), child.pid]))\n"
        "time.sleep(60)"
    )
    outcome = await run(tool(code), {}, seconds=2)
    assert outcome.failed
    assert outcome.text.startswith("t was stopped after 2 s")
    assert pids.exists()
    await until(lambda: not any(map(_runs, json.loads(pids.read_text()))), what="both have ended")


async def test_a_cancelled_run_ends_its_program(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = (
        f"import os, time, pathlib; pathlib.Path({str(pid)!r}).write_text(str(os.getpid())); time.sleep(60)"
    )
    task = asyncio.create_task(run(tool(code), {}, seconds=50))
    await until(lambda: pid.exists() and pid.read_text(), what="it has begun")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not _runs(int(pid.read_text()))


async def test_a_flood_is_cut_and_input_need_not_be_read() -> None:
    outcome = await run(
        tool(f"import sys; sys.stdin.close(); print('x' * {MOST_BYTES + 50})"),
        {"a": "y" * 300_000},
        seconds=20,
    )
    assert not outcome.failed
    assert outcome.text.endswith("[51 more bytes were left out]")


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
