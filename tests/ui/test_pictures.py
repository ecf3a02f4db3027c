"""Every screen as a picture, at the two sizes people use most, and once where room is scarce."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from fakeport import FakePort
from scenes import CONNECTED, NOW, QUEUE, RECOVERY, ROWS, approval, make_app, settle, status
from textual.pilot import Pilot

from letta_tui.seam.state import (
    AgentItem,
    ConnectionView,
    ConversationItem,
    FormField,
    ModelItem,
    ProviderItem,
    RecoveryView,
)
from letta_tui.seam.updates import (
    AgentsListed,
    ApprovalsChanged,
    ConnectionChanged,
    ConversationsListed,
    ModelsListed,
    NeedsSetup,
    ProvidersListed,
    QueueChanged,
    RecoveryChanged,
    Update,
)

WIDE = ["chat", "approval_taken", "recovery", "conversations", "help"]
PROVIDERS = ProvidersListed(
    (
        ProviderItem("openai", "OpenAI", (FormField("key", "API key", True),), "key", description="GPT"),
        ProviderItem("ollama", "Ollama", (FormField("url", "URL", default="http://host:11434"),), "url"),
    )
)  # fmt: skip
CONVERSATIONS = ConversationsListed(
    (
        ConversationItem("agent-1", "Sarah", "conv-1", "Planning the trip", NOW - 60, current=True),
        ConversationItem("agent-1", "Sarah", "conv-2", "Tax papers", NOW - 7200, 1, note="approval waiting"),
        ConversationItem("agent-2", "Gardener", "conv-3", "Pears", NOW - 200_000),
    )
)
CROWD = (ROWS, ApprovalsChanged((approval(),)), RecoveryChanged(RECOVERY), QueueChanged(QUEUE))
DECIDING = (approval("r1", 1, 2, state="deciding"),)

SCENES: dict[str, tuple[list[Update], list[str | Update]]] = {
    "empty": ([], []),
    "starting": ([ConnectionChanged(ConnectionView("connecting", "Connecting to the server…"))], []),
    "chat": ([ROWS, status("streaming")], [*"a draft"]),
    "commands": ([ROWS], ["slash"]),
    "approval": ([ROWS, status("approval"), ApprovalsChanged((approval("r", 2, 4),))], [*"half a"]),
    "approval_taken": ([ROWS, status("approval"), ApprovalsChanged((approval(),))], ["tab"]),
    "approval_reason": (
        [ROWS, status("approval"), ApprovalsChanged((approval(),))],
        ["tab", "r", *"no"],
    ),
    "approval_deciding": ([ROWS, status("approval"), ApprovalsChanged(DECIDING)], []),
    "details": ([ROWS, ApprovalsChanged((approval(),))], ["f4"]),
    "queue": ([ROWS, status("tool"), QueueChanged(QUEUE)], ["tab"]),
    "recovery": ([ROWS, RecoveryChanged(RECOVERY)], ["tab"]),
    "crowd": (list(CROWD), []),
    "recovery_consent": ([ROWS, RecoveryChanged(RECOVERY)], ["tab", "s"]),
    "recovery_checking": (
        [ROWS, RecoveryChanged(RecoveryView(True, "Checking 2 messages"))],
        [],
    ),
    "unrestricted": ([ROWS, status("command", "unrestricted")], []),
    "lost": (
        [
            ROWS,
            ConnectionChanged(ConnectionView("lost", "No connection, trying again", why_not="no")),
        ],
        ["x", "enter"],
    ),
    "help": ([ROWS], ["f1"]),
    "conversations": ([ROWS], ["f2", CONVERSATIONS]),
    "manage": ([ROWS], ["f2", CONVERSATIONS, "down", "tab"]),
    "agents": (
        [ROWS],
        [*"/agents", "enter", AgentsListed((AgentItem("agent-1", "Sarah", "gpt-5-mini", current=True),))],
    ),
    "models": (
        [ROWS],
        [*"/model", "enter", "enter", ModelsListed((ModelItem("openai/gpt-5-mini", "GPT 5 mini"),))],
    ),
    "mode": ([ROWS], [*"/mode", "enter"]),
    "leave": ([ROWS, status("streaming")], ["ctrl+q"]),
    "find": ([ROWS], ["f3", *"parser", "enter"]),
    "setup": ([NeedsSetup("There is no model yet."), PROVIDERS], []),
    "setup_form": ([NeedsSetup("There is no model yet."), PROVIDERS], ["enter", *"sk-secret"]),
}


def _actor(
    port: FakePort, first: list[Update], then: list[str | Update]
) -> Callable[[Pilot[int]], Awaitable[None]]:
    async def act(pilot: Pilot[int]) -> None:
        port.say(CONNECTED, status())
        await settle(pilot, port)
        for update in first:  # one at a time: a list is only filled once its screen is there
            port.say(update)
            await settle(pilot, port)
        for step in then:
            if isinstance(step, str):
                await pilot.press(step)
            else:
                port.say(step)
                await settle(pilot, port)
        await settle(pilot, port)

    return act


@pytest.mark.parametrize("name", SCENES)
def test_picture(snap_compare: Callable[..., bool], port: FakePort, name: str) -> None:
    first, then = SCENES[name]
    hints = ("show me markdown", "run a command") if name == "empty" else ()
    app = make_app(port, hints=hints)
    assert snap_compare(app, terminal_size=(80, 24), run_before=_actor(port, first, then))


@pytest.mark.parametrize("name", WIDE)
def test_picture_with_room(snap_compare: Callable[..., bool], port: FakePort, name: str) -> None:
    first, then = SCENES[name]
    assert snap_compare(make_app(port), terminal_size=(120, 40), run_before=_actor(port, first, then))


@pytest.mark.parametrize("name", ["chat", "recovery"])
def test_picture_in_light(snap_compare: Callable[..., bool], port: FakePort, name: str) -> None:
    first, then = SCENES[name]
    assert snap_compare(
        make_app(port, theme="light"), terminal_size=(80, 24), run_before=_actor(port, first, then)
    )


@pytest.mark.parametrize("name", ["approval", "recovery"])
def test_picture_where_room_is_scarce(snap_compare: Callable[..., bool], port: FakePort, name: str) -> None:
    first, then = SCENES[name]
    assert snap_compare(make_app(port), terminal_size=(60, 15), run_before=_actor(port, first, then))
