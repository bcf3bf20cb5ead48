"""`stream-omni models`: the default model's files, and the models of a running service."""

from __future__ import annotations

import argparse
import asyncio
import os
import ssl
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from services.cli.arguments import CommandError, Commands, UsageError
from services.cli.models import default_model_path, ensure_default_model, has_default_model, models_directory

if TYPE_CHECKING:
    from services.cli.service_client import ServiceClient


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
    add_service_to(listing)


def add_url_to(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a running service."""
    url = "http://127.0.0.1:8000"
    parser.add_argument("--url", default=url, metavar="URL", help=f"of the running service ({url})")


def add_service_to(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a running service and open it."""
    add_url_to(parser)
    parser.add_argument("--api-key", metavar="KEY", help="one of the service's keys (OMNI_API_KEY)")
    parser.add_argument("--tls-ca", metavar="FILE", help="PEM file of the authority behind the service's certificate")


def service_of(arguments: argparse.Namespace, environ: Mapping[str, str]) -> ServiceClient:
    """Return the service that the options of `add_service_to` name.

    Raises:
        UsageError: the key or the file is of no use.
    """
    from services.cli.service_client import ServiceClient

    return ServiceClient(arguments.url, *credentials_of(arguments, environ))


def credentials_of(
    arguments: argparse.Namespace, environ: Mapping[str, str]
) -> tuple[str | None, ssl.SSLContext | None]:
    """Return the key, and what to trust where it is not the system's authorities.

    Raises:
        UsageError: the key or the file is of no use.
    """
    api_key = arguments.api_key or environ.get("OMNI_API_KEY")
    if api_key and not (api_key.isascii() and api_key.isprintable() and " " not in api_key):
        raise UsageError("the API key holds other characters than visible ASCII; give it as the service's keys have it")
    trusted = None
    if arguments.tls_ca is not None:
        try:
            trusted = ssl.create_default_context(cafile=arguments.tls_ca)
        except OSError as error:
            reason = " ".join(str(error).split())
            raise UsageError(f"--tls-ca {arguments.tls_ca} cannot be used ({reason}); give a PEM file") from error
    return api_key, trusted


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
        UsageError: the API key or the TLS authority is of no use.
    """
    from services.cli.service_failure import ServiceFailure

    try:
        names = asyncio.run(service_of(arguments, os.environ).model_names())
    except ServiceFailure as failure:
        raise CommandError(str(failure)) from failure
    for name in names:
        print(name)
    return 0
