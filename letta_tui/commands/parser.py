"""From the words of a command line to a namespace, or to one sentence about what is wrong with them."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence

from letta_tui.commands.options import DEFAULTS, UsageError
from letta_tui.commands.tree import build


def command_names(parser: argparse.ArgumentParser) -> list[str]:
    """The commands of ``parser``, in the order of the help text."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return list(action.choices)
    return []


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The arguments as a namespace with ``run``; :class:`UsageError` when they make no sense."""
    parser = build()
    _check_command(parser, arguments)
    _check_options(parser, arguments)
    args = parser.parse_args(list(arguments))
    for name, value in DEFAULTS.items():
        if not hasattr(args, name):
            setattr(args, name, value)
    check(args)
    return args


def _check_command(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """Name the command that was probably meant; argparse would list all of them."""
    if not arguments or arguments[0].startswith("-"):
        return
    names = command_names(parser)
    word = arguments[0]
    if word in names:
        return
    near = difflib.get_close_matches(word, names, n=1)
    meant = f" Did you mean `letta-tui {near[0]}`?" if near else " `letta-tui --help` shows what is possible."
    raise UsageError(f"There is no command {word!r}.{meant}")


def _check_options(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """Name the option that was probably meant; argparse would often complain about what follows it."""
    known = sorted(_option_names(parser))
    for word in arguments:
        if word == "--":
            return
        name = word.split("=", 1)[0]
        if not name.startswith("--") or name in known:
            continue
        if name in ("--token", "--api-key", "--password"):
            raise UsageError(f"{name} does not exist: others can read a command line. Use --token-file FILE.")
        if name == "--stateless":
            raise UsageError(
                "--stateless does not exist: the App Server has no field for a turn that leaves no trace; "
                "`send --agent ID` puts each message into a conversation of its own."
            )
        near = difflib.get_close_matches(name, known, n=1)
        meant = f" Did you mean {near[0]}?" if near else " `letta-tui --help` shows what is possible."
        raise UsageError(f"There is no option {name}.{meant}")


def _option_names(parser: argparse.ArgumentParser) -> set[str]:
    names: set[str] = set()
    for action in parser._actions:
        names.update(action.option_strings)
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                names |= _option_names(command)
    return names


# Options that are read before the command too, and the commands ("" is none) they mean something to.
_BELONGS_TO: dict[str, tuple[str, tuple[str, ...]]] = {
    "profile": (
        "--profile",
        (
            "",
            "send",
            "ledger",
            "explain",
            "conversations",
            "agents",
            "devices",
            "profiles",
            "keep",
            "keeper",
            "doctor",
        ),
    ),
    "url": ("--url", ("", "send", "keep", "doctor", "agents", "conversations")),
    "token_file": ("--token-file", ("", "send", "keep", "doctor", "agents", "conversations")),
    "agent": ("--agent", ("", "send", "conversations")),
    "conversation": ("--conversation", ("", "send")),
    "mode": ("--mode", ("", "send")),
    "cwd": ("--cwd", ("", "send")),
    "confine": ("--confine", ("", "send")),
    "new": ("--new", ("", "demo")),
    "default": ("--default", ("",)),
}


def check(args: argparse.Namespace) -> None:
    """Combinations that contradict each other, whatever the command."""
    for name, shown in (
        ("agent", "--agent"),
        ("conversation", "--conversation"),
        ("url", "--url"),
        ("cwd", "--cwd"),
    ):
        if getattr(args, name) == "":
            raise UsageError(f"{shown} needs a value that is not empty.")
    for name, (shown, commands) in _BELONGS_TO.items():
        if getattr(args, name) and args.command not in commands:
            raise UsageError(f"{shown} means nothing to `letta-tui {args.command}`.")
    if args.new and args.conversation:
        raise UsageError(
            "--new and --conversation contradict each other: one makes a conversation, one opens one."
        )
    if args.new and args.default:
        raise UsageError(
            "--new and --default contradict each other: the default conversation exists already."
        )
    if args.default and args.conversation:
        raise UsageError("--default and --conversation contradict each other: both name a conversation.")
    if args.token_file and not args.url:
        raise UsageError(
            "--token-file belongs to --url: without it the server is an embedded one with its own token."
        )
