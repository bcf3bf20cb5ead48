"""The command `stream-omni`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from services.chassis.settings import SettingsError
from services.cli.arguments import CommandError, Parser, UsageError
from services.cli.build_once import BuildError
from services.cli.commands import bench, chat, models, sessions, tier, up

_DESCRIPTION = "Serves a language model as a stream, and talks to it."
_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns: its exit code; 2 for a wrong command line or setting, 1 when the work could not be done.
    """
    try:
        arguments = _parser().parse_args(argv)
        code: int = arguments.run(arguments)
        return code
    except (UsageError, SettingsError) as error:
        print(f"stream-omni: {error}", file=sys.stderr)
        return 2
    except (CommandError, BuildError) as error:
        print(f"stream-omni: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED


def _parser() -> Parser:
    parser = Parser(prog="stream-omni", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"stream-omni {_version()}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, title="commands")
    for command in (up, tier, chat, sessions, bench, models):
        command.add_to(commands)
    return parser


def _version() -> str:
    try:
        return version("stream-omni")
    except PackageNotFoundError:
        return "(not installed)"


if __name__ == "__main__":
    sys.exit(main())
