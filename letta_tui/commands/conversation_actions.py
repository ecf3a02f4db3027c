"""``letta-tui conversations rename`` and its siblings: what can be done with a conversation on its server."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from letta_tui.commands.context import load_context, open_ledger
from letta_tui.commands.errors import FAILED, OK, CommandError
from letta_tui.commands.output import plain
from letta_tui.commands.server import ask_server, endpoint_of, sure
from letta_tui.protocol import Frame, commands

NO_DELETE = "The App Server has no command that deletes a conversation."
COMPACT_SECONDS = 300.0  # a model writes the summary


def run(args: argparse.Namespace) -> int:
    context = load_context(args)
    endpoint = endpoint_of(args, context)
    name, what = args.id, args.action_name
    agent = args.agent or _agent_here(args, name)

    def ask(command: Mapping[str, object], timeout: float = 60.0) -> Frame:
        return ask_server(endpoint, context, command, timeout=timeout)

    if what == "rename":
        ask(commands.conversation_update(name, title=args.title))
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
        print(plain(copy["id"]))
    else:
        ask(commands.conversation_compact(name, agent_id=agent or None), COMPACT_SECONDS)
        print("Summarised.")
    return OK


def _agent_here(args: argparse.Namespace, conversation: str) -> str:
    """The agent this client knows the conversation to be of, "" when it knows none or several."""
    context = load_context(args)
    with open_ledger(context.paths) as ledger:
        known = ledger.conversations() if ledger is not None else ()
    agents = {k.place.agent_id for k in known if k.place.conversation_id == conversation}
    return agents.pop() if len(agents) == 1 else ""
