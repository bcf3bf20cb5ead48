"""`stream-omni engine | tokenizer | frontend`: one tier, in this process."""

from __future__ import annotations

import argparse
import os
from importlib import import_module
from importlib.util import find_spec

from services.cli.arguments import CommandError, Commands, UsageError

# What each tier does, and a package that only its own extra installs.
_TIERS = {
    "engine": ("generates token ids with vLLM", "vllm"),
    "tokenizer": ("turns text into token ids and back", "fastokens"),
    "frontend": ("serves HTTP", "starlette"),
}


def add_to(commands: Commands) -> None:
    """Add the three commands to the command line."""
    for name, (does, _) in _TIERS.items():
        text = f"Runs the {name}, which {does}. Its settings are environment variables OMNI_{name.upper()}_…"
        parser = commands.add_parser(name, help=f"run the {name} alone", description=text)
        parser.set_defaults(run=run, tier=name, model=None)
        if name == "engine":
            parser.add_argument("model", metavar="MODEL", nargs="?", help="directory or hub id (OMNI_ENGINE_MODEL)")


def run(arguments: argparse.Namespace) -> int:
    """Run the tier until a signal. Returns: its exit code.

    Raises:
        CommandError: the tier is not installed here.
        UsageError: there is no model to serve.
    """
    check_installed(arguments.tier)
    if arguments.model:
        os.environ["OMNI_ENGINE_MODEL"] = arguments.model
    if arguments.tier == "engine" and not os.environ.get("OMNI_ENGINE_MODEL"):
        raise UsageError("engine: no model; name a directory or a hub id")
    code: int = import_module(f"services.{arguments.tier}.__main__").main()
    return code


def check_installed(tier: str) -> None:
    """Check that a tier's packages are there.

    Raises:
        CommandError: they are not.
    """
    _, needs = _TIERS[tier]
    if find_spec(needs) is None:
        raise CommandError(f"the {tier} is not installed here ({needs} is missing); install stream-omni[{tier}]")
