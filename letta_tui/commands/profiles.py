"""``letta-tui profiles``: the endpoints of the config file."""

from __future__ import annotations

import argparse

from letta_tui import config as configuration
from letta_tui.commands.errors import OK, USAGE, CommandError
from letta_tui.commands.output import plain, show, show_json, table
from letta_tui.commands.wiring import key_trouble
from letta_tui.config import ConfigError, Profile
from letta_tui.paths import DEFAULT_PROFILE, resolve


def run(args: argparse.Namespace) -> int:
    file = resolve().config_file
    try:
        config = configuration.load(file)
    except ConfigError as error:
        raise CommandError(str(error), USAGE) from None
    known = {DEFAULT_PROFILE: Profile(), **config.profiles}
    if args.json:
        show_json(
            [
                {
                    "name": item.name,
                    "kind": item.kind,
                    "where": item.where,
                    "trouble": key_trouble(item) or None,
                    "default": item.name == config.profile,
                    "data": str(resolve(item.name).data),
                }
                for item in known.values()
            ]
        )
        return OK
    rows = [
        (
            "*" if item.name == config.profile else "",
            item.name,
            item.kind,
            plain(item.where, 60),
            key_trouble(item),
        )
        for item in known.values()
    ]
    show([table(rows, ("", "NAME", "KIND", "WHERE", ""))])
    print(f"\nFrom {file}" + ("." if config.exists else ", which does not exist yet."))
    return OK
