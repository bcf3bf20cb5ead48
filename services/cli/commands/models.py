"""`stream-omni models`: the default model's files, and the models of a running service."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys

from services.cli.arguments import CommandError, Commands
from services.cli.models import default_model_path, ensure_default_model, has_default_model, models_directory


def add_to(commands: Commands) -> None:
    """Add the command to the command line."""
    about = "The default model on this machine, and the models of a running service."
    parser = commands.add_parser("models", help="find, fetch and list models", description=about)
    actions = parser.add_subparsers(metavar="ACTION", required=True, title="actions")
    about = "print the default model's directory"
    actions.add_parser("path", help=about, description=f"Will {about}.").set_defaults(run=print_path)
    about = "fetch and convert the default model, unless it is there"
    actions.add_parser("fetch", help=about, description=f"Will {about}.").set_defaults(run=fetch)
    about = "list the models of a running service"
    listing = actions.add_parser("list", help=about, description=f"Will {about}.")
    listing.set_defaults(run=print_list)
    add_url_to(listing)


def add_url_to(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a running service."""
    url = "http://127.0.0.1:8000"
    parser.add_argument("--url", default=url, metavar="URL", help=f"of the running service ({url})")


def print_path(_arguments: argparse.Namespace) -> int:
    """Print the default model's directory. Returns: 0.

    Raises:
        CommandError: it is not there yet.
    """
    models = models_directory(os.environ)
    path = default_model_path(models)
    if not has_default_model(models):
        raise CommandError(f"the default model is not in {path} yet; fetch it with stream-omni models fetch")
    print(path)
    return 0


def fetch(_arguments: argparse.Namespace) -> int:
    """Fetch the default model if it is not there, then print its directory. Returns: 0.

    Raises:
        BuildError: it cannot be fetched.
    """
    models = models_directory(os.environ)
    print(ensure_default_model(models, lambda line: print(f"model: {line}", file=sys.stderr, flush=True)))
    return 0


def print_list(arguments: argparse.Namespace) -> int:
    """Print the names of a running service's models, one a line. Returns: 0.

    Raises:
        CommandError: the service does not tell them.
    """
    from services.cli.service_client import ServiceClient, ServiceFailure

    try:
        names = asyncio.run(ServiceClient(arguments.url).model_names())
    except ServiceFailure as failure:
        raise CommandError(str(failure)) from failure
    for name in names:
        print(name)
    return 0
