"""Calls as JSON between tags."""

from __future__ import annotations

from services.tokenizer.output_parsers.json_call import BLANKS
from services.tokenizer.output_parsers.json_calls import JsonCallParser
from services.tokenizer.output_parsers.port import NewId
from services.tokenizer.output_parsers.tags import Tags

HERMES_TAGS = ("<tool_call>", "</tool_call>")
PYTHON_TAG = "<|python_tag|>"


class HermesParser(JsonCallParser):
    """Hermes, Qwen 2.5 and 3 and their heirs: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`.

    https://github.com/NousResearch/Hermes-Function-Calling
    """

    def __init__(self, new_id: NewId) -> None:
        super().__init__(_HERMES, HERMES_TAGS[1], new_id)


class LlamaJsonParser(JsonCallParser):
    """Llama 3.1: an answer that begins with `{"name": …, "parameters": {…}}`, with or without `<|python_tag|>`.

    Several calls are separated by semicolons.

    https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/#json-based-tool-calling
    """

    def __init__(self, new_id: NewId) -> None:
        super().__init__(_LLAMA, "", new_id, needs_arguments=True)
        self._state = self._at_start

    def _at_start(self) -> bool:
        begins = self._starts_with("{")
        if begins is None:
            return False
        if begins:
            return self._at_call()
        self._state = self._in_content
        return True

    def _before_closing(self) -> bool:
        separated = self._skip(";")
        if separated is None:
            return False
        self._doubtful = ""
        self._state = self._at_next
        return True

    def _at_next(self) -> bool:
        text = self._unread.lstrip(BLANKS)
        if not text:
            return False
        return self._at_call() if text.startswith("{") else self._after_calls()


_HERMES = Tags(HERMES_TAGS[0])
_LLAMA = Tags(PYTHON_TAG)
