"""The options that several commands share, and the parser they are made for."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

PERSONALITIES = ("memo", "tutorial", "blank", "linus", "kawaii")
MODES = ("standard", "acceptEdits", "unrestricted", "strict")

DEFAULTS: dict[str, Any] = {
    "profile": None,
    "url": None,
    "token_file": None,
    "agent": None,
    "conversation": None,
    "mode": None,
    "cwd": None,
    "confine": None,
    "new": False,
    "default": False,
    "json": False,
}


class UsageError(Exception):
    """The command line is wrong; the message is one clear sentence."""


class Parser(argparse.ArgumentParser):
    """Raises instead of printing a usage block, and knows what was probably meant."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("allow_abbrev", False)
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*args, **kwargs)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{_sentence(message)} `{self.prog} --help` shows what is possible.")


def _sentence(message: str) -> str:
    text = message.strip().rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."


def profile_options() -> Parser:
    options = Parser(add_help=False)
    options.add_argument(
        "--profile",
        metavar="NAME",
        default=argparse.SUPPRESS,
        help="the profile of the config file to use, with data of its own (default: 'default')",
    )
    return options


def server_options() -> Parser:
    options = Parser(add_help=False)
    options.add_argument(
        "--url",
        metavar="URL",
        default=argparse.SUPPRESS,
        help="use the server at this address (ws://, wss://, http:// or https://) instead of an embedded one",
    )
    options.add_argument(
        "--token-file",
        metavar="FILE",
        default=argparse.SUPPRESS,
        help="the file with the server's token (a token is never taken from the command line)",
    )
    return options


def target_options() -> Parser:
    options = Parser(add_help=False)
    options.add_argument("--agent", metavar="ID", default=argparse.SUPPRESS, help="the agent to talk to")
    options.add_argument(
        "--conversation",
        metavar="ID",
        default=argparse.SUPPRESS,
        help="the conversation to open; wins over all",
    )
    return options


def session_options() -> Parser:
    options = Parser(add_help=False)
    options.add_argument(
        "--mode",
        choices=MODES,
        default=argparse.SUPPRESS,
        help="how much the agent may do without asking (a new conversation: standard)",
    )
    options.add_argument(
        "--cwd",
        metavar="FOLDER",
        default=argparse.SUPPRESS,
        help="the folder in which the agent's tools work",
    )
    options.add_argument(
        "--confine",
        choices=("memory",),
        default=argparse.SUPPRESS,
        help="let the embedded server write to the memory of the agent (--agent) alone, or start nothing",
    )
    return options


def json_option(parser: argparse.ArgumentParser, words: str) -> None:
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=words)


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds") from None
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above zero")
    return value
