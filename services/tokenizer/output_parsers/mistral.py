"""Mistral's calls, in both shapes."""

from __future__ import annotations

import re
from collections.abc import Callable

from services.tokenizer.output_parsers.json_call import BLANKS, MAX_NAME
from services.tokenizer.output_parsers.json_calls import JsonCallParser
from services.tokenizer.output_parsers.port import NewId
from services.tokenizer.output_parsers.state_parser import HeaderCallParser
from services.tokenizer.output_parsers.tags import Tags

TOOL_CALLS = "[TOOL_CALLS]"
MISTRAL_TAGS = (TOOL_CALLS, "[CALL_ID]", "[ARGS]")
_TAGS = Tags(TOOL_CALLS)
_HEADER = re.compile(r"\s*([\w.:/-]+)\s*(?:\[CALL_ID\]\s*[\w-]+\s*)?(?:\[ARGS\])?\s*")
_MAX_HEADER = MAX_NAME + 64


class MistralParser(JsonCallParser, HeaderCallParser):
    """`[TOOL_CALLS][{"name": …, "arguments": {…}}, …]`, and from tokenizer version 11 on `[TOOL_CALLS]name{…}`.

    The later shape stands once for each call and may have `[CALL_ID]…` and `[ARGS]` between name and arguments.

    https://docs.mistral.ai/guides/tokenization/
    """

    def __init__(self, new_id: NewId) -> None:
        super().__init__(_TAGS, "", new_id)

    def _opened(self, tag: str) -> Callable[[], bool]:
        return self._at_shape

    def _at_shape(self) -> bool:
        text = self._unread.lstrip(BLANKS)
        if not text:
            return False
        self._state = self._at_first if text[0] in "[{" else self._in_header
        return True

    def _in_header(self) -> bool:
        brace = self._unread.find("{")
        if brace < 0 and len(self._unread) <= _MAX_HEADER:
            return False
        header = _HEADER.fullmatch(self._unread[:brace]) if 0 <= brace <= _MAX_HEADER else None
        if header is None:
            return self._no_call()
        self._unread = self._unread[brace:]
        return self._in_arguments_from(header[1])

    def _after_arguments(self) -> bool:
        return self._after_calls()
