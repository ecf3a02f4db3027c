"""Changing the profile and the machine, and what can be done with agents, from within the window."""

from __future__ import annotations

import pytest
from fakeport import FakePort
from scenes import make_app, settle, status
from textual.widgets import OptionList, Static

from letta_tui.seam.intents import CreateAgent, ListAgents, ListDevices, ManageAgent, Quit, UseDevice
from letta_tui.seam.state import AgentItem, ConnectionView, DeviceItem, ModelItem
from letta_tui.seam.updates import (
    AgentsListed,
    Closed,
    ConnectionChanged,
    DevicesListed,
    ModelsListed,
    NeedsDevice,
)
from letta_tui.ui.app import LettaTuiApp
from letta_tui.ui.options import AppOptions, ProfileChoice

PROFILES = (
    ProfileChoice("default", "embedded server", current=True),
    ProfileChoice("work", "wss://letta.example/ws"),
    ProfileChoice("broken", "https://api.letta.com", trouble="No API key: set LETTA_API_KEY."),
)


def app_with_profiles(port: FakePort) -> LettaTuiApp:
    def check(name: str) -> str:
        return "No API key: set LETTA_API_KEY." if name == "broken" else ""

    return LettaTuiApp(port, AppOptions(profiles=PROFILES, check_profile=check, blink=False))


def shown(app: LettaTuiApp) -> list[str]:
    options = app.screen.query_one(OptionList)
    return [str(options.get_option_at_index(n).prompt) for n in range(options.option_count)]


async def test_another_profile_ends_this_worker_and_is_named_to_whoever_started_the_window(
    port: FakePort,
) -> None:
    app = app_with_profiles(port)
    async with app.run_test() as pilot:
        await pilot.press(*"/profile", "enter")
        await settle(pilot, port)
        assert [line.split()[0] for line in shown(app)] == ["▸", "work", "broken"]
        assert "No API key: set LETTA_API_KEY." in shown(app)[2]
        await pilot.press(*"work", "enter")
        await settle(pilot, port)
        assert port.intents[-1] == Quit("keep")
        port.say(Closed())
        await settle(pilot, port)
    assert (app.return_code, app.next_profile) == (0, "work")


async def test_a_profile_that_cannot_be_used_is_refused_with_its_sentence(port: FakePort) -> None:
    app = app_with_profiles(port)
    async with app.run_test() as pilot:
        await pilot.press(*"/profile broken", "enter")
        await settle(pilot, port)
        assert not port.sent(Quit)
        assert app.next_profile == ""
        said = [str(line.render()) for line in app.chat.composer.query(Static)]
        assert any("No API key" in line for line in said)


@pytest.mark.parametrize(
    ("connection", "said"),
    [
        (ConnectionView("ready", "", held=True), "it goes on without this window"),
        (ConnectionView("ready", "", goes_on="it goes on there"), "it goes on there"),
        (ConnectionView("ready", ""), "nothing holds the turn"),
    ],
)
async def test_leaving_tells_what_becomes_of_the_turn(
    port: FakePort, connection: ConnectionView, said: str
) -> None:
    app = make_app(port)
    async with app.run_test() as pilot:
        port.say(ConnectionChanged(connection), status(activity="streaming"))
        await settle(pilot, port)
        await pilot.press("ctrl+q")
        await settle(pilot, port)
        assert said in shown(app)[0]


async def test_a_running_turn_is_asked_about_before_the_profile_is_left(port: FakePort) -> None:
    app = app_with_profiles(port)
    async with app.run_test() as pilot:
        port.say(status(activity="streaming"))
        await settle(pilot, port)
        await pilot.press(*"/profile work", "enter")
        await settle(pilot, port)
        assert not port.sent(Quit)
        await pilot.press("escape")
        await settle(pilot, port)
        assert app.next_profile == ""
        assert not port.sent(Quit)


async def test_a_machine_is_asked_for_once_and_listed_with_what_is_known_of_it(port: FakePort) -> None:
    app = make_app(port)
    async with app.run_test(size=(100, 30)) as pilot:
        port.say(NeedsDevice("No machine is chosen for this conversation."))
        await settle(pilot, port)
        assert port.sent(ListDevices) == [ListDevices()]
        port.say(
            DevicesListed(
                (
                    DeviceItem("d1", "laptop", True, app.options.clock(), "/home/me/work", "main"),
                    DeviceItem("d2", "desk", False, app.options.clock() - 7200, "/srv"),
                ),
                sandbox=True,
            )
        )
        await settle(pilot, port)
        lines = shown(app)
        assert "online · /home/me/work (main)" in lines[0]
        assert "offline, seen 2 h ago · /srv" in lines[1]
        assert "sandbox" in lines[2]
        await pilot.press("down", "enter")
        await settle(pilot, port)
        assert port.sent(UseDevice) == [UseDevice("d2")]


async def test_an_agent_is_renamed_and_deleted_only_after_a_question(port: FakePort) -> None:
    app = make_app(port)
    async with app.run_test() as pilot:
        ways = (("tab", "down", "enter"), ("tab", "down", "down", "enter"), ("tab", "down", "down", "enter"))
        for number, keys in enumerate(ways):
            await pilot.press(*"/agents", "enter")
            await settle(pilot, port)
            port.say(AgentsListed((AgentItem("agent-1", "Ada"),)))
            await settle(pilot, port)
            for key in keys:
                await pilot.press(key)
                await settle(pilot, port)
            if len(keys) == 3:
                await pilot.press(*"Ada B", "enter")
            else:
                assert len(port.sent(ManageAgent)) == number
                await pilot.press(*["down"] * number, "enter")
            await settle(pilot, port)
        assert port.sent(ManageAgent) == [
            ManageAgent("agent-1", "rename", "Ada B"),
            ManageAgent("agent-1", "delete"),
            ManageAgent("agent-1", "delete", forget=True),
        ]
        assert len(port.sent(ListAgents)) == 3


async def test_a_new_agent_is_made_from_a_preset_of_the_server(port: FakePort) -> None:
    app = make_app(port)
    async with app.run_test() as pilot:
        await pilot.press(*"/agents", "enter")
        await settle(pilot, port)
        port.say(AgentsListed(()))
        await settle(pilot, port)
        await pilot.press("enter")
        await settle(pilot, port)
        await pilot.press("down", "enter")
        await settle(pilot, port)
        port.say(ModelsListed((ModelItem("openai/x", "X"),)))
        await settle(pilot, port)
        await pilot.press("enter")
        await settle(pilot, port)
        await pilot.press("enter")
        await settle(pilot, port)
        assert port.sent(CreateAgent) == [CreateAgent("Letta", "openai/x", "memo")]
