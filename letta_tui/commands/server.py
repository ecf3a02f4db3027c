"""A connection for a command that asks one thing of the server and goes."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from letta_tui.commands.context import Context
from letta_tui.commands.errors import FAILED, USAGE, CommandError
from letta_tui.commands.wiring import endpoint_for, keeper_for, need_letta
from letta_tui.protocol import Frame
from letta_tui.transport.client import Client
from letta_tui.transport.connect import open_connection
from letta_tui.transport.connection import TransportError
from letta_tui.transport.endpoint import Endpoint, server_key
from letta_tui.transport.environments import Environments
from letta_tui.worker.ports import KeeperTrouble

T = TypeVar("T")


def endpoint_of(args: argparse.Namespace, context: Context) -> Endpoint | None:
    """As for the chat; ``None`` is the embedded server. Makes the profile's folders."""
    context.paths.create()
    return endpoint_for(args, context)


def key_of(context: Context, endpoint: Endpoint | None) -> str:
    """What is stored about the server is found under this."""
    return server_key(endpoint) if endpoint is not None else f"embedded:{context.profile.name}"


def ask_hosted(endpoint: Endpoint, question: Callable[[Environments], Awaitable[T]]) -> T:
    """One question to the hosted service. Raises ``CommandError`` with its words."""

    async def ask() -> T:
        return await question(Environments(endpoint))

    try:
        return asyncio.run(ask())
    except TransportError as error:
        raise CommandError(error.words, FAILED) from None


def ask_server(
    endpoint: Endpoint | None,
    context: Context,
    command: Mapping[str, Any],
    *,
    timeout: float = 60.0,
) -> Frame:
    """The server's answer to one command, which must not be a refusal. An embedded one is started."""
    if endpoint is not None and endpoint.kind == "hosted":
        raise CommandError(
            "A connection to the hosted service is for one conversation: this is done in the window there.",
            USAGE,
        )
    if endpoint is None:
        need_letta(context)
    try:
        return asyncio.run(_ask(endpoint, context, command, timeout))
    except (TransportError, KeeperTrouble) as error:
        raise CommandError(error.words, FAILED) from None
    except TimeoutError:
        raise CommandError("The server did not answer in time.", FAILED) from None


async def _ask(
    endpoint: Endpoint | None, context: Context, command: Mapping[str, Any], timeout: float
) -> Frame:
    if endpoint is None:
        keeper = keeper_for(None, context)
        assert keeper is not None
        endpoint = (await keeper.endpoint()).endpoint
    client = Client(await open_connection(endpoint))
    try:
        frame = await client.request(command, timeout)
    finally:
        await client.close()
    answer = frame.answer
    if answer is not None and not answer.success:
        said = (answer.error or f"it refused {command['type']}").rstrip(". ")
        raise CommandError(f"The server says: {said}.", FAILED)
    return frame


def sure(args: argparse.Namespace, question: str) -> None:
    """Raises ``CommandError`` unless the person said yes, by ``--yes`` or at the terminal."""
    if args.yes:
        return
    if not sys.stdin.isatty():
        raise CommandError(f"{question} Say so with --yes.", USAGE)
    if input(f"{question} Type yes: ").strip().lower() != "yes":
        raise CommandError("Nothing was done.", FAILED)
