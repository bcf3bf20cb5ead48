"""The commands at the prompt: one table, one small function each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from services.cli.chat.notices import stats_lines
from services.cli.chat.preset_choice import chosen_preset, preset_lines
from services.cli.chat.room import Draft, Room
from services.cli.chat.session_choice import open_session, session_lines
from services.cli.chat.slash_command import CommandMistake, SlashCommand
from services.cli.chat.transcript import TranscriptError, save_transcript

_NONE = "-"
_LISTED = 10


def _model(room: Room, name: str) -> None:
    served, current = room.models(), room.conversation.options.model
    if not name:
        room.display.show("\n".join(f"{'*' if model == current else ' '} {model}" for model in served))
        return
    if name not in served:
        raise CommandMistake(f"the service has no model {name}; it has {', '.join(served)}")
    asyncio.run(room.conversation.history.set_model(name))
    room.conversation.options = replace(room.conversation.options, model=name)
    room.display.note(f"{name} answers from now on")


def _system(room: Room, text: str) -> None:
    history = room.conversation.history
    if not text:
        room.display.show(history.system or "no system prompt; /system TEXT sets one")
        return
    asyncio.run(history.set_system(None if text == _NONE else text))
    room.display.note("system prompt removed" if text == _NONE else "system prompt set")


def _session(room: Room, session_id: str) -> None:
    if session_id:
        history = open_session(room.sessions, session_id, room.display)
        room.conversation.history = history
        if history.model is not None and history.model in room.models():
            room.conversation.options = replace(room.conversation.options, model=history.model)
        return
    current = room.conversation.history.session_id
    listed = asyncio.run(room.sessions.listed(_LISTED))
    room.display.show("\n".join(session_lines(listed, current)) or "no sessions yet")
    if current is None:
        room.display.note("this conversation is in no session yet")


def _save(room: Room, rest: str) -> None:
    words = rest.split(maxsplit=1)
    is_forced = words[:1] == ["-f"]
    name = words[-1] if len(words) > is_forced else ""
    if not name:
        raise CommandMistake("/save needs a file's name, such as chat.md or chat.json")
    path = Path(rest.removeprefix("-f").strip() if is_forced else rest).expanduser()
    messages = asyncio.run(room.conversation.history.messages())
    try:
        save_transcript(path, messages, room.conversation.options.model, replace=is_forced)
    except TranscriptError as error:
        raise CommandMistake(str(error)) from error
    room.display.note(f"saved {len(messages)} messages to {path}")


def _stats(room: Room, _rest: str) -> None:
    room.display.show("\n".join(stats_lines(room.conversation.last)))


def _retry(room: Room, _rest: str) -> None:
    room.conversation.retry()


def _edit(room: Room, text: str) -> None:
    if text:
        room.conversation.edit(text)
    else:
        question = asyncio.run(room.conversation.history.last_question())
        room.draft = Draft(question, room.conversation.edit)


def _preset(room: Room, rest: str) -> None:
    options = room.conversation.options
    if not rest:
        room.display.show("\n".join(preset_lines(room.presets(), options.preset)) or "the service has no presets")
    elif rest == _NONE:
        room.conversation.options = replace(options, preset=None, preset_variables={})
        room.display.note("no preset from now on")
    else:
        name, variables = chosen_preset(room.presets(), rest)
        room.conversation.options = replace(options, preset=name, preset_variables=variables)
        room.display.note(f"preset {name} from now on; /preset - ends it")


def _new(room: Room, _rest: str) -> None:
    room.conversation.history = room.begin(room.conversation.history.system, room.conversation.options.model)
    room.conversation.last = None
    room.display.note("a new conversation")


def _quit(room: Room, _rest: str) -> None:
    room.is_over = True


def _help(room: Room, _rest: str) -> None:
    usages = [f"/{command.name} {command.arguments}".rstrip() for command in COMMANDS]
    width = max(map(len, usages))
    lines = [f"{usage:{width}}  {command.about}" for usage, command in zip(usages, COMMANDS, strict=True)]
    room.display.show("\n".join([*lines, *_KEYS]))


_KEYS = (
    "",
    "Enter sends; Alt+Enter, Ctrl-J or a backslash at the line's end begins a new line. Tab completes commands.",
    "Ctrl-C stops an answer; at an empty prompt Ctrl-C or Ctrl-D ends. A message that begins with / is typed as //.",
)

COMMANDS: Sequence[SlashCommand] = (
    SlashCommand("model", "[NAME]", "show the models, or choose one", _model, lambda room: room.models()),
    SlashCommand("system", "[TEXT|-]", "show, set or remove the system prompt", _system),
    SlashCommand(
        "session",
        "[ID]",
        "show the latest sessions, or go on with one",
        _session,
        lambda room: [str(session["id"]) for session in asyncio.run(room.sessions.listed(_LISTED))],
    ),
    SlashCommand("save", "[-f] FILE", "write the conversation as Markdown (.md) or JSON (.json)", _save),
    SlashCommand("stats", "", "show how fast the last answer came, and its token counts", _stats),
    SlashCommand("retry", "", "have the last question answered again", _retry),
    SlashCommand("edit", "[TEXT]", "change the last question and ask it again", _edit),
    SlashCommand(
        "preset",
        "[NAME [VARIABLE=VALUE]…|-]",
        "show the presets, choose one, or choose none",
        _preset,
        lambda room: [str(preset["name"]) for preset in room.presets()],
    ),
    SlashCommand("help", "", "show the commands and keys", _help),
    SlashCommand("new", "", "begin a new conversation with the same system prompt", _new),
    SlashCommand("quit", "", "end", _quit),
)


def run_command(room: Room, name: str, rest: str) -> None:
    """Run a command of the table.

    Raises:
        CommandMistake: there is none of that name, or its arguments are wrong.
        NothingAsked: it needs a question, and there is none yet.
        ServiceFailure: the service did not do its part.
    """
    for command in COMMANDS:
        if command.name == name:
            if rest and not command.arguments:
                raise CommandMistake(f"/{name} takes nothing after it")
            command.run(room, rest)
            return
    raise CommandMistake(f"there is no command /{name}; /help shows those there are, and // begins a message with /")
