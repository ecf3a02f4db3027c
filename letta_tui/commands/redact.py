"""``letta-tui ledger redact ID``: erase what a message said from everything stored here."""

from __future__ import annotations

import argparse

from letta_tui.commands.context import load_context, open_ledger
from letta_tui.commands.errors import FAILED, OK, CommandError
from letta_tui.commands.explain import find


def run(args: argparse.Namespace) -> int:
    context = load_context(args)
    with open_ledger(context.paths) as ledger:
        if ledger is None:
            raise CommandError("Nothing has been sent yet, so there is nothing to erase.", FAILED)
        send = ledger.redact(find(ledger, args.id).client_message_id)
    try:
        # The transcript cache holds copies of what history holds; it is rebuilt from the server.
        context.paths.cache_db.unlink(missing_ok=True)
    except OSError as error:
        where = context.paths.cache_db
        raise CommandError(
            f"Erased from the ledger, but {where} cannot be removed: {error.strerror}."
        ) from None
    print(f"The text of {send.client_message_id} is erased here. The server's copy is not touched.")
    return OK
