"""``letta-tui conversations rename`` and its siblings: what can be done with a conversation on its server."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace

from letta_tui.commands.context import Context, load_context, open_ledger
from letta_tui.commands.errors import FAILED, OK, CommandError
from letta_tui.commands.output import plain
from letta_tui.commands.server import ask_server, endpoint_of, key_of, sure
from letta_tui.ledger.values import Remembered
from letta_tui.protocol import Frame, commands
from letta_tui.transport.endpoint import Endpoint
from letta_tui.worker.session import of_a_copy

NO_DELETE = "The App Server has no command that deletes a conversation."
COMPACT_SECONDS = 300.0  # a model writes the summary


def run(args: argparse.Namespace) -> int:
    context = load_context(args)
    endpoint = endpoint_of(args, context)
    name, what = args.id, args.action_name
    known = _known(context, endpoint, name, args.agent)
    agent = known.place.agent_id if known is not None else args.agent

    def ask(command: Mapping[str, object], timeout: float = 60.0) -> Frame:
        return ask_server(endpoint, context, command, timeout=timeout)

    if what == "rename":
        ask(commands.conversation_update(name, title=args.title))
        _remember(context, known, title=args.title)
        print("Renamed.")
    elif what in ("archive", "unarchive"):
        ask(commands.conversation_update(name, archived=what == "archive"))
        print("Archived." if what == "archive" else "Taken out of the archive.")
    elif what in ("hide", "delete"):
        if what == "delete":
            sure(args, f"{NO_DELETE} {plain(name)} is archived and hidden there instead.")
        ask(commands.conversation_update(name, archived=True, hidden=True))
        print("Archived and hidden." if what == "hide" else f"Archived and hidden. {NO_DELETE}")
    elif what == "fork":
        frame = ask(commands.conversation_fork(name, agent_id=agent if name == "default" else None))
        copy = frame.raw.get("conversation")
        if not (isinstance(copy, Mapping) and isinstance(copy.get("id"), str)):
            raise CommandError("The server did not name the copy.", FAILED)
        if known is not None:
            there = replace(known.place, conversation_id=copy["id"])
            copied = replace(known, place=there, state=of_a_copy(known.state))
            _remember(context, copied, title=str(copy.get("summary") or ""))
        print(plain(copy["id"]))
    else:
        ask(commands.conversation_compact(name, agent_id=agent or None), COMPACT_SECONDS)
        print("Summarised.")
    return OK


def _known(
    context: Context, endpoint: Endpoint | None, conversation: str, agent: str | None
) -> Remembered | None:
    """What is stored here about the conversation; nothing where it could be that of several agents."""
    here = key_of(context, endpoint)
    with open_ledger(context.paths) as ledger:
        found = ledger.conversations(here, agent or None) if ledger is not None else ()
    named = [one for one in found if one.place.conversation_id == conversation]
    return named[0] if len(named) == 1 else None


def _remember(context: Context, known: Remembered | None, *, title: str) -> None:
    """So that the list of this client's conversations says the same."""
    with open_ledger(context.paths) as ledger:
        if ledger is not None and known is not None:
            ledger.remember_conversation(
                known.place, title=title, agent_name=known.agent_name, state=known.state, used=False
            )
