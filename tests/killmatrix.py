"""``python -m tests.killmatrix --runs N --seed S``: SIGKILL at named steps.

A run picks a step (``letta_tui.worker.crashpoints``), what the conversation is doing at that moment (idle,
busy, queued, approval pending) and who dies with the client there: nobody, the keeper, the server, or both.
Then the same command is run again until it reports an end, as a script would do it. Checked against the
server's own history, the practice model's log and the ledger:

* the message is in history at most once and ran at most once, unless the server ran it again by itself
  after its own crash, which the ledger must then say;
* exit code 0 means that it is in history with its reply; nothing that was submitted has vanished from the
  ledger; it is in the conversation that was asked for;
* a message whose fate is not known is not in history, is offered with its choices and their risks, and
  visibly holds what comes behind it until a person has chosen; the matrix then chooses (to discard it, or
  to send it as a new one) and counts that;
* an allowed tool ran exactly once;
* the conversation is usable afterwards, in every case.

``tests/real/test_kill_matrix.py`` kills a window's worker in front of a server that lives; here commands die
together with the keeper and the server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from letta_tui.keeper.client import KeeperError, stop_keeper
from letta_tui.paths import resolve
from letta_tui.practice.demo import DemoSetup, furnish, prepare
from letta_tui.worker.crashpoints import POINTS, VARIABLE
from tests.support.server import PlainSocket

STATES = ("idle", "busy", "queued", "approval")
VICTIMS = ("view", "view and keeper", "view and server", "all three")
STEPS = tuple(p for p in POINTS if p.split(".")[0] in ("submit", "send", "turn", "reconcile"))
QUEUE_STEPS = ("queue.seen", "queue.dequeued")
APPROVAL_STEPS = tuple(p for p in POINTS if p.startswith("approval."))
AGAIN = 6  # times the command is repeated before its not ending is a violation


@dataclass(frozen=True, slots=True)
class Case:
    step: str
    state: str
    victims: str

    def __str__(self) -> str:
        return f"{self.step} / {self.state} / {self.victims}"


@dataclass
class Outcome:
    case: Case
    died: bool = False  # the step was reached
    code: int = -1
    once: bool = False  # in history once, run once, with its reply
    reran: bool = False
    settled: list[str] = field(default_factory=list)  # what the person chose for messages not known
    beside: list[str] = field(default_factory=list)  # who died beside the view
    note: str = ""
    violations: list[str] = field(default_factory=list)


def cases(seed: int, count: int) -> list[Case]:
    """``count`` cases in an order that the seed decides; every combination once before any comes twice."""
    every = [Case(step, state, who) for step in STEPS for state in STATES for who in VICTIMS]
    every += [Case(step, state, who) for step in QUEUE_STEPS for state in STATES[1:] for who in VICTIMS]
    every += [Case(step, "approval", who) for step in APPROVAL_STEPS for who in VICTIMS]
    rng = random.Random(seed)
    chosen: list[Case] = []
    while len(chosen) < count:
        rng.shuffle(every)
        chosen += every
    return chosen[:count]


class Field:
    """A demo server to be shot at."""

    def __init__(self, folder: Path) -> None:
        os.environ["LETTA_TUI_DATA_DIR"] = str(folder)
        self.paths = resolve("demo")
        self.setup: DemoSetup = prepare(self.paths)
        self.agent = asyncio.run(furnish(self.setup))
        self.started: list[subprocess.Popen[str]] = []

    def close(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()  # it would start a keeper again
                process.wait()
        asyncio.run(stop_keeper(self.setup.paths))

    # --- commands of ours, each a process of its own ---

    def start(self, *arguments: str, crash: str = "") -> subprocess.Popen[str]:
        env = {**os.environ, VARIABLE: crash}
        argv = [sys.executable, "-m", *arguments]
        pipe = subprocess.PIPE
        self.started.append(subprocess.Popen(argv, env=env, stdout=pipe, stderr=pipe, text=True))
        return self.started[-1]

    def send(
        self, message_id: str, conversation: str, text: str, crash: str = "", timeout: int = 30
    ) -> subprocess.Popen[str]:
        return self.start(
            "letta_tui", "--profile", "demo", "send", "--agent", self.agent, "--conversation", conversation,
            "--id", message_id, "--json", "--timeout", str(timeout), text, crash=crash,
        )  # fmt: skip

    def decide(self, conversation: str, *choice: str, crash: str = "") -> subprocess.Popen[str]:
        return self.start("tests.support.decider", self.agent, conversation, *choice, crash=crash)

    def ours(self, *arguments: str) -> Any:
        process = self.start("letta_tui", "--profile", "demo", *arguments)
        return json.loads(process.communicate(timeout=60)[0])

    # --- the server's side ---

    async def socket(self) -> PlainSocket:
        status = await asyncio.to_thread(self.ours, "keeper", "status", "--json")
        token = self.setup.paths.token.read_text().strip()
        return PlainSocket(status["server_url"], token)

    async def conversation(self) -> str:
        async with await self.socket() as socket:
            answer = await socket.ask("conversation_create", body={"agent_id": self.agent})
        return str(answer["conversation"]["id"])

    async def history(self, conversation: str) -> list[dict[str, Any]]:
        async with await self.socket() as socket:
            query = {"agent_id": self.agent, "limit": 200}
            answer = await socket.ask("conversation_messages_list", conversation_id=conversation, query=query)
        rows: list[dict[str, Any]] = answer["messages"]
        return rows[::-1]

    def runs(self, mark: str) -> int:
        """How often the model was asked first for an input with ``mark`` in it."""
        log = self.paths.data / "demo" / "model.jsonl"
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        return sum(1 for x in lines if x["event"] == "request" and x["reply"] == 0 and mark in x["user"])

    def kill(self, victims: str) -> list[str]:
        """Kill whoever dies beside the view; who did."""
        if victims == "view":
            return []
        status = self.ours("keeper", "status", "--json")
        names = {
            "view and keeper": ["keeper"],
            "view and server": ["server"],
            "all three": ["keeper", "server"],
        }
        pids = {"keeper": status.get("pid"), "server": status.get("server_pid")}
        died = [name for name in names[victims] if pids[name]]
        for name in died:
            os.kill(pids[name], signal.SIGKILL)
        return died

    def revive(self) -> None:
        """Keeper, server and model, started again if they died, as the next window would."""
        for _ in range(20):
            try:
                asyncio.run(furnish(self.setup))
            except KeeperError as error:
                # A keeper needs a moment to notice that its server was killed.
                last = error
                time.sleep(0.5)
            else:
                return
        raise last


def play(ground: Field, case: Case, mark: str) -> Outcome:
    """One run of the matrix."""
    outcome = Outcome(case)
    ground.revive()
    conversation = asyncio.run(ground.conversation())
    beside = occupy(ground, case, conversation, mark)
    if case.step in APPROVAL_STEPS:
        shoot_at_decision(ground, case, conversation, mark, outcome)
        return outcome
    message_id, text = f"shot-{mark}", f"{mark} [[say answer-{mark}]]"
    process = ground.send(message_id, conversation, text, crash=case.step)
    if case.state == "approval":
        # It waits behind the approval; what comes after needs an answer to that one.
        try:
            process.wait(12)
        except subprocess.TimeoutExpired:
            finish(ground.decide(conversation))
    finish(process)
    outcome.died = process.returncode == -signal.SIGKILL
    outcome.beside = ground.kill(case.victims)
    ground.revive()
    data: dict[str, Any] = {}
    for _ in range(AGAIN):
        out, _err = finish(ground.send(message_id, conversation, text))
        data = json.loads(out) if out.strip() else {}
        outcome.code = data.get("exit_code", -1)
        if outcome.code == 4 or data.get("delivery") == "queued":
            # It waits behind the approval of another turn, which its own command does not ask for.
            finish(ground.decide(conversation))
        elif outcome.code != 5 or data.get("delivery") in ("unknown", "vanished"):
            break
    for other in beside:
        finish(other)
    check(ground, outcome, conversation, message_id, mark, data)
    return outcome


def occupy(ground: Field, case: Case, conversation: str, mark: str) -> list[subprocess.Popen[str]]:
    """Bring the conversation into the state the case asks for."""
    if case.state == "idle":
        return []
    if case.state == "approval":
        file = ground.setup.scratch / mark
        finish(ground.send(f"tool-{mark}", conversation, f"[[run echo x >> {file.name}]]"))
        return []
    first = ground.send(f"busy-{mark}", conversation, "[[words 50 rate=10]]")
    asyncio.run(until_busy(ground, conversation))
    if case.state == "busy":
        return [first]
    return [first, ground.send(f"next-{mark}", conversation, "[[say next]]")]


async def until_busy(ground: Field, conversation: str) -> None:
    async with await ground.socket() as socket:
        await socket.join(ground.agent, conversation)
        await socket.wait(
            lambda f: (
                f.get("type") == "update_loop_status"
                and f["loop_status"]["status"] != "WAITING_ON_INPUT"
                and (f.get("runtime") or {}).get("conversation_id") == conversation
            )
        )


def shoot_at_decision(ground: Field, case: Case, conversation: str, mark: str, outcome: Outcome) -> None:
    process = ground.decide(conversation, crash=case.step)
    finish(process)
    outcome.died = process.returncode == -signal.SIGKILL
    outcome.beside = ground.kill(case.victims)
    ground.revive()
    for _ in range(AGAIN):
        process = ground.decide(conversation)
        finish(process)
        outcome.code = process.returncode
        if outcome.code == 0:
            break
    file = ground.setup.scratch / mark
    lines = file.read_text().count("x\n") if file.exists() else 0
    if lines > 1:
        outcome.violations.append(f"the tool ran {lines} times")
    if outcome.code != 0:
        outcome.violations.append("the approval could not be settled")
    usable(ground, outcome, conversation, mark)


def check(
    ground: Field, outcome: Outcome, conversation: str, message_id: str, mark: str, data: dict[str, Any]
) -> None:
    wrong = outcome.violations
    rows = asyncio.run(ground.history(conversation))
    mine = [row for row in rows if row.get("otid") == message_id]
    runs = ground.runs(f"answer-{mark}")
    outcome.once = outcome.code == 0 and len(mine) == 1 and runs == 1
    ledger = [r for r in ground.ours("ledger", "--json") if r["client_message_id"] == message_id]
    if len(mine) > 1 or runs > 1:
        said = json.dumps(ground.ours("explain", message_id, "--json"))
        outcome.reran = "history_twice" in said or "server_reran" in said
        if "server" not in outcome.case.victims and outcome.case.victims != "all three":
            wrong.append(f"{len(mine)} rows, {runs} runs, although the server lived")
        elif not outcome.reran:
            wrong.append(f"{len(mine)} rows, {runs} runs, and the ledger does not say so")
    if outcome.code == 0 and (len(mine) < 1 or f"answer-{mark}" not in json.dumps(rows)):
        wrong.append("exit code 0, but history lacks the message or its reply")
    if outcome.code == 1 and mine:
        wrong.append("told as not delivered, but it is in history")
    if len(ledger) != 1:
        wrong.append(f"{len(ledger)} rows in the ledger")
    elif ledger[0]["conversation"] != conversation or mark not in ledger[0]["text"]:
        wrong.append("the ledger has another conversation or text")
    if outcome.code not in (0, 3, 5):
        wrong.append(f"no end after {AGAIN} attempts: {data.get('error')}")
    if outcome.code == 5:
        outcome.note = f"{data.get('delivery')}, {data.get('turn')}: {data.get('error')}"
        if data.get("delivery") not in ("unknown", "vanished"):
            wrong.append(f"no verdict after {AGAIN} attempts: {data.get('delivery')}")
        elif mine:
            wrong.append(f"told {data.get('delivery')}, but it is in history")
    settle(ground, outcome, conversation, mark)
    usable(ground, outcome, conversation, mark)


def settle(ground: Field, outcome: Outcome, conversation: str, mark: str) -> None:
    """The person decides about whatever is not known, of this message and those before it."""
    wrong = outcome.violations
    open_ = waiting(ground, conversation)
    if not open_:
        return
    behind = ""
    if "unknown" in open_.values():
        behind = f"held-{mark}"
        said = json.loads(
            finish(ground.send(behind, conversation, f"[[say {behind}]]", timeout=8))[0] or "{}"
        )
        if said.get("delivery") != "prepared" or "not sent" not in str(said.get("error")):
            wrong.append(f"written behind a message that is not known: {said}")
    choice = random.Random(mark).choice(("discard", "send_new"))
    process = ground.decide(conversation, choice)
    shown = [json.loads(line) for line in finish(process)[0].splitlines()]
    if process.returncode != 0:
        wrong.append(f"what is open could not be settled: {waiting(ground, conversation)}")
    for key, state in open_.items():
        offer = next((each for each in shown if each["id"] == key), None)
        if offer is None:
            # A later reading may know more than the one before; then it has to be over.
            if key in waiting(ground, conversation):
                wrong.append(f"{state}, and nothing was offered for {key}")
        elif state in ("unknown", "vanished"):
            outcome.settled.append(f"{state}: {offer['chosen']}")
            if not offer["explanation"] or not {"discard", "send_new"} <= set(offer["choices"]):
                wrong.append(f"too little is said or offered: {offer}")
            if state == "unknown" and "twice" not in offer["choices"].get("send_new", ""):
                wrong.append(f"the risk is not told: {offer}")
    texts = json.dumps([row for row in asyncio.run(ground.history(conversation)) if row.get("otid")])
    for key in {f"shot-{mark}"} & open_.keys() if choice == "send_new" else ():
        if f"answer-{mark}" not in texts:
            wrong.append(f"sent as a new message, and history lacks it: {key}")
    if behind and f"say {behind}" not in texts:
        wrong.append("what was held did not go out after the choice")


def waiting(ground: Field, conversation: str) -> dict[str, str]:
    """Messages of the conversation that are not at rest, by id."""
    rows = [row for row in ground.ours("ledger", "--json") if row["conversation"] == conversation]
    states = ("prepared", "unconfirmed", "accepted", "queued", "started", "unknown", "vanished")
    return {row["client_message_id"]: row["state"] for row in rows if row["state"] in states}


def usable(ground: Field, outcome: Outcome, conversation: str, mark: str) -> None:
    out, _err = finish(ground.send(f"last-{mark}", conversation, f"[[say usable-{mark}]]"))
    data = json.loads(out) if out.strip() else {}
    if data.get("exit_code") == 4:
        finish(ground.decide(conversation))
        out, _err = finish(ground.send(f"last-{mark}", conversation, f"[[say usable-{mark}]]"))
        data = json.loads(out) if out.strip() else {}
    if data.get("exit_code") != 0:
        outcome.violations.append(f"the conversation is not usable: {data.get('error')}")


def finish(process: subprocess.Popen[str]) -> tuple[str, str]:
    try:
        return process.communicate(timeout=90)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()


def run(seed: int, count: int, seconds: float = math.inf, say: Any = print) -> list[Outcome]:
    """Play ``count`` cases, beginning none after ``seconds``; ``say`` gets a line for each."""
    end = time.monotonic() + seconds
    # Short, so that sockets are below it as well.
    folder = Path(tempfile.mkdtemp(prefix="letta-tui-kill-"))
    ground = Field(folder)
    outcomes: list[Outcome] = []
    try:
        for number, case in enumerate(cases(seed, count), 1):
            if time.monotonic() > end:
                break
            outcome = play(ground, case, f"k{uuid.uuid4().hex[:10]}")
            outcomes.append(outcome)
            word = "; ".join(outcome.violations) or "ok"
            word += f" [{outcome.note}]" if outcome.note else ""
            word += f" [the person: {', '.join(outcome.settled)}]" if outcome.settled else ""
            died = "" if outcome.died else " (step not reached)"
            reran = " (the server ran it again, and that is said)" if outcome.reran else ""
            say(f"{number:4} {case}: exit {outcome.code}, {word}{reran}{died}", flush=True)
    finally:
        ground.close()
        shutil.rmtree(folder, ignore_errors=True)
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.killmatrix", description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no run after this time")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing of ours stays behind
    outcomes = run(given.seed, given.runs, given.seconds)
    violations = sum(len(outcome.violations) for outcome in outcomes)
    died = sum(outcome.died for outcome in outcomes)
    by_code = Counter(outcome.code for outcome in outcomes)
    beside = Counter(name for outcome in outcomes for name in outcome.beside)
    chosen = Counter(words for outcome in outcomes for words in outcome.settled)
    print(f"seed {given.seed}: {len(outcomes)} runs, {violations} violations")
    print(f"killed: view {died} (at its step), keeper {beside['keeper']}, server {beside['server']}")
    print(f"delivered and run once: {sum(outcome.once for outcome in outcomes)}")
    print(f"run again by the server, and said: {sum(outcome.reran for outcome in outcomes)}")
    print(f"not known or lost, settled by the person's choice: {dict(sorted(chosen.items())) or 0}")
    print(", ".join(f"exit {code}: {n}" for code, n in sorted(by_code.items())))
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
