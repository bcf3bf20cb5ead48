"""Calls as JSON objects, one or a list of them."""

from __future__ import annotations

from collections.abc import Callable

from services.tokenizer.output_parsers.json_call import BLANKS, JsonCall
from services.tokenizer.output_parsers.port import NewId
from services.tokenizer.output_parsers.state_parser import StateParser
from services.tokenizer.output_parsers.tags import Tags


class JsonCallParser(StateParser):
    """Calls as JSON objects, one or a list of them, after an opening tag.

    Args:
        closing: the tag after them, "" for none.
    """

    def __init__(self, openings: Tags, closing: str, new_id: NewId, needs_arguments: bool = False) -> None:
        super().__init__(openings, new_id)
        self._closing = closing
        self._needs_arguments = needs_arguments
        self._call = JsonCall()
        self._in_list = False

    def _opened(self, tag: str) -> Callable[[], bool]:
        return self._at_first

    def _at_first(self) -> bool:
        self._in_list = self._skip("[") is True
        if not self._in_list and not self._unread.strip(BLANKS):
            return False
        return self._at_call()

    def _at_call(self) -> bool:
        self._call = JsonCall(self._needs_arguments)
        self._state = self._in_call
        return True

    def _in_call(self) -> bool:
        progress = self._call.feed(self._unread)
        self._unread = progress.rest
        if progress.name is not None:
            self._begin(progress.name, progress.arguments)
        else:
            self._continue(progress.arguments)
        if not self._call.over:
            return False
        if not self._call.certain:
            return self._no_call(self._call.raw)
        self._state = self._after_call
        return True

    def _give_back(self) -> None:
        if self._state == self._in_call and not self._call.certain:
            self._doubtful += self._call.raw

    def _after_call(self) -> bool:
        if not self._in_list:
            self._state = self._before_closing
            return True
        comma = self._skip(",")
        if comma is None:
            return False
        if comma:
            self._doubtful = ""
            return self._at_call()
        if not self._skip("]"):
            return self._no_call()
        self._doubtful = ""
        self._state = self._before_closing
        return True

    def _before_closing(self) -> bool:
        if not self._closing:
            return self._after_calls()
        closed = self._skip(self._closing)
        if closed is None:
            return False
        return self._after_calls() if closed else self._no_call()
