"""DeepSeek's calls, in both shapes."""

from __future__ import annotations

import re
from collections.abc import Callable

from services.tokenizer.output_parsers.json_call import MAX_NAME
from services.tokenizer.output_parsers.port import NewId
from services.tokenizer.output_parsers.state_parser import HeaderCallParser
from services.tokenizer.output_parsers.tags import Tags

CALLS_BEGIN = "<｜tool▁calls▁begin｜>"
_CALLS_END = "<｜tool▁calls▁end｜>"
_CALL_BEGIN = "<｜tool▁call▁begin｜>"
_CALL_END = "<｜tool▁call▁end｜>"
_SEPARATOR = "<｜tool▁sep｜>"
_FENCE = "```"
DEEPSEEK_TAGS = (CALLS_BEGIN, _CALLS_END, _CALL_BEGIN, _CALL_END, _SEPARATOR)
_TAGS = Tags(CALLS_BEGIN)
_HEADERS = (
    re.compile(rf"\s*function{_SEPARATOR}([^\s<]+)\s*```json\s*"),
    re.compile(rf"\s*([^\s<]+){_SEPARATOR}\s*"),
)
_MAX_HEADER = MAX_NAME + 64


class DeepSeekParser(HeaderCallParser):
    """A list between tags; each call is `function<｜tool▁sep｜>name`, then a fenced JSON object (V3, R1), or
    `name<｜tool▁sep｜>` and the object (V3.1).

    The formats are those of the models' own chat templates.
    """

    def __init__(self, new_id: NewId) -> None:
        super().__init__(_TAGS, new_id)
        self._fenced = False

    def _opened(self, tag: str) -> Callable[[], bool]:
        return self._at_call

    def _at_call(self) -> bool:
        begun = self._skip(_CALL_BEGIN)
        if begun:
            self._state = self._in_header
            return True
        ended = self._skip(_CALLS_END)
        if ended:
            return self._after_calls() if self._calls else self._no_call()
        return False if begun is None or ended is None else self._no_call()

    def _in_header(self) -> bool:
        brace = self._unread.find("{")
        if brace < 0 and len(self._unread) <= _MAX_HEADER:
            return False
        text = self._unread[:brace] if 0 <= brace <= _MAX_HEADER else ""
        header = next((found for pattern in _HEADERS if (found := pattern.fullmatch(text))), None)
        if header is None:
            return self._no_call()
        self._fenced = _FENCE in text
        self._unread = self._unread[brace:]
        return self._in_arguments_from(header[1])

    def _after_arguments(self) -> bool:
        if self._fenced:
            fence = self._skip(_FENCE)
            if fence is None:
                return False
            self._fenced = False
            self._doubtful = ""
        ended = self._skip(_CALL_END)
        if ended is None:
            return False
        if not ended:
            return self._no_call()
        self._doubtful = ""
        self._state = self._at_call
        return True
