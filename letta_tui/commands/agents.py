"""``letta-tui agents``: the agents of a server; make, rename and delete them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

from letta_tui.commands.context import Context, load_context
from letta_tui.commands.errors import OK, USAGE, CommandError
from letta_tui.commands.output import plain, show, show_json, table
from letta_tui.commands.server import ask_hosted, ask_server, endpoint_of, sure
from letta_tui.protocol import commands
from letta_tui.transport.endpoint import Endpoint
from letta_tui.transport.environments import Environments


def run(args: argparse.Namespace) -> int:
    context = load_context(args)
    endpoint = endpoint_of(args, context)
    rows = [
        {key: row.get(key) for key in ("id", "name", "model", "created_at")}
        for row in _agents(endpoint, context)
    ]
    if args.json:
        show_json(rows)
    elif not rows:
        print("This server has no agent yet.")
    else:
        cells = [
            (str(r["id"]), plain(str(r["name"] or ""), 30), plain(str(r["model"] or ""), 50)) for r in rows
        ]
        show([table(cells, ("AGENT", "NAME", "MODEL"))])
    return OK


def _agents(endpoint: Endpoint | None, context: Context) -> Iterable[Mapping[str, Any]]:
    if endpoint is not None and endpoint.kind == "hosted":
        return ask_hosted(endpoint, Environments.agents)
    found = ask_server(endpoint, context, commands.agent_list(limit=100)).raw.get("agents")
    rows = found if isinstance(found, list) else []
    return [row for row in rows if isinstance(row, Mapping) and isinstance(row.get("id"), str)]


def create(args: argparse.Namespace) -> int:
    context = load_context(args)
    endpoint = endpoint_of(args, context)
    body = {key: value for key, value in (("name", args.name), ("model", args.model)) if value}
    if endpoint is not None and endpoint.kind == "hosted":
        if args.personality:
            raise CommandError("The presets belong to the App Server; the hosted service has none.", USAGE)
        agent = ask_hosted(endpoint, lambda service: service.create_agent(body))
    elif args.personality:
        preset = commands.create_agent(args.personality, model=args.model, pin_global=False)
        agent = str(ask_server(endpoint, context, preset).raw.get("agent_id"))
        if args.name:
            ask_server(endpoint, context, commands.agent_update(agent, {"name": args.name}))
    else:
        made = ask_server(endpoint, context, commands.agent_create(body)).raw.get("agent")
        agent = str(made.get("id")) if isinstance(made, Mapping) else ""
    if args.json:
        show_json({"agent": agent})
    else:
        print(agent)
    return OK


def rename(args: argparse.Namespace) -> int:
    context = load_context(args)
    ask_server(endpoint_of(args, context), context, commands.agent_update(args.id, {"name": args.name}))
    print("Renamed.")
    return OK


def delete(args: argparse.Namespace) -> int:
    context = load_context(args)
    sure(args, f"The server deletes {plain(args.id)} with its memory and its conversations, for good.")
    ask_server(endpoint_of(args, context), context, commands.agent_delete(args.id))
    print("Deleted. What this program stored of its conversations stays.")
    return OK
