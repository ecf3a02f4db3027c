"""``letta-tui keep``: a keeper in the foreground, for the machine a server runs on.

A client far away may vanish at any moment; as long as this one is subscribed, its turn is not cancelled
and its approval not erased.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from dataclasses import replace

from letta_tui.commands.context import load_context
from letta_tui.commands.errors import FAILED, OK, USAGE, CommandError
from letta_tui.commands.wiring import (
    beside,
    keeper_options,
    keeper_paths,
    named_endpoint,
    profile_endpoint,
    watching_options,
    with_manners,
)
from letta_tui.keeper.errors import AlreadyRunning, CannotRun
from letta_tui.keeper.process import Keeper
from letta_tui.paths import private_folder


def run(args: argparse.Namespace) -> int:
    context = load_context(args)
    context.paths.create()
    holds = tuple(place_of(text) for text in args.hold)
    paths = keeper_paths(context.paths)
    options = replace(keeper_options(context.profile), idle_seconds=0)
    endpoint = None
    if args.url:
        endpoint = named_endpoint(args.url, args.token_file)
    elif context.profile.kind != "embedded":
        endpoint = profile_endpoint(context.profile)
    if endpoint is not None:
        options = watching_options(endpoint)
        paths = beside(paths, endpoint)
        for folder in (paths.state, paths.runtime):
            private_folder(folder)
    shown = endpoint.shown if endpoint is not None else "the embedded server"
    options = with_manners(options, context.profile)
    keeper = Keeper(paths, options, os.environ, holds=holds, say=lambda words: print(words, flush=True))
    try:
        asyncio.run(keeper.run(ready=lambda: print(f"Keeping {shown}; Ctrl+C ends it.", flush=True)))
    except AlreadyRunning:
        raise CommandError(f"A keeper for {shown} is already running.", FAILED) from None
    except CannotRun as error:
        raise CommandError(str(error), FAILED) from None
    return OK


def place_of(text: str) -> tuple[str, str]:
    """``agent/conversation`` as a pair."""
    agent, slash, conversation = text.partition("/")
    if not (slash and agent and conversation) or "/" in conversation:
        raise CommandError(f"--hold takes AGENT/CONVERSATION, not {text!r}.", USAGE)
    return agent, conversation
