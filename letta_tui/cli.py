"""The command line: starts fast, never shows a traceback, and says in one sentence what went wrong."""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Sequence

from letta_tui import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the process's exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments in (["--version"], ["-V"]):
        print(f"letta-tui {__version__}")
        return 0
    gc.disable()  # loading makes much and drops nothing; whatever runs turns it on when it is loaded
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a C locale is no reason to fail
    from letta_tui.commands.errors import INTERRUPTED, USAGE, CommandError
    from letta_tui.commands.options import UsageError
    from letta_tui.commands.parser import parse
    from letta_tui.paths import PathsError

    try:
        args = parse(arguments)
        code: int = args.run(args)
        sys.stdout.flush()
    except UsageError as error:
        _say(str(error))
        return USAGE
    except CommandError as error:
        _say(str(error))
        return error.code
    except PathsError as error:
        _say(str(error))
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader went away (`| head`). Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        from letta_tui.commands.crash import describe

        _say(describe(error, arguments))
        return 1
    return code


def _say(sentence: str) -> None:
    print(f"letta-tui: {sentence}", file=sys.stderr)
