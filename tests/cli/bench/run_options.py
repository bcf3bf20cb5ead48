"""Options as the command line gives them."""

from __future__ import annotations

from services.cli.arguments import Parser
from services.cli.bench.arguments import add_options_to, options_of
from services.cli.bench.options import Options


def options(*arguments: str, url: str = "http://127.0.0.1:8000") -> Options:
    """The options that these arguments stand for."""
    parser = Parser(prog="bench")
    parser.add_argument("--url", default=url)
    add_options_to(parser)
    return options_of(parser.parse_args(arguments))
