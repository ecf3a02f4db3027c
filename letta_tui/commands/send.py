"""``letta-tui send``: one message through the same ledger and recovery, and the answer on standard output."""

from __future__ import annotations

import argparse
import json
import sys
import uuid
from dataclasses import dataclass
from typing import Any

from letta_tui.commands.context import Context, load_context, open_ledger
from letta_tui.commands.crash import log_to
from letta_tui.commands.errors import (
    APPROVAL_NEEDED,
    FAILED,
    INTERRUPTED,
    OK,
    TURN_FAILED,
    UNKNOWN_DELIVERY,
    USAGE,
    CommandError,
)
from letta_tui.commands.oneshot import Oneshot, Result, headline
from letta_tui.commands.output import plain, show_json
from letta_tui.commands.wiring import need_letta, worker_config
from letta_tui.ledger.transitions import ENDED
from letta_tui.ledger.values import Send
from letta_tui.seam.intents import Quit
from letta_tui.transport.endpoint import server_key
from letta_tui.worker.config import WorkerConfig
from letta_tui.worker.worker import Worker

_LARGEST = 8 * 1024 * 1024  # bytes of a message; more than any model takes


def run(args: argparse.Namespace) -> int:
    context = load_context(args)
    context.paths.create()
    message_id = check_id(args.id) if args.id is not None else str(uuid.uuid4())
    before = stored(context, message_id) if args.id is not None else None
    if before is not None:
        args.agent, args.conversation = before.place.agent_id, before.place.conversation_id
        text = before.text
        if args.text is not None and args.text != before.text and not before.erased:
            raise CommandError(f"The id {message_id!r} belongs to another text; nothing is sent.", USAGE)
    else:
        text = text_of(args)
        # An agent alone means a new conversation, as in the SDK; nothing at all, the last one.
        args.new = args.conversation is None and bool(args.agent or context.profile.agent)
    config = worker_config(args, context)
    if before is not None:
        same_server(config, context, before)
    if config.endpoint is None:
        need_letta(context)
    return deliver(config, context, Job(message_id, text, before, args.timeout, args.json))


@dataclass(frozen=True, slots=True)
class Job:
    message_id: str
    text: str
    before: Send | None  # the ledger's row, when it has one
    timeout: float | None
    as_json: bool


def deliver(config: WorkerConfig, context: Context, job: Job) -> int:
    """Run the worker until the message's fate is known, and report."""
    log_to(context.paths.log)
    worker = Worker(config)
    before = job.before
    over = before is not None and before.delivery == "delivered" and before.outcome in ENDED
    watch = Oneshot(worker, job.message_id, job.text, known=before is not None, over=over)
    worker.start()
    interrupted = False
    try:
        result = watch.watch(job.timeout)
    except KeyboardInterrupt:
        interrupted, result = True, Result("timeout", "Interrupted.")
    stops = result.ending in ("approval", "timeout") and not watch.connection.held and running(watch)
    if config.endpoint is not None and config.endpoint.kind == "hosted":
        stops = False  # a machine of the service does not notice who comes and goes
    # Leaving a server that nobody else holds would cut the turn off and wedge the conversation: it is ended
    # in order instead.
    worker.send(Quit("stop" if stops else "keep"))
    worker.join(30)
    send = stored(context, job.message_id)
    report = Report(result, send, watch.answer, stopped=stops)
    if job.as_json:
        show_json(report.data(job.message_id))
    elif report.code == OK:
        print(report.answer)
    if report.code != OK:
        print(f"letta-tui: {report.words()}", file=sys.stderr)
    return INTERRUPTED if interrupted else report.code


def running(watch: Oneshot) -> bool:
    """Whether a turn is going on that leaving would cut off."""
    return watch.connection.phase == "ready" and watch.status.activity != "idle"


@dataclass(frozen=True, slots=True)
class Report:
    """What is said about the message, from the ledger's row (``None`` when it was never stored)."""

    result: Result
    send: Send | None
    answer: str
    stopped: bool

    @property
    def code(self) -> int:
        """The exit code: the truth about the message, not about the connection."""
        send = self.send
        if send is None or send.delivery in ("prepared", "rejected", "cancelled", "failed", "discarded"):
            return FAILED
        if self.result.ending == "approval":
            return APPROVAL_NEEDED
        if send.delivery in ("unconfirmed", "unknown", "vanished"):
            return UNKNOWN_DELIVERY
        if send.outcome == "done":
            return OK
        if send.outcome in ("failed", "cancelled"):
            return TURN_FAILED
        if send.outcome == "ended_unseen":
            return OK if self.answer else TURN_FAILED
        return FAILED if self.result.ending != "timeout" else UNKNOWN_DELIVERY

    def words(self) -> str:
        """One sentence for a person."""
        send, result = self.send, self.result
        if send is None:
            return result.words or "The message was not sent."
        name = f"message {send.client_message_id}"
        if self.code == APPROVAL_NEEDED:
            what = plain(headline(result.approvals), 120)
            if self.stopped:
                return f"The agent wants to {what}; nobody can answer here, so the turn was stopped ({name})."
            return f"A tool call waits for approval: {what}. Start letta-tui to answer it ({name})."
        error = plain(server_words(str((send.terminal or {}).get("error") or "")), 300)
        if self.code == TURN_FAILED:
            how = "was cancelled" if send.outcome == "cancelled" else "failed"
            if send.outcome == "ended_unseen":
                how = "ended unseen, without a reply"
            return f"The message was delivered, but its turn {how}" + (f": {error}." if error else ".")
        if self.code == UNKNOWN_DELIVERY:
            if result.ending == "timeout" and send.delivery not in ("unconfirmed", "unknown", "vanished"):
                end = "the turn was stopped" if self.stopped else "the turn goes on"
                return f"No end within the time given; {end}. Run the same again with --id ({name})."
            why = f" {result.words}" if result.words else ""
            return f"Nobody can say whether the server has it.{why} Run the same again with --id ({name})."
        state = {"prepared": "is stored and was not sent", "cancelled": "was taken back from the queue"}
        said = state.get(send.delivery, f"was not delivered ({send.delivery})")
        why = plain(result.words or error, 300)
        return f"The message {said}" + (f": {why}" if why else ".") + f" Its id is {send.client_message_id}."

    def data(self, message_id: str) -> dict[str, Any]:
        """The report for a program."""
        send = self.send
        terminal = dict(send.terminal or {}) if send is not None else {}
        seconds = terminal.get("duration")
        return {
            "success": self.code == OK,
            "result": self.answer or None,
            "stop_reason": terminal.get("stop_reason") or None,
            "duration_ms": round(seconds * 1000) if isinstance(seconds, int | float) else None,
            "run_ids": list(send.run_ids) if send is not None else [],
            "agent": send.place.agent_id if send is not None else None,
            "conversation": send.place.conversation_id if send is not None else None,
            "client_message_id": message_id,
            "delivery": send.delivery if send is not None else None,
            "turn": send.outcome if send is not None else None,
            "waiting_for": [a.tool_name for a in self.result.approvals],
            "error": None if self.code == OK else self.words(),
            "exit_code": self.code,
        }


def server_words(error: str) -> str:
    """The sentence inside an error that comes wrapped in layers of JSON, some with a number before."""
    for _ in range(6):
        start = error.find("{")
        try:
            found: Any = json.loads(error[start:]) if start >= 0 else None
        except ValueError:
            break
        while isinstance(found, dict):
            found = found.get("message") or found.get("error") or found.get("detail")
        if not isinstance(found, str):
            break
        error = found
    return error.strip().rstrip(".")


def check_id(text: str) -> str:
    """A message's identity as the server takes it."""
    if not text or len(text) > 200 or not text.isascii() or not text.isprintable() or " " in text:
        raise CommandError("--id takes a word of up to 200 plain characters, for instance a UUID.", USAGE)
    return text


def text_of(args: argparse.Namespace) -> str:
    """The message, from the command line or standard input."""
    if args.stdin and args.text is not None:
        raise CommandError("Give either TEXT or --stdin, not both.", USAGE)
    if args.stdin:
        data = sys.stdin.buffer.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise CommandError(f"The message is longer than {_LARGEST // 2**20} MiB.", USAGE)
        text = data.decode("utf-8", "replace")
    elif args.text is not None:
        text = args.text
    else:
        raise CommandError("There is nothing to send: give TEXT, or --stdin.", USAGE)
    if not text.strip():
        raise CommandError("There is nothing to send: the text is empty.", USAGE)
    return str(text.encode("utf-8", "replace").decode("utf-8"))


def stored(context: Context, message_id: str) -> Send | None:
    """The ledger's row of the message."""
    with open_ledger(context.paths) as ledger:
        return ledger.send(message_id) if ledger is not None else None


def same_server(config: WorkerConfig, context: Context, send: Send) -> None:
    """Refuse to look for a message on a server it was never sent to."""
    endpoint = config.endpoint
    key = server_key(endpoint) if endpoint is not None else f"embedded:{context.profile.name}"
    if key != send.place.server_key:
        where = plain(send.place.server_key)
        raise CommandError(f"Message {send.client_message_id} belongs to another server: {where}.", USAGE)
