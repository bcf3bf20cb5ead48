"""`stream-omni bench`: puts a load on any server that speaks OpenAI's API, and measures it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from services.cli.arguments import CommandError, Commands, UsageError
from services.cli.bench.arguments import add_options_to, options_of
from services.cli.commands.models import add_service_to, credentials_of

_INTERRUPTED = 130
_DESCRIPTION = """\
Puts a load on any server that speaks OpenAI's API, by streamed requests, and prints what it measured:
  first token     from sending a request to the first chunk that brings a token; the opening chunk with the role alone
                  does not count
  between chunks  from one chunk of an answer to its next (ITL): of one token where the server sends one a chunk
  gap per token   from the first chunk to the last, over the number of tokens but one (TPOT)
  end to end      from sending to [DONE]
Tokens are those that the server counts (usage); of answers that were left, or that came without usage, their number is
estimated by their chunks. Times are taken when the socket gives the bytes. With --duration, what runs at the end is cut
off and counts as unfinished; so does Ctrl-C. Exit code: 0; 1 when every request failed; 2 for a wrong command line."""


def add_to(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("bench", help="measure a server under load", description=_DESCRIPTION)
    parser.set_defaults(run=run)
    add_service_to(parser)
    add_options_to(parser)
    shown = parser.add_argument_group("what is shown")
    shown.add_argument("--json", type=Path, metavar="FILE", help="write the report there, too")
    shown.add_argument("--quiet", action="store_true", help="no progress on standard error")


def run(arguments: argparse.Namespace) -> int:
    """Run the load and print what was measured. Returns: 0; 1 when every request failed; 130 when it was interrupted.

    Raises:
        UsageError: options do not go together, or one is of no use.
        CommandError: the server does not answer, or the report cannot be written.
    """
    options = options_of(arguments, *credentials_of(arguments, os.environ))
    if arguments.json is not None and not arguments.json.parent.is_dir():
        raise UsageError(
            f"--json {arguments.json} is in no directory that is there; make {arguments.json.parent} first"
        )
    try:
        import uvloop

        from services.cli.bench.run import run_bench
        from services.cli.bench.table import table
    except ImportError as error:
        raise CommandError(f"bench needs {error.name}; install it with pip install 'stream-omni[frontend]'") from error

    found = uvloop.run(run_bench(options, quiet=arguments.quiet))
    sys.stdout.write(f"{table(found)}\n")
    if arguments.json is not None:
        _write(found, arguments.json)
    if found["interrupted"]:
        return _INTERRUPTED
    return 1 if found["requests"]["failed"] == found["requests"]["sent"] else 0


def _write(found: dict[str, Any], path: Path) -> None:
    try:
        path.write_text(f"{json.dumps(found, indent=2, ensure_ascii=False)}\n", encoding="utf-8")
    except OSError as error:
        raise CommandError(f"the report cannot be written to {path}: {error.strerror}") from error
