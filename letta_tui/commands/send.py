"""``letta-tui send``: one message through the same ledger and recovery, and the answer on standard output."""

from __future__ import annotations

import argparse
import sys
import time
import uuid
from dataclasses import dataclass

from letta_tui.commands.context import Context, load_context, open_ledger
from letta_tui.commands.crash import log_to
from letta_tui.commands.errors import INTERRUPTED, OK, USAGE, CommandError
from letta_tui.commands.oneshot import Oneshot, Result, headline
from letta_tui.commands.output import plain, show_json
from letta_tui.commands.send_report import Report
from letta_tui.commands.server import key_of
from letta_tui.commands.wiring import need_letta, worker_config
from letta_tui.conversation.words import twice_note
from letta_tui.ledger.transitions import ENDED
from letta_tui.ledger.values import Evidence, Send
from letta_tui.seam.intents import Quit
from letta_tui.worker.config import WorkerConfig
from letta_tui.worker.worker import Worker

_READING_SECONDS = 10.0
_LARGEST = 8 * 1024 * 1024  # bytes of a message; more than any model takes


def run(args: argparse.Namespace) -> int:
    context = load_context(args)
    context.paths.create()
    message_id = check_id(args.id) if args.id is not None else str(uuid.uuid4())
    before = stored(context, message_id) if args.id is not None else None
    if before is None and args.id is not None and args.text is None and not args.stdin:
        raise CommandError(
            f"No message {message_id} is stored here: give TEXT, or --stdin, to send one.", USAGE
        )
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
    watch = Oneshot(
        worker,
        job.message_id,
        job.text,
        known=before is not None,
        over=over,
        keeper=config.keeper is not None,
    )
    worker.start()
    interrupted = False
    try:
        result = watch.watch(job.timeout)
    except KeyboardInterrupt:
        interrupted, result = True, Result("timeout", "Interrupted.")
    if result.ending == "ended" and (watch.connections > 1 or (before is not None and not over)):
        wait_for_reading(context, job.message_id, watch.ended_at)
    stops = must_stop(config, watch, result)
    if stops and result.approvals:
        note_stop(context, job.message_id, headline(result.approvals))
    reachable = watch.connection.phase == "ready"
    worker.send(Quit("stop" if stops else "keep"))
    worker.join(30)
    send = stored(context, job.message_id)
    if send is not None and "history_twice" in send.last and twice_note(1) not in watch.notes:
        watch.notes.append(twice_note(1))
    report = Report(
        result,
        send,
        watch.answer(inputs_of(send)),
        stopped=stops,
        stopped_for=stopped_for(context, job.message_id),
        reachable=reachable,
        notes=tuple(watch.notes),
    )
    if job.as_json:
        show_json(report.data(job.message_id))
    else:
        if report.code == OK:
            print(report.answer)
        for note in report.said:
            print(f"letta-tui: {plain(note)}", file=sys.stderr)
    if report.code != OK:
        print(f"letta-tui: {report.words()}", file=sys.stderr)
    return INTERRUPTED if interrupted else report.code


def inputs_of(send: Send | None) -> tuple[str, ...]:
    """The ids that the end of the message's turn named: what is queued runs together."""
    inputs = (send.terminal or {}).get("inputs") if send is not None else None
    return tuple(str(each) for each in inputs) if isinstance(inputs, list | tuple) else ()


def must_stop(config: WorkerConfig, watch: Oneshot, result: Result) -> bool:
    """Whether the turn is ended in order before this command leaves.

    Leaving a server that nobody else holds would cut it off and wedge the conversation. A tool of the
    person's own can be run by this process alone, so whoever answered its card later would answer in vain.
    """
    if result.ending not in ("approval", "timeout") or not running(watch):
        return False
    if any(approval.own for approval in result.approvals):
        return True
    if config.endpoint is not None and config.endpoint.kind == "hosted":
        return False  # a machine of the service does not notice who comes and goes
    return not watch.connection.held


def running(watch: Oneshot) -> bool:
    """Whether a turn is going on that leaving would cut off."""
    return watch.connection.phase == "ready" and watch.status.activity != "idle"


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


def note_stop(context: Context, message_id: str, words: str) -> None:
    """Record, before it is done, that the turn is stopped because nobody could answer a card."""
    with open_ledger(context.paths) as ledger:
        if ledger is not None:
            ledger.observe(
                message_id, Evidence(kind="note", payload={"stopped_for_card": True, "words": words})
            )


def stopped_for(context: Context, message_id: str) -> str:
    """What the card wanted for which an earlier run of this command, or this one, stopped the turn."""
    with open_ledger(context.paths) as ledger:
        notes = [e.payload for e in ledger.evidence(message_id)] if ledger is not None else []
    return next((str(p.get("words") or "use a tool") for p in notes if p.get("stopped_for_card")), "")


def wait_for_reading(context: Context, message_id: str, since: float) -> None:
    """After a break a server that crashed may run a message again; only the reading of the history that
    follows the turn tells. ``since``: when its turn ended (wall clock)."""
    until = time.monotonic() + _READING_SECONDS
    while time.monotonic() < until:
        with open_ledger(context.paths) as ledger:
            send = ledger.send(message_id) if ledger is not None else None
            known = ledger.conversation(send.place) if ledger is not None and send is not None else None
            seen = known.state.get("seen_at") if known is not None else None
        if isinstance(seen, int | float) and seen >= since:
            return
        time.sleep(0.1)


def same_server(config: WorkerConfig, context: Context, send: Send) -> None:
    """Refuse to look for a message on a server it was never sent to."""
    if key_of(context, config.endpoint) != send.place.server_key:
        where = plain(send.place.server_key)
        raise CommandError(f"Message {send.client_message_id} belongs to another server: {where}.", USAGE)
