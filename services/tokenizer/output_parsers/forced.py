"""Outputs that structured output makes calls and nothing else."""

from __future__ import annotations

from services.tokenizer.output_parsers.json_calls import JsonCallParser
from services.tokenizer.output_parsers.port import NewId, Part, ToolCallPiece
from services.tokenizer.output_parsers.tags import Tags

_TAGS = Tags("<tool_call>")


class CallListParser(JsonCallParser):
    """A list of calls, `[{"name": …, "parameters": {…}}, …]`."""

    def __init__(self, new_id: NewId) -> None:
        super().__init__(_TAGS, "", new_id)
        self._state = self._at_first


class ArgumentsParser:
    """The arguments of one call of a named function."""

    def __init__(self, name: str, new_id: NewId) -> None:
        self._name = name
        self._new_id = new_id
        self._begun = False

    def feed(self, text: str) -> list[Part]:
        """The text, as the next piece."""
        if not text:
            return []
        if self._begun:
            return [ToolCallPiece(0, text)]
        self._begun = True
        return [ToolCallPiece(0, text, self._new_id(), self._name)]

    def flush(self) -> list[Part]:
        """Nothing: no text was held back."""
        return []
