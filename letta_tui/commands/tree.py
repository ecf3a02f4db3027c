"""The tree of commands; a command's module is loaded only when it runs."""

from __future__ import annotations

import argparse
import gc
import importlib
from collections.abc import Callable

from letta_tui import __version__
from letta_tui.commands.options import (
    PERSONALITIES,
    Parser,
    json_option,
    profile_options,
    seconds,
    server_options,
    session_options,
    target_options,
)

_EPILOG = """\
Without a command the last conversation is opened again, on the server it was on.

exit codes: 0 done; 1 the server, disk or network did not do it; 2 wrong command line or config file;
`send` only: 0 the turn ended and what was received of its answer is on standard output, 3 the turn failed,
4 a tool call waits for approval, 5 nobody can say how it ended: run it again with --id
"""


def build() -> Parser:
    """The whole command line."""
    profile, server, target, session = (
        profile_options(),
        server_options(),
        target_options(),
        session_options(),
    )
    parser = Parser(
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
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)

    def add(name: str, words: str, module: str, *parents: Parser) -> Parser:
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
        type=seconds,
        default=None,
        metavar="SECONDS",
        help="give up waiting after this long (default: never)",
    )
    json_option(
        send,
        "print an object: success, result, stop reason, duration, run ids, conversation, client message id",
    )

    ledger = add("ledger", "list every message this client was asked to send", "ledger", profile)
    json_option(ledger, "print a JSON array, an object for each message")
    actions = ledger.add_subparsers(title="actions", metavar="ACTION", parser_class=Parser)
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
    json_option(explain, "print the evidence as JSON")

    conversations = add(
        "conversations", "list the conversations this client had", "conversations", profile, server
    )
    json_option(conversations, "print a JSON array")
    _conversation_actions(conversations, profile, server)

    agents = add("agents", "list, make, rename and delete the agents of a server", "agents", profile, server)
    json_option(agents, "print a JSON array")
    _agent_actions(agents, profile, server)

    devices = add("devices", "list the machines of a hosted account", "devices", profile)
    json_option(devices, "print a JSON array")

    profiles = add("profiles", "list the profiles of the config file", "profiles", profile)
    json_option(profiles, "print a JSON array")

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
    json_option(keeper, "print an object")

    doctor = add("doctor", "check everything this program relies on", "doctor", profile, server)
    json_option(doctor, "print a JSON array, an object for each check")
    return parser


def _conversation_actions(parser: Parser, *parents: Parser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", parser_class=Parser)
    for name, words in (
        ("rename", "give it a title"),
        ("archive", "archive it"),
        ("unarchive", "take it out of the archive"),
        ("hide", "archive and hide it"),
        ("delete", "hide it for good, after a question: the server has no command that deletes one"),
        ("fork", "copy it, and print the copy's id"),
        ("compact", "have the older part summarised"),
    ):
        action = actions.add_parser(
            name, help=words, description=words[:1].upper() + words[1:] + ".", parents=parents
        )
        action.add_argument("id", metavar="ID", help="the conversation")
        if name == "rename":
            action.add_argument("title", metavar="TITLE")
        if name == "delete":
            action.add_argument("--yes", action="store_true", help="do not ask")
        action.add_argument("--agent", metavar="ID", default=argparse.SUPPRESS, help="its agent")
        action.set_defaults(run=_command("conversation_actions"), action_name=name)


def _agent_actions(parser: Parser, *parents: Parser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", parser_class=Parser)

    def add(name: str, words: str) -> Parser:
        action = actions.add_parser(
            name, help=words, description=words[:1].upper() + words[1:] + ".", parents=parents
        )
        action.set_defaults(run=_command("agents", name))
        return action

    create = add("create", "make an agent, and print its id")
    create.add_argument("--name", metavar="NAME", help="what it is called")
    create.add_argument("--model", metavar="HANDLE", help="its model")
    create.add_argument("--personality", choices=PERSONALITIES, help="a preset of the server to make it from")
    create.add_argument(
        "--body",
        metavar="FILE",
        help="a JSON object with all the server takes of a new agent (- : stdin)",
    )
    json_option(create, "print an object")
    rename = add("rename", "rename an agent")
    rename.add_argument("id", metavar="ID")
    rename.add_argument("name", metavar="NAME")
    delete = add("delete", "delete an agent on the server, with its memory, for good")
    delete.add_argument("id", metavar="ID")
    delete.add_argument("--yes", action="store_true", help="do not ask")


def _command(module: str, function: str = "run") -> Callable[[argparse.Namespace], int]:
    """A ``run`` that imports ``letta_tui.commands.<module>`` only when it is called."""

    def run(args: argparse.Namespace) -> int:
        home = importlib.import_module(f"letta_tui.commands.{module}")
        found: Callable[[argparse.Namespace], int] = getattr(home, function)
        gc.enable()
        return found(args)

    return run
