"""`stream-omni chat`: a conversation with a running service, in the terminal or in a pipe."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from services.cli.arguments import CommandError, Commands, UsageError, positive
from services.cli.commands.models import add_service_to, service_of

if TYPE_CHECKING:
    from services.cli.chat.answer import Answer
    from services.cli.chat.display import Display
    from services.cli.chat.history import History
    from services.cli.service_client import ChatOptions, ServiceClient

_DESCRIPTION = """\
Talks to a running service. At a terminal it holds a conversation: /help shows its commands and keys, Ctrl-C stops an
answer, Ctrl-C or Ctrl-D at an empty prompt ends. The service keeps the conversation, where it keeps sessions.

With TEXT it answers once. Where input is no terminal, each line is one message of a conversation; with - in place of
TEXT, all of standard input is one message. Then only answers go to standard output, all else to standard error, and
the exit code is 1 if an answer failed, 130 if one was interrupted.

--json prints one JSON document for each answer: model, session_id, answer_id, content, reasoning, finish_reason, usage,
stats (ttft_ms, tokens_per_second), context, filter_matches, format_faults, error. --ndjson prints one JSON object a
line as things happen, with an event of session, context, reasoning, text, filter_match or format_fault; the last is
end, with the document's members."""
_POLICIES = ("error", "sliding_window", "summarize")
# A shell's code for a program that wrote to a pipe that nobody reads any more.
_PIPE_CLOSED = 141


def add_to(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("chat", help="talk to a running service", description=_DESCRIPTION)
    parser.set_defaults(run=run)
    parser.add_argument("text", metavar="TEXT", nargs="?", help="a question to answer once; - reads standard input")
    add_service_to(parser)
    parser.add_argument("--model", metavar="NAME", help="one of the service's models (the session's, or its first)")
    parser.add_argument("--system", metavar="TEXT", help="what the model is told before everything else")
    parser.add_argument("--temperature", type=float, metavar="T", help="0 for the likeliest answer (the model's own)")
    parser.add_argument("--max-tokens", type=positive, metavar="N", help="most tokens of an answer (all that fit)")
    parser.add_argument("--context-policy", choices=_POLICIES, help="for a conversation that no longer fits (error)")
    parser.add_argument("--preset", metavar="NAME", help="put messages into this task's template")
    parser.add_argument(
        "--var", metavar="NAME=VALUE", action="append", default=[], type=_pair, help="for the preset; may be repeated"
    )
    session = parser.add_mutually_exclusive_group()
    session.add_argument("--session", metavar="ID", help="go on with a session that the service keeps")
    session.add_argument("--resume", action="store_true", help="go on with the session that was used last")
    session.add_argument("--no-session", action="store_true", help="keep the conversation here alone")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print a JSON document for each answer")
    output.add_argument("--ndjson", action="store_true", help="print a JSON object for each event")


def run(arguments: argparse.Namespace) -> int:
    """Answer until input ends. Returns: 0, or what the description says for pipes.

    Raises:
        CommandError: the service cannot be reached, or does not have the model or the session.
        UsageError: the options do not go together, or the API key or the TLS authority is of no use.
    """
    from services.cli.service_failure import ServiceFailure

    is_interactive = arguments.text is None and sys.stdin.isatty() and sys.stdout.isatty()
    if is_interactive and (arguments.json or arguments.ndjson):
        raise UsageError("--json and --ndjson are for pipes; give a question, or pipe one in with -")
    if arguments.var and not arguments.preset:
        raise UsageError("--var is for a preset's variables; name the preset with --preset")
    client = service_of(arguments, os.environ)
    try:
        return _talk(arguments, client) if is_interactive else _answer(arguments, client)
    except ServiceFailure as failure:
        raise CommandError(str(failure)) from failure


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


def _talk(arguments: argparse.Namespace, client: ServiceClient) -> int:
    from services.cli.chat.local_history import LocalHistory
    from services.cli.chat.session_history import SessionHistory
    from services.cli.chat.terminal import talk, terminal_display
    from services.cli.sessions_client import SessionsClient
    from services.cli.state_directory import state_directory

    display = terminal_display(os.environ.get("TERM", ""))
    options, history = _opened(arguments, client, display)

    def begin(system: str | None, model: str) -> History:
        if arguments.no_session:
            return LocalHistory(system)
        wanted = {"model": model, "system": system, "context_policy": arguments.context_policy}
        return SessionHistory(SessionsClient(client), wanted)

    state = state_directory(os.environ)
    talk(client, options, history or begin(arguments.system, options.model), begin, display, state)
    return 0


def _answer(arguments: argparse.Namespace, client: ServiceClient) -> int:
    from services.cli.chat.conversation import Conversation
    from services.cli.chat.local_history import LocalHistory
    from services.cli.chat.piped import answer_each

    # What another encoding than UTF-8 lacks must not end the answer.
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    messages = _messages(arguments.text)
    display, finish = _piped_display(arguments)
    options, history = _opened(arguments, client, None)
    conversation = Conversation(client, options, history or LocalHistory(arguments.system), display)
    try:
        return answer_each(conversation, messages, finish)
    except BrokenPipeError:
        # Else Python would try to write what is left, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED


def _opened(
    arguments: argparse.Namespace, client: ServiceClient, display: Display | None
) -> tuple[ChatOptions, History | None]:
    """Return how to answer, and the session to go on with if one is named."""
    from services.cli.chat.session_choice import open_session
    from services.cli.service_client import ChatOptions
    from services.cli.sessions_client import SessionsClient

    served = asyncio.run(client.model_names())
    wanted, history = arguments.model, None
    if arguments.session or arguments.resume:
        history = open_session(SessionsClient(client), arguments.session, display)
        if wanted is None and history.model in served:
            wanted = history.model
        if arguments.system is not None:
            asyncio.run(history.set_system(arguments.system))
    options = ChatOptions(
        choose_model(served, wanted),
        arguments.temperature,
        arguments.max_tokens,
        arguments.context_policy,
        arguments.preset,
        dict(arguments.var),
    )
    return options, history


def _piped_display(arguments: argparse.Namespace) -> tuple[Display, Callable[[Answer, str], None]]:
    from services.cli.chat.display import PlainDisplay
    from services.cli.chat.json_display import JsonDisplay

    if arguments.json or arguments.ndjson:
        documents = JsonDisplay(_write, _complain, with_events=arguments.ndjson)
        return documents, documents.finish
    return PlainDisplay(_write, _complain), lambda _answer, _model: None


def _messages(text: str | None) -> Iterable[str]:
    if text is None:
        return (line.decode(errors="replace").rstrip("\r\n") for line in sys.stdin.buffer)
    message = text
    if text == "-":
        # The last line's end comes from the program before the pipe, not from whoever asks.
        message = sys.stdin.buffer.read().decode(errors="replace").removesuffix("\n").removesuffix("\r")
    if not message.strip():
        raise UsageError("there is no question; give one, or pipe one in with -")
    return [message]


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as language=French")
    return name, value


def _write(text: str) -> None:
    print(text, end="", flush=True)


def _complain(line: str) -> None:
    print(f"stream-omni: {line}", file=sys.stderr, flush=True)
