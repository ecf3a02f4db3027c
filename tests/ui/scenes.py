"""Values to put on the screen, and an application around a fake worker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fakeport import FakePort
from textual.pilot import Pilot

from letta_tui.seam.state import (
    ApprovalView,
    Choice,
    ConnectionView,
    DiffHunk,
    DiffLine,
    DiffView,
    QueueItemView,
    RecoveryView,
    Row,
    SendView,
    StatusView,
    Suggestion,
    ToolView,
)
from letta_tui.seam.updates import ConnectionChanged, Splice, StatusChanged, TranscriptChanged
from letta_tui.ui.app import LettaTuiApp
from letta_tui.ui.options import AppOptions

NOW = 1_700_000_000.0

CONNECTED = ConnectionChanged(ConnectionView("ready", "Connected", held=True, can_send=True))


def status(activity: str = "idle", mode: str = "standard") -> StatusChanged:
    return StatusChanged(
        StatusView(
            agent_id="agent-1",
            agent_name="Sarah",
            conversation_id="conv-1",
            conversation_title="Planning the trip",
            model="openai/gpt-5-mini",
            mode=mode,
            cwd="/srv/trip",
            activity=activity,  # type: ignore[arg-type]
            turn_started=None if activity == "idle" else NOW - 42,
            tokens=12_345,
        )
    )


ROWS = TranscriptChanged(
    (
        Splice(
            0,
            0,
            (
                Row("1", "user", "Fix the failing test in parser.py, please", when=NOW - 90,
                    client_message_id="cm-1", delivery="delivered", outcome="done"),
                Row("2", "assistant", "I look at the test first:\n\n- run it\n- read **parser.py**\n"),
                Row("3", "tool", tool=ToolView("t0", "Bash", '{"command": "pytest -q"}', "done",
                                               "1 failed, 3 passed", seconds=1.2)),
            ),
        ),
    ),
    reset=True,
)  # fmt: skip

_HUNK = DiffHunk(
    10,
    10,
    (
        DiffLine("context", "def parse(text):"),
        DiffLine("remove", "    return text.split(',')"),
        DiffLine("add", "    return [p.strip() for p in text.split(',')]"),
    ),
)


def approval(request_id: str = "req-1", position: int = 1, total: int = 1, **more: object) -> ApprovalView:
    return ApprovalView(
        request_id,
        f"call-{request_id}",
        "Edit",
        "Change src/parser.py",
        '{\n  "file_path": "src/parser.py"\n}',
        (DiffView("src/parser.py", (_HUNK,)),),
        (Suggestion("s1", "Always allow edits in src/ for this session"),),
        position=position,
        total=total,
        **more,  # type: ignore[arg-type]
    )


QUEUE = (
    QueueItemView("q1", "cm-2", "then run the linter", paused=True),
    QueueItemView("q2", "cm-3", "and update the docs", held_here=True, note="held until that one is settled"),
)  # fmt: skip

RECOVERY = RecoveryView(
    False,
    "Back in “Planning the trip”",
    ("The turn ended while you were away.",),
    (
        SendView(
            "cm-4", "and update the docs too", "unknown", "none", "not known",
            "The server never answered, and the message is not in the history.", NOW - 600,
            (
                Choice("check", "c", "check again"),
                Choice("send_new", "s", "send it as a new message", "It may run twice."),
                Choice("discard", "d", "discard it"),
            ),
        ),
        SendView(
            "cm-5", "then commit", "prepared", "none", "not sent yet",
            "It was written here and never left this computer.", NOW - 500,
            (Choice("send", "s", "send it now"), Choice("edit", "e", "edit it")),
        ),
    ),
)  # fmt: skip


def make_app(port: FakePort, theme: str = "dark", hints: tuple[str, ...] = ()) -> LettaTuiApp:
    options = AppOptions(theme=theme, hints=hints, clock=lambda: NOW, blink=False)  # type: ignore[arg-type]
    return LettaTuiApp(port, options)


async def settle(pilot: Pilot[int], port: FakePort) -> None:
    """Until every update has been taken and painted."""
    for _ in range(200):
        await pilot.pause(0.01)
        app = pilot.app
        assert isinstance(app, LettaTuiApp)
        if not port.mailbox._items:
            break
    await pilot.pause()
    await pilot.pause()


@asynccontextmanager
async def running(
    port: FakePort, size: tuple[int, int] = (80, 24), **more: object
) -> AsyncIterator[tuple[LettaTuiApp, Pilot[int]]]:
    """An application that is connected and idle."""
    app = make_app(port, **more)  # type: ignore[arg-type]
    async with app.run_test(size=size) as pilot:
        port.say(CONNECTED, status())
        await settle(pilot, port)
        yield app, pilot
