"""``letta-tui explain [ID]``: what happened to a message, told from recorded evidence."""

from __future__ import annotations

import argparse

from letta_tui.commands.context import load_context, open_ledger
from letta_tui.commands.errors import FAILED, OK, CommandError
from letta_tui.commands.output import plain, show, show_json
from letta_tui.conversation.explain import Case, explain, explain_data
from letta_tui.ledger.store import Ledger
from letta_tui.ledger.values import Send


def run(args: argparse.Namespace) -> int:
    context = load_context(args)
    with open_ledger(context.paths, to_read=True) as ledger:
        if ledger is None:
            raise CommandError("Nothing has been sent yet, so there is nothing to explain.", FAILED)
        send = find(ledger, args.id)
        case = case_of(ledger, send)
        if args.json:
            show_json(explain_data(case))
        else:
            show(_harmless(line) for line in explain(case))
    return OK


def case_of(ledger: Ledger, send: Send) -> Case:
    """What is recorded about a message, with the decisions and calls of its conversation."""
    return Case(
        send,
        ledger.evidence(send.client_message_id),
        ledger.approvals(send.place),
        ledger.tool_calls(send.place),
    )


def find(ledger: Ledger, wanted: str | None) -> Send:
    """The send with this id, or the only one that begins with it; the newest when ``wanted`` is ``None``."""
    if wanted is None:
        newest = ledger.newest()
        if newest is None:
            raise CommandError("Nothing has been sent yet, so there is nothing to explain.", FAILED)
        return newest
    exact = ledger.send(wanted)
    if exact is not None:
        return exact
    near = [s for s in ledger.sends() if wanted and s.client_message_id.startswith(wanted)]
    if len(near) == 1:
        return near[0]
    if near:
        raise CommandError(
            f"{len(near)} messages have an id that begins with {plain(wanted, 40)!r}: give more of it."
        )
    raise CommandError(
        f"There is no message with the id {plain(wanted, 80)!r}; `letta-tui ledger` lists them."
    )


def _harmless(line: str) -> str:
    """A line as it is, with its indentation, but nothing a terminal could act on."""
    indent = len(line) - len(line.lstrip(" "))
    return " " * indent + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in line[indent:])
