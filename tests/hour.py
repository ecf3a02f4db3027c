"""``python -m tests.hour``: asleep for minutes and hours, with clocks that are set ahead, on the real server.

A message is written and the machine sleeps before the answer comes. One had arrived; one was lost on its way,
and another waits behind it. While the machine "sleeps", the clocks of the client go ahead and so does the
server's memory of ids, whose entries in its journal are made older by as much. The rule: the same id is
offered again as safe only while the server certainly remembers it; after that only a new one, with its risk.
What the server itself does with a repeated id is told too: the danger that is avoided.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from letta_tui.conversation.reconcile import Policy
from letta_tui.seam.intents import ResolveSend
from letta_tui.seam.state import SendView
from letta_tui.transport.endpoint import direct
from letta_tui.worker.config import Hands, Target
from tests.support.chaos import ChaosProxy, bad_network
from tests.support.seat import Seat, config_for
from tests.support.server import RealServer, real_server, until

SAFE_MINUTES = 50  # by the design
MINUTES = (10.0, 49.0, 51.0, 61.0, 180.0)


@dataclass
class Clock:
    """Wall and boot clock run ahead by ``ahead`` seconds; the monotonic one stands still in sleep."""

    ahead: float = 0.0

    def hands(self) -> Hands:
        return Hands(
            wall=lambda: time.time() + self.ahead,
            boot=lambda: time.monotonic() + self.ahead,
            random=lambda: 0.0,
        )


@dataclass
class Told:
    """What was seen of one sleep. ``offers``: action and whether it is said to be without risk."""

    minutes: float
    arrived: str = ""
    offers: dict[str, bool] = field(default_factory=dict)
    chosen: str = ""
    repeated: int = 0  # runs of the message that had arrived, after its id was repeated by hand
    wrong: list[str] = field(default_factory=list)


def age_journal(server: RealServer, seconds: float) -> None:
    """The server's memory of accepted ids, ``seconds`` older. Only while it does not run."""
    for file in (server.home / ".letta" / "state").glob("*/input-dispositions-*.json"):
        journal = json.loads(file.read_text())
        for entry in journal["entries"].values():
            for name in ("acceptedAt", "expiresAt"):
                entry[name] -= int(seconds * 1000)
        file.write_text(json.dumps(journal))


async def seat_at(server: RealServer, folder: Path, proxy: ChaosProxy, clock: Clock, name: str) -> Seat:
    endpoint = direct(f"ws://127.0.0.1:{proxy.port}/ws", token_file=server.token_file)
    target = Target(server.agent_id, await server.conversation())
    config = config_for(
        server,
        folder / name,
        endpoint=endpoint,
        target=target,
        hands=clock.hands(),
        policy=Policy(settle=1.0),
    )
    return await Seat.start(config).ready()


async def written(seat: Seat, text: str) -> str:
    """Submit, and wait until it is on the wire as far as this side knows."""
    key = await seat.said(text)
    await seat.until(lambda: (v := seat.view_of(key)) and v.delivery == "unconfirmed", what="written")
    return key


async def sleep_for(server: RealServer, folder: Path, minutes: float) -> Told:
    told, clock, mark = Told(minutes), Clock(), f"m{minutes:g}m"
    async with bad_network(server.port) as one, bad_network(server.port) as other:
        first = await seat_at(server, folder, one, clock, "first")
        second = await seat_at(server, folder, other, clock, "second")
        try:
            one.become("mute")
            arrived = await written(first, f"arrived-{mark} [[say x]]")
            other.become("deaf")
            lost = await written(second, f"lost-{mark} [[say y]]")
            behind = await second.said(f"behind-{mark} [[say z]]")
            await until(lambda: over(server, arrived), what="the server has done with the first one")
            # The machine sleeps.
            await asyncio.to_thread(server.stop)
            age_journal(server, minutes * 60)
            clock.ahead = minutes * 60
            for proxy in (one, other):
                proxy.reset()
                proxy.become("well")
            await asyncio.to_thread(server.start)
            await first.ready(60)
            await second.ready(60)
            await first.until(
                lambda: (row := first.row_of(arrived)) and row.delivery == "delivered", 60, "delivered"
            )
            told.arrived = "delivered"
            view = await offered(second, lost)
            told.offers = {choice.action: not choice.risk for choice in view.choices}
            judge(told, second, behind, server, mark)
            await choose(told, second, lost, server, mark)
            if server.runs(f"behind-{mark}"):
                told.wrong.append("what waited was released although nobody was there")
            await repeat(told, first, arrived, server, mark)
        finally:
            for seat in (first, second):
                await seat.quit()
    return told


def over(server: RealServer, key: str) -> bool:
    """Whether the server knows that it has done with the input: else, started anew, it would run it again."""
    for file in (server.home / ".letta" / "state").glob("*/input-dispositions-*.json"):
        for name, entry in json.loads(file.read_text())["entries"].items():
            if key in name:
                return bool(entry.get("replayCompleted"))
    return False


async def offered(seat: Seat, key: str) -> SendView:
    def shown() -> SendView | None:
        view = seat.view_of(key)
        settled = seat.recovery is not None and not seat.recovery.checking
        return view if view is not None and view.choices and settled else None

    view = await seat.until(shown, 60, "an offer")
    assert view is not None
    return view


def judge(told: Told, seat: Seat, behind: str, server: RealServer, mark: str) -> None:
    safe = told.offers.get("resend", False)
    if safe != (told.minutes < SAFE_MINUTES):
        told.wrong.append(
            f"the same id is {'' if safe else 'not '}offered as safe after {told.minutes:g} min"
        )
    if told.offers.get("send_new", False):
        told.wrong.append("a new id is offered without its risk")
    waiting = seat.view_of(behind)
    if waiting is None or waiting.delivery != "prepared":
        told.wrong.append(f"what waited is {waiting and waiting.delivery}")
    if server.runs(f"lost-{mark}"):
        told.wrong.append("the lost one ran")


async def choose(told: Told, seat: Seat, key: str, server: RealServer, mark: str) -> None:
    told.chosen = "resend" if "resend" in told.offers else "send_new"
    seat.send(ResolveSend(key, "resend" if told.chosen == "resend" else "send_new"))
    await until(lambda: server.runs(f"lost-{mark}"), 30, "it runs")

    def delivered() -> bool:
        rows = [row for row in seat.rows if row.kind == "user" and f"lost-{mark}" in row.text]
        return [row.delivery for row in rows] == ["delivered"]

    await seat.until(delivered, 30, "delivered, and once on the screen")
    if server.runs(f"lost-{mark}") != 1:
        told.wrong.append(f"the lost one ran {server.runs(f'lost-{mark}')} times")


async def repeat(told: Told, seat: Seat, key: str, server: RealServer, mark: str) -> None:
    """What would have become of a repeated id."""
    if server.runs(f"arrived-{mark}") != 1:
        told.wrong.append(f"the one that had arrived ran {server.runs(f'arrived-{mark}')} times")
    async with server.plain() as stranger:
        conversation = seat.status.conversation_id
        await stranger.join(server.agent_id, conversation)
        await stranger.say(server.agent_id, conversation, f"arrived-{mark} [[say x]]", key)
        # Another message behind it: when that has run, the first has had its chance.
        await stranger.say(server.agent_id, conversation, f"fence-{mark} [[say f]]")
        await until(lambda: server.runs(f"fence-{mark}"), 30, "the message behind it")
    told.repeated = server.runs(f"arrived-{mark}")


async def run(minutes: tuple[float, ...]) -> list[Told]:
    found: list[Told] = []
    with tempfile.TemporaryDirectory(prefix="lt-hour-") as name, real_server(Path(name) / "letta") as server:
        for number, each in enumerate(minutes):
            found.append(await sleep_for(server, Path(name) / str(number), each))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hour", description=__doc__)
    parser.add_argument("--minutes", type=float, nargs="*", default=list(MINUTES))
    found = asyncio.run(run(tuple(parser.parse_args().minutes)))
    for told in found:
        offered = [
            f"{action} ({'safe' if told.offers[action] else 'with its risk'})"
            for action in ("resend", "send_new")
            if action in told.offers
        ]
        again = "is passed over" if told.repeated == 1 else "runs again"
        print(
            f"{told.minutes:5g} min asleep: the one that arrived: {told.arrived}; the lost one: offered"
            f" {', '.join(offered)}, ran once; a repeated id {again} at the server"
        )
        for words in told.wrong:
            print(f"    WRONG: {words}")
    wrong = sum(len(told.wrong) for told in found)
    print(f"{len(found)} sleeps, {wrong} violations")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
