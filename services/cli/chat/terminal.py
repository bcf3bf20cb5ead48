"""Putting a conversation at a terminal together."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from services.cli.chat.completion import candidates
from services.cli.chat.conversation import Conversation
from services.cli.chat.display import Display, PlainDisplay
from services.cli.chat.history import History
from services.cli.chat.interactive import converse
from services.cli.chat.prompt import Prompt
from services.cli.chat.prompt_history import PromptHistory
from services.cli.chat.room import Room
from services.cli.service_client import ChatOptions, ServiceClient
from services.cli.service_failure import Refused
from services.cli.sessions_client import SessionsClient

# Of the extra `cli`, which slim installations leave out.
_LIBRARIES = ("prompt_toolkit", "rich")
_POOR_TERMINALS = ("", "dumb", "unknown")
_NOT_FOUND = 404


def terminal_display(term: str) -> Display:
    """Return the display that this terminal and this installation allow."""
    if _is_able(term):
        from services.cli.chat.markdown_display import MarkdownDisplay

        return MarkdownDisplay(sys.stdout)
    return PlainDisplay(_write, thinks=True)


def talk(
    client: ServiceClient,
    options: ChatOptions,
    history: History,
    begin: Callable[[str | None, str], History],
    display: Display,
    state: Path,
) -> None:
    """Hold a conversation at the terminal until the user ends it.

    Args:
        client: the service.
        options: how to answer at first.
        history: where the conversation is kept.
        begin: makes the history of another one, given what the model is told before everything else, and its name.
        display: where it is shown.
        state: the directory that keeps what was typed.
    """
    conversation = Conversation(client, options, history, display)
    room = Room(
        conversation,
        display,
        SessionsClient(client),
        lambda: asyncio.run(client.model_names()),
        lambda: asyncio.run(_presets(client)),
        begin,
    )
    display.show(f"{options.model} at {client.url} · Ctrl-C stops an answer, Ctrl-D ends, /help shows more")
    converse(room, _prompt(room, os.environ.get("TERM", ""), state))
    if session_id := room.conversation.history.session_id:
        display.note(f"go on with: stream-omni chat --session {session_id}")


def _prompt(room: Room, term: str, state: Path) -> Prompt:
    try:
        history = PromptHistory(state)
    except OSError as error:
        room.display.note(f"what is typed is not kept: {error.filename} cannot be written ({error.strerror})")
        history = PromptHistory(None)

    def keep(text: str) -> None:
        try:
            history.add(text)
        except OSError as error:
            room.display.note(f"what was typed could not be kept ({error.strerror})")

    if _is_able(term):
        from services.cli.chat.line_editor import LineEditor

        return LineEditor(history, keep, lambda text: candidates(room, text), term)
    if term not in _POOR_TERMINALS:
        room.display.note("Markdown and editing many lines need stream-omni[cli], which is not installed here")
    from services.cli.chat.plain_prompt import PlainPrompt

    return PlainPrompt(history, keep)


def _is_able(term: str) -> bool:
    return term not in _POOR_TERMINALS and all(find_spec(library) is not None for library in _LIBRARIES)


async def _presets(client: ServiceClient) -> Sequence[Mapping[str, Any]]:
    try:
        presets = (await client.ask("GET", "/v1/presets")).get("data")
    except Refused as refused:
        if refused.status == _NOT_FOUND:
            return ()
        raise
    return presets if isinstance(presets, list) else ()


def _write(text: str) -> None:
    print(text, end="", flush=True)
