"""``letta-tui agents``: the agents of a server; make, rename and delete them."""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
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
    named = {key: value for key, value in (("name", args.name), ("model", args.model)) if value}
    if args.body is not None and args.personality:
        raise CommandError("--body and --personality contradict each other: a preset has a body.", USAGE)
    body = {**(body_of(args.body) if args.body is not None else {}), **named}
    if endpoint is not None and endpoint.kind == "hosted":
        if args.personality:
            raise CommandError("The presets belong to the App Server; the hosted service has none.", USAGE)
        agent = ask_hosted(endpoint, lambda service: service.create_agent(body))
        return _told(args, agent)
    models = ask_server(endpoint, context, commands.list_models()).raw
    if model := str(args.model or body.get("model") or ""):
        _check_model(model, models)
    elif model := _only_model(models):
        body["model"] = model  # the server would take one of its own liking, with a provider or without
    if args.personality:
        preset = commands.create_agent(args.personality, model=model or None, pin_global=False)
        agent = str(ask_server(endpoint, context, preset).raw.get("agent_id"))
        if args.name:
            ask_server(endpoint, context, commands.agent_update(agent, {"name": args.name}))
    else:
        made = ask_server(endpoint, context, commands.agent_create(body)).raw.get("agent")
        agent = str(made.get("id")) if isinstance(made, Mapping) else ""
    return _told(args, agent)


def body_of(name: str) -> dict[str, Any]:
    """The JSON object in a file, or on standard input. Raises ``CommandError``."""
    shown = "standard input" if name == "-" else name
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).expanduser().read_bytes()
        body = json.loads(data)
    except OSError as error:
        raise CommandError(f"{shown} cannot be read: {error.strerror or error}.", USAGE) from None
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{shown} is not valid JSON: {error}.", USAGE) from None
    if not isinstance(body, dict):
        raise CommandError(f'{shown} must hold a JSON object, such as {{"name": "Ada"}}.', USAGE)
    return body


def _check_model(name: str, answer: Mapping[str, Any]) -> None:
    """The server makes an agent with any model, and tells only when it is talked to."""
    entries = [entry for entry in answer.get("entries") or () if isinstance(entry, Mapping)]
    known = {str(entry[key]) for entry in entries for key in ("handle", "id") if entry.get(key)}
    known |= {str(handle) for handle in answer.get("available_handles") or ()}
    if known and name not in known:
        near = difflib.get_close_matches(name, sorted(known), n=1)
        meant = (
            f"Did you mean {plain(near[0])}?" if near else f"It has {plain(', '.join(sorted(known)), 200)}."
        )
        raise CommandError(f"The server has no model {plain(name)!r}. {meant}")


def _only_model(answer: Mapping[str, Any]) -> str:
    """The one model that can be used there; "" where there is a choice, or none."""
    handles = answer.get("available_handles")
    return str(handles[0]) if isinstance(handles, list) and len(handles) == 1 else ""


def _told(args: argparse.Namespace, agent: str) -> int:
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
