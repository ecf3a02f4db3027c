"""The names of commands and options; a command's module is loaded only when it runs."""

from __future__ import annotations

import argparse
import difflib
import gc
import importlib
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from letta_tui import __version__

PERSONALITIES = ("memo", "tutorial", "blank", "linus", "kawaii")
MODES = ("standard", "acceptEdits", "unrestricted", "strict")


class UsageError(Exception):
    """The command line is wrong; the message is one clear sentence."""


class _Parser(argparse.ArgumentParser):
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


def _command(module: str, function: str = "run") -> Callable[[argparse.Namespace], int]:
    """A ``run`` that imports ``letta_tui.commands.<module>`` only when it is called."""

    def run(args: argparse.Namespace) -> int:
        home = importlib.import_module(f"letta_tui.commands.{module}")
        found: Callable[[argparse.Namespace], int] = getattr(home, function)
        gc.enable()
        return found(args)

    return run


def _profile_options() -> _Parser:
    options = _Parser(add_help=False)
    options.add_argument(
        "--profile",
        metavar="NAME",
        default=argparse.SUPPRESS,
        help="the profile of the config file to use, with data of its own (default: 'default')",
    )
    return options


def _server_options() -> _Parser:
    options = _Parser(add_help=False)
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


def _target_options() -> _Parser:
    options = _Parser(add_help=False)
    options.add_argument("--agent", metavar="ID", default=argparse.SUPPRESS, help="the agent to talk to")
    options.add_argument(
        "--conversation",
        metavar="ID",
        default=argparse.SUPPRESS,
        help="the conversation to open; wins over all",
    )
    return options


def _session_options() -> _Parser:
    options = _Parser(add_help=False)
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

_EPILOG = """\
Without a command the last conversation is opened again, on the server it was on.

exit codes: 0 done; 1 the server, disk or network did not do it; 2 wrong command line or config file;
`send` only: 3 the turn failed, 4 a tool call waits for approval, 5 nobody can say whether it was delivered
"""


def build() -> _Parser:
    """The whole command line."""
    profile, server, target, session = (
        _profile_options(),
        _server_options(),
        _target_options(),
        _session_options(),
    )
    parser = _Parser(
        prog="letta-tui",
        description="A terminal chat client for Letta agents that always knows what happened to a message.",
        epilog=_EPILOG,
        parents=[profile, server, target, session],
    )
    parser.add_argument("-V", "--version", action="version", version=f"letta-tui {__version__}")
    parser.add_argument("--new", action="store_true", help="start a new conversation")
    parser.add_argument(
        "--default", action="store_true", help="the agent's conversation named 'default' (asks for --agent)"
    )
    parser.set_defaults(run=_command("chat"), command="")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Parser)

    def add(name: str, words: str, module: str, *parents: _Parser) -> _Parser:
        command = commands.add_parser(
            name, help=words, description=words[:1].upper() + words[1:] + ".", parents=parents
        )
        command.set_defaults(run=_command(module), command=name)
        return command

    demo = add("demo", "try everything with a scripted practice model; no account, no network", "demo")
    demo.add_argument("--new", action="store_true", default=argparse.SUPPRESS, help="in a new conversation")

    send = add("send", "send one message and print the answer", "send", profile, server, target, session)
    send.add_argument("text", nargs="?", metavar="TEXT", help="what to send")
    send.add_argument("--stdin", action="store_true", help="read the text from standard input")
    send.add_argument(
        "--id", metavar="ID", help="the message's identity: running the same again reports, never repeats"
    )
    send.add_argument(
        "--timeout",
        type=_seconds,
        default=None,
        metavar="SECONDS",
        help="give up waiting after this long (default: never)",
    )
    _json(
        send,
        "print an object: success, result, stop reason, duration, run ids, conversation, client message id",
    )

    ledger = add("ledger", "list every message this client was asked to send", "ledger", profile)
    _json(ledger, "print a JSON array, an object for each message")
    actions = ledger.add_subparsers(title="actions", metavar="ACTION", parser_class=_Parser)
    export = actions.add_parser(
        "export",
        help="everything recorded, for a bug report",
        description="Everything recorded, as JSON.",
        parents=[profile],
    )
    export.add_argument(
        "--bodies", action="store_true", help="with the texts of the messages (left out otherwise)"
    )
    export.add_argument("-o", "--output", metavar="FILE", help="write to this file, readable by you alone")
    export.set_defaults(run=_command("ledger_export"))
    redact = actions.add_parser(
        "redact",
        help="erase the text of a message from everything stored here",
        description="Erase the text of a message from what is stored here; the server's copy stays.",
        parents=[profile],
    )
    redact.add_argument("id", metavar="ID", help="the client message id")
    redact.set_defaults(run=_command("redact"))

    explain = add("explain", "tell from the evidence what happened to a message", "explain", profile)
    explain.add_argument(
        "id", nargs="?", metavar="ID", help="the client message id (default: the newest message)"
    )
    _json(explain, "print the evidence as JSON")

    conversations = add("conversations", "list the conversations this client had", "conversations", profile)
    _json(conversations, "print a JSON array")
    _conversation_actions(conversations, profile, server)

    agents = add("agents", "list, make, rename and delete the agents of a server", "agents", profile, server)
    _json(agents, "print a JSON array")
    _agent_actions(agents, profile, server)

    devices = add("devices", "list the machines of a hosted account", "devices", profile)
    _json(devices, "print a JSON array")

    profiles = add("profiles", "list the profiles of the config file", "profiles", profile)
    _json(profiles, "print a JSON array")

    words = "hold a server's conversations in the foreground, so that no client's death cancels a turn"
    keep = add("keep", words, "keep", profile, server)
    keep.add_argument(
        "--hold",
        action="append",
        default=[],
        metavar="AGENT/CONVERSATION",
        help="hold this conversation from the start (may be given several times)",
    )

    keeper = add(
        "keeper", "look at, or stop, the background process that keeps turns alive", "keeper", profile
    )
    keeper.add_argument("action", choices=("status", "stop"))
    _json(keeper, "print an object")

    doctor = add("doctor", "check everything this program relies on", "doctor", profile, server)
    _json(doctor, "print a JSON array, an object for each check")
    return parser


def _conversation_actions(parser: _Parser, *parents: _Parser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", parser_class=_Parser)
    for name, words in (
        ("rename", "give it a title"),
        ("archive", "archive it"),
        ("unarchive", "take it out of the archive"),
        ("hide", "archive and hide it: the server has no command that deletes one"),
        ("fork", "copy it, and print the copy's id"),
        ("compact", "have the older part summarised"),
    ):
        action = actions.add_parser(
            name, help=words, description=words[:1].upper() + words[1:] + ".", parents=parents
        )
        action.add_argument("id", metavar="ID", help="the conversation")
        if name == "rename":
            action.add_argument("title", metavar="TITLE")
        action.add_argument("--agent", metavar="ID", default=argparse.SUPPRESS, help="its agent")
        action.set_defaults(run=_command("conversation_actions"), action_name=name)


def _agent_actions(parser: _Parser, *parents: _Parser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", parser_class=_Parser)

    def add(name: str, words: str) -> _Parser:
        action = actions.add_parser(
            name, help=words, description=words[:1].upper() + words[1:] + ".", parents=parents
        )
        action.set_defaults(run=_command("agents", name))
        return action

    create = add("create", "make an agent, and print its id")
    create.add_argument("--name", metavar="NAME", help="what it is called")
    create.add_argument("--model", metavar="HANDLE", help="its model")
    create.add_argument("--personality", choices=PERSONALITIES, help="a preset of the server to make it from")
    _json(create, "print an object")
    rename = add("rename", "rename an agent")
    rename.add_argument("id", metavar="ID")
    rename.add_argument("name", metavar="NAME")
    delete = add("delete", "delete an agent on the server, with its memory, for good")
    delete.add_argument("id", metavar="ID")
    delete.add_argument("--yes", action="store_true", help="do not ask")


def _json(parser: argparse.ArgumentParser, words: str) -> None:
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=words)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds") from None
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above zero")
    return value


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
