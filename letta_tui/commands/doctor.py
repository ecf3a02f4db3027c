"""``letta-tui doctor``: check everything this program relies on, and say what to do."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import asdict, replace

from letta_tui.commands.checks import (
    Check,
    check_endpoint,
    check_folder,
    check_keeper,
    check_ledger,
    check_letta,
    check_packages,
    check_python,
    check_terminal,
)
from letta_tui.commands.context import Context, load_context
from letta_tui.commands.errors import FAILED, OK, CommandError
from letta_tui.commands.output import plain, show_json
from letta_tui.commands.session_checks import check_calls, check_logout
from letta_tui.commands.wiring import named_endpoint, profile_endpoint
from letta_tui.config import Config, Profile
from letta_tui.paths import resolve


def run(args: argparse.Namespace) -> int:
    context, config_check = _context(args)
    checks = [check_python(), check_packages(), config_check]
    profile, paths = context.profile, context.paths
    if args.url:
        profile = replace(profile, kind="direct")
    checks += [
        check_letta(profile, os.environ),
        check_folder(paths),
        check_ledger(paths),
        check_keeper(paths),
    ]
    checks.append(_server(args, context))
    size = os.get_terminal_size() if sys.stdout.isatty() else None
    checks += [
        check_terminal(os.environ, size, sys.stdout.encoding or "ascii"),
        check_calls(os.environ),
        check_logout(),
    ]
    if args.json:
        show_json([asdict(check) for check in checks])
    else:
        _print(checks)
    return FAILED if any(check.verdict == "fail" for check in checks) else OK


def _context(args: argparse.Namespace) -> tuple[Context, Check]:
    """The profile; a config file that is wrong is a finding here, not the end."""
    try:
        context = load_context(args)
    except CommandError as error:
        paths = resolve()
        empty = Context(Config(paths.config_file), Profile(), paths)
        return empty, Check("config", "fail", str(error), f"Edit {paths.config_file}.")
    file = context.config.file
    words = (
        f"{file}, profile {context.profile.name}"
        if context.config.exists
        else f"{file} does not exist; defaults"
    )
    return context, Check("config", "ok", words)


def _server(args: argparse.Namespace, context: Context) -> Check:
    try:
        if args.url:
            endpoint = named_endpoint(args.url, args.token_file)
        elif context.profile.kind != "embedded":
            endpoint = profile_endpoint(context.profile)
        else:
            endpoint = None
    except CommandError as error:
        return Check("server", "fail", str(error), "Check the address and the profile.")
    return check_endpoint(endpoint)


def _print(checks: list[Check]) -> None:
    for check in checks:
        print(f"{check.verdict:<5} {check.name:<12} {plain(check.words)}")
        if check.advice and check.verdict != "ok":
            print(f"{'':<18} → {plain(check.advice)}")
