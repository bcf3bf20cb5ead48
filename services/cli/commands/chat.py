"""`stream-omni chat`: a conversation with a running service, in the terminal."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence

from services.cli.arguments import CommandError, Commands, positive
from services.cli.commands.models import add_service_to, service_of

_DESCRIPTION = """\
Talks to a running service. Ctrl-C while an answer comes stops the answer; Ctrl-C or Ctrl-D at the prompt ends the
conversation. Where input is no terminal, each line is one message."""


def add_to(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("chat", help="talk to a running service", description=_DESCRIPTION)
    parser.set_defaults(run=run)
    add_service_to(parser)
    parser.add_argument("--model", metavar="NAME", help="one of the service's models (its first)")
    parser.add_argument("--system", metavar="TEXT", help="what the model is told before everything else")
    parser.add_argument("--temperature", type=float, metavar="T", help="0 for the likeliest answer (the model's own)")
    parser.add_argument("--max-tokens", type=positive, metavar="N", help="most tokens of an answer (all that fit)")


def run(arguments: argparse.Namespace) -> int:
    """Read messages and show answers until input ends. Returns: 0.

    Raises:
        CommandError: the service cannot be reached or does not serve the model.
        UsageError: the API key or the TLS authority is of no use.
    """
    from services.cli.conversation import Conversation
    from services.cli.service_client import ChatOptions, ServiceFailure

    client = service_of(arguments, os.environ)
    try:
        model = choose_model(asyncio.run(client.model_names()), arguments.model)
    except ServiceFailure as failure:
        raise CommandError(str(failure)) from failure
    options = ChatOptions(model, arguments.temperature, arguments.max_tokens)
    conversation = Conversation(client, options, arguments.system, _write)
    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    if interactive:
        _enable_line_editing()
        print(f"{model} at {client.url} · Ctrl-C stops an answer, Ctrl-D ends")
    while (text := _read("> " if interactive else "")) is not None:
        if text.strip():
            conversation.ask(text)
    if interactive:
        print()
    return 0


def choose_model(served: Sequence[str], wanted: str | None) -> str:
    """Return the model to talk to.

    Raises:
        CommandError: the service serves none, or not the one that is wanted.
    """
    if not served:
        raise CommandError("the service has no model ready; try again when it has loaded one")
    if wanted is not None and wanted not in served:
        raise CommandError(f"the service has no model {wanted}; it has {', '.join(served)}")
    return wanted or served[0]


def _read(prompt: str) -> str | None:
    try:
        text = input(prompt)
    except (EOFError, KeyboardInterrupt):
        return None
    # What was typed in another encoding than UTF-8 arrives as lone surrogates, which no request can carry.
    return text.encode(errors="surrogateescape").decode(errors="replace")


def _write(text: str) -> None:
    print(text, end="", flush=True)


def _enable_line_editing() -> None:
    # Importing it is what gives input() its editing and history.
    import readline

    readline.set_history_length(1000)
