"""``python -m letta_tui.practice``: the practice model alone, for any program that wants to talk to it."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from pathlib import Path

from letta_tui.practice import script
from letta_tui.practice.model import PracticeModel


async def _run(port: int, log: Path | None) -> int:
    model = PracticeModel(log)
    try:
        await model.start(port)
    except OSError as error:
        print(f"The practice model cannot listen on port {port}: {error.strerror}.", file=sys.stderr)
        return 1
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, done.set)
    with contextlib.suppress(BrokenPipeError):
        print(f"Listening on {model.url}", flush=True)
    await done.wait()
    await model.close()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m letta_tui.practice",
        description="A scripted OpenAI-compatible model on 127.0.0.1.",
        epilog=script.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=int, default=0, help="the port to listen on (0: a free one)")
    parser.add_argument("--log", type=Path, help="write one JSON line for each request to this file")
    given = parser.parse_args()
    return asyncio.run(_run(given.port, given.log))


if __name__ == "__main__":
    sys.exit(main())
