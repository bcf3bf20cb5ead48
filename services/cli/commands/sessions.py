"""`stream-omni sessions`: the conversations that a running service keeps."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from services.cli.arguments import CommandError, Commands, Parser, UsageError, positive
from services.cli.commands.models import add_service_to, service_of

if TYPE_CHECKING:
    from services.cli.sessions_client import SessionsClient

_DESCRIPTION = """\
The conversations that a running service keeps for the caller's key. Go on with one with
stream-omni chat --session ID. With --json, each action prints what the service answers as one JSON document."""

Action = Callable[["SessionsClient", argparse.Namespace], int]


def add_to(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("sessions", help="list, show and keep conversations", description=_DESCRIPTION)
    actions = parser.add_subparsers(metavar="ACTION", required=True, title="actions")
    listing = _add(actions, "list", "list sessions, newest first: id, last use, number of messages, title", _list)
    listing.add_argument("--limit", type=positive, default=20, metavar="N", help="most sessions (20)")
    listing.add_argument("--search", metavar="TEXT", help="only those whose title or messages hold it")
    shown = _add(actions, "show", "print a session's conversation as Markdown", _show)
    renamed = _add(actions, "rename", "give a session another title", _rename)
    for one in (shown, renamed):
        one.add_argument("id", metavar="ID")
    renamed.add_argument("title", metavar="TITLE")
    _add(actions, "delete", "delete sessions with all their messages", _delete).add_argument(
        "id", metavar="ID", nargs="+"
    )
    exported = _add(actions, "export", "write a session with all its branches as JSON", _export)
    exported.add_argument("id", metavar="ID")
    exported.add_argument("file", metavar="FILE", nargs="?", default="-", help="is made; - is standard output (-)")
    imported = _add(actions, "import", "make a session of what was exported, and print its id", _import)
    imported.add_argument("file", metavar="FILE", help="- is standard input")


def run(arguments: argparse.Namespace) -> int:
    """Do the chosen action. Returns: 0.

    Raises:
        CommandError: the service or a file did not do its part.
        UsageError: the API key or the TLS authority is of no use, or a file holds no JSON object.
    """
    from services.cli.service_failure import ServiceFailure
    from services.cli.sessions_client import SessionsClient

    sessions = SessionsClient(service_of(arguments, os.environ))
    try:
        code: int = arguments.act(sessions, arguments)
    except ServiceFailure as failure:
        raise CommandError(str(failure)) from failure
    return code


def _list(sessions: SessionsClient, arguments: argparse.Namespace) -> int:
    from services.cli.chat.session_choice import session_lines

    listed = asyncio.run(sessions.listed(arguments.limit, arguments.search))
    if arguments.json:
        _print_json({"object": "list", "data": list(listed)})
    for line in () if arguments.json else session_lines(listed):
        print(line)
    return 0


def _show(sessions: SessionsClient, arguments: argparse.Namespace) -> int:
    from services.cli.chat.session_history import SessionHistory
    from services.cli.chat.transcript import as_markdown
    from services.cli.control_text import printable

    session = asyncio.run(sessions.get(arguments.id))
    if arguments.json:
        _print_json({**session, "messages": list(asyncio.run(sessions.messages(arguments.id)))})
    else:
        messages = asyncio.run(SessionHistory(sessions, session=session).messages())
        print(printable(as_markdown(messages, str(session.get("title") or arguments.id))), end="")
    return 0


def _rename(sessions: SessionsClient, arguments: argparse.Namespace) -> int:
    session = asyncio.run(sessions.change(arguments.id, {"title": arguments.title}))
    if arguments.json:
        _print_json(session)
    return 0


def _delete(sessions: SessionsClient, arguments: argparse.Namespace) -> int:
    for session_id in arguments.id:
        asyncio.run(sessions.delete(session_id))
    if arguments.json:
        _print_json({"deleted": arguments.id})
    return 0


def _export(sessions: SessionsClient, arguments: argparse.Namespace) -> int:
    document = json.dumps(asyncio.run(sessions.exported(arguments.id)), indent=2) + "\n"
    if arguments.file == "-":
        print(document, end="")
        return 0
    try:
        # A conversation is nobody else's business.
        descriptor = os.open(arguments.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(document)
    except OSError as error:
        raise CommandError(f"{arguments.file} cannot be made ({error.strerror}); give another name") from error
    return 0


def _import(sessions: SessionsClient, arguments: argparse.Namespace) -> int:
    try:
        raw = sys.stdin.buffer.read() if arguments.file == "-" else Path(arguments.file).read_bytes()
    except OSError as error:
        raise CommandError(f"{arguments.file} cannot be read ({error.strerror}); give another file") from error
    try:
        document = json.loads(raw)
    except ValueError as error:
        raise UsageError(f"{arguments.file} holds no JSON ({error}); give what sessions export wrote") from error
    if not isinstance(document, dict):
        raise UsageError(f"{arguments.file} holds no JSON object; give what sessions export wrote")
    session = asyncio.run(sessions.import_document(document))
    if arguments.json:
        _print_json(session)
    else:
        print(session["id"])
    return 0


def _add(actions: Any, name: str, about: str, act: Action) -> Parser:
    parser: Parser = actions.add_parser(name, help=about, description=f"Will {about}.")
    parser.set_defaults(run=run, act=act)
    add_service_to(parser)
    parser.add_argument("--json", action="store_true", help="print what the service answers as JSON")
    return parser


def _print_json(document: Mapping[str, Any]) -> None:
    print(json.dumps(document, indent=2))
