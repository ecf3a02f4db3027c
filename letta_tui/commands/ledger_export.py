"""``letta-tui ledger export``: everything recorded, for a bug report."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from letta_tui import __version__
from letta_tui.commands.context import load_context, open_ledger
from letta_tui.commands.errors import FAILED, OK, CommandError
from letta_tui.commands.output import show_json


def run(args: argparse.Namespace) -> int:
    context = load_context(args)
    with open_ledger(context.paths, to_read=True) as ledger:
        data = ledger.export(bodies=args.bodies) if ledger is not None else {}
    data = {"letta_tui": __version__, **data}
    if args.output is None:
        show_json(data)
        return OK
    file = Path(args.output)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as opened:
            json.dump(data, opened, indent=2)
            opened.write("\n")
    except FileExistsError:
        raise CommandError(f"{file} exists already; it is not overwritten.", FAILED) from None
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror or error}.", FAILED) from None
    what = "with" if args.bodies else "without"
    print(f"Written to {file}, {what} the texts of the messages.")
    return OK
