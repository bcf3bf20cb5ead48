"""Answers as JSON, for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from services.cli.answer_stream import Piece
from services.cli.chat.answer import Answer
from services.cli.chat.display import AnswerView


class JsonDisplay:
    """Writes one JSON document for each answer, on one line; before it, if asked to, one for each event.

    All is ASCII, so that no text can be mistaken for anything that a terminal obeys.

    Args:
        write: takes what is written at once.
        note: takes a line about what happened.
        with_events: whether events are written as they come.
    """

    def __init__(self, write: Callable[[str], None], note: Callable[[str], None], with_events: bool) -> None:
        self._write = write
        self._note = note
        self._with_events = with_events

    def answer(self) -> AnswerView:
        """Begin an answer."""
        return _Events(self.event if self._with_events else _unheard)

    def note(self, line: str) -> None:
        """Show one line about what happened."""
        self._note(line)

    def show(self, text: str) -> None:
        """Show what was asked for."""
        self._note(text)

    def finish(self, answer: Answer, model: str) -> None:
        """Write the document of an answer that has ended."""
        if self._with_events:
            self.event("end", answer.document(model))
        else:
            self._write(json.dumps(answer.document(model)) + "\n")

    def event(self, name: str, fields: Mapping[str, Any]) -> None:
        """Write one event."""
        self._write(json.dumps({"event": name, **fields}) + "\n")


class _Events:
    def __init__(self, event: Callable[[str, Mapping[str, Any]], None]) -> None:
        self._event = event
        self._told = {"filter_match": 0, "format_fault": 0}

    def take(self, piece: Piece) -> None:
        if piece.session:
            self._event("session", {"session_id": piece.session.get("id"), "answer_id": piece.session.get("answer_id")})
        if piece.context:
            self._event("context", piece.context)
        if piece.reasoning:
            self._event("reasoning", {"text": piece.reasoning})
        if piece.text:
            self._event("text", {"text": piece.text})
        self._tell("filter_match", piece.filter_matches, bool(piece.finish_reason))
        self._tell("format_fault", piece.format_faults, bool(piece.finish_reason))

    def close(self) -> None:
        pass

    def _tell(self, name: str, reports: Sequence[Mapping[str, Any]], is_last: bool) -> None:
        # The last piece holds all of them again.
        for report in reports[self._told[name] :] if is_last else reports:
            self._event(name, report)
            self._told[name] += 1


def _unheard(_name: str, _fields: Mapping[str, Any]) -> None:
    pass
