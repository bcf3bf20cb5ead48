"""The prompt of a whole terminal: many lines, history with search, completion."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.history import History
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import CompleteStyle

from services.cli.chat.prompt import GOES_ON, PROMPT, as_utf8
from services.cli.chat.prompt_history import PromptHistory

# Given what was typed up to the cursor: what may stand in place of its last word.
Candidates = Callable[[str], Iterable[str]]


class LineEditor:
    """Reads with prompt_toolkit.

    Args:
        history: what was typed before.
        keep: keeps what was typed.
        candidates: completes commands.
        term: the terminal's kind, by its `TERM`.
    """

    def __init__(self, history: PromptHistory, keep: Callable[[str], None], candidates: Candidates, term: str) -> None:
        self._session: PromptSession[str] = PromptSession(
            history=_Kept(history, keep),
            completer=_WordCompleter(candidates),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            multiline=True,
            prompt_continuation=GOES_ON,
            key_bindings=_keys(),
            output=_output(term),
        )

    def read(self, draft: str) -> str | None:
        """Return what was typed, or None at the end of the conversation."""
        try:
            return as_utf8(self._session.prompt(PROMPT, default=draft))
        except (EOFError, KeyboardInterrupt):
            return None


def _output(term: str) -> Output:
    # Asking a terminal where its cursor is takes a round trip, whose answer can end up among what is typed.
    return Vt100_Output(sys.stdout, _size, term=term, enable_cpr=False)


def _size() -> Size:
    columns, rows = os.get_terminal_size(sys.stdout.fileno())
    # A terminal that has not been told its size says 0.
    return Size(rows or 24, columns or 80)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        before = buffer.document.current_line_before_cursor
        if before.endswith("\\") and not buffer.document.current_line_after_cursor:
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    @keys.add("c-j")
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c")
    def _clear_or_end(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    return keys


class _Kept(History):
    """Prompt history for prompt_toolkit, which reads it newest first."""

    def __init__(self, history: PromptHistory, keep: Callable[[str], None]) -> None:
        super().__init__()
        self._history = history
        self._keep = keep

    def load_history_strings(self) -> Iterable[str]:
        return reversed(self._history.entries)

    def store_string(self, string: str) -> None:
        self._keep(string)


class _WordCompleter(Completer):
    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates

    def get_completions(self, document: Document, _complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        word = text.rpartition(" ")[2]
        # This runs within the prompt's event loop, where asking the service would need one of its own.
        with ThreadPoolExecutor(max_workers=1) as pool:
            candidates = pool.submit(self._candidates, text).result()
        return [Completion(each, -len(word)) for each in candidates if each.startswith(word)]
