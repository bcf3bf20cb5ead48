"""Reading a call's JSON as it comes, without waiting for its end."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

BLANKS = " \t\r\n"
MAX_NAME = 256
"""Characters in the name of a function."""
# Text that may wait for a name which comes after the arguments.
_MAX_EARLY = 64 * 1024
_STRUCTURE = re.compile(r'["\\{}\[\]]')
_ARGUMENTS = ("arguments", "parameters")
_KEYS = frozenset(["name", "type", "id", *_ARGUMENTS])


class JsonValue:
    """Finds the end of a string, an object or a list. What lies inside is not checked."""

    __slots__ = ("_depth", "_escaped", "_in_string")

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def end(self, text: str, start: int = 0) -> int:
        """Take the text from `start` on and return where the value has ended in it, or -1."""
        position = start
        if self._escaped and position < len(text):
            self._escaped = False
            position += 1
        while (found := _STRUCTURE.search(text, position)) is not None:
            position = found.end()
            mark = found.group()
            if self._in_string:
                if mark == "\\":
                    self._escaped = position == len(text)
                    position += 1
                elif mark == '"':
                    self._in_string = False
                    if self._depth == 0:
                        return position
            elif mark == '"':
                self._in_string = True
            elif mark in "{[":
                self._depth += 1
            elif mark in "}]":
                self._depth -= 1
                if self._depth <= 0:
                    return position
        return -1


@dataclass(frozen=True, slots=True)
class CallProgress:
    """What a text gave: the name, once, when it is a call for certain; arguments; and text after the object."""

    name: str | None
    arguments: str
    rest: str


class JsonCall:
    """Reads one object `{"name": "f", "arguments": {…}}`.

    `parameters` is another name for `arguments`; `type` and `id` may stand beside them; any other member, an empty
    name, and arguments that are no object mean that this is no call. Arguments are passed on as they were written.

    Args:
        needs_arguments: an object with a name alone is no call; otherwise its arguments are `{}`.

    Attributes:
        raw: the text read, while it is not certain that it is a call.
        certain: it is a call.
        over: it has ended, or it is no call, or it went wrong; nothing more may be fed.
    """

    __slots__ = (
        "_early",
        "_expects",
        "_key",
        "_name",
        "_needs_arguments",
        "_value",
        "_value_text",
        "certain",
        "over",
        "raw",
    )

    def __init__(self, needs_arguments: bool = False) -> None:
        self._needs_arguments = needs_arguments
        self._expects = "{"
        self._key = ""
        self._name: str | None = None
        self._early: str | None = None
        self._value: JsonValue | None = None
        self._value_text = ""
        self.raw = ""
        self.certain = False
        self.over = False

    def feed(self, text: str) -> CallProgress:
        """Take the next text."""
        was_certain, arguments, position = self.certain, [], 0
        while position < len(text) and not self.over:
            if self._value is not None:
                end = self._value.end(text, position)
                stop = len(text) if end < 0 else end
                arguments.append(self._read(text[position:stop]))
                position = stop
                if end >= 0:
                    arguments.append(self._end_value())
            elif text[position] in BLANKS:
                position += 1
            elif self._begins_value(text[position]):
                self._value = JsonValue()
                self._value_text = ""
                if self._expects == "value" and self._key in _ARGUMENTS and self._name is not None:
                    self.certain = True
            elif self._takes(text[position]):
                position += 1
                if self._expects == "end" and not self._certain_or_lacking():
                    self.certain = True
                    arguments.append("{}")
            else:
                self.over = True
        if not was_certain:
            self.raw += text[:position]
        name = self._name if self.certain and not was_certain else None
        return CallProgress(name, "".join(arguments), text[position:])

    def _certain_or_lacking(self) -> bool:
        """Whether the object's end adds nothing: the call was told, or there is no name or no arguments."""
        return self.certain or self._name is None or self._needs_arguments

    def _begins_value(self, char: str) -> bool:
        if self._expects in ("key", "key or }"):
            return char == '"'
        if self._expects == "value":
            return char == ("{" if self._key in _ARGUMENTS else '"')
        return False

    def _takes(self, char: str) -> bool:
        following = {
            ("{", "{"): "key or }",
            (":", ":"): "value",
            (", or }", ","): "key",
            (", or }", "}"): "end",
            ("key or }", "}"): "end",
        }.get((self._expects, char))
        if following is None:
            return False
        self._expects = following
        self.over = following == "end"
        return True

    def _read(self, piece: str) -> str:
        """Keep a piece of the value; what is returned goes out as arguments."""
        if self._expects == "value" and self._key in _ARGUMENTS:
            if self.certain:
                return piece
            self._early = (self._early or "") + piece
            self.over = len(self._early) > _MAX_EARLY
        else:
            self._value_text += piece
            # Escapes take up to six characters for one.
            self.over = len(self._value_text) > 6 * MAX_NAME + 2
        return ""

    def _end_value(self) -> str:
        self._value = None
        if self.over:
            return ""
        if self._expects != "value":
            self._key = _string(self._value_text) or ""
            self._expects = ":"
            repeated = self._key in _ARGUMENTS and (self.certain or self._early is not None)
            self.over = repeated or self._key not in _KEYS
            return ""
        self._expects = ", or }"
        if self._key != "name" or self.certain:
            return ""
        self._name = _string(self._value_text)
        if not self._name or len(self._name) > MAX_NAME:
            self.over, self._name = True, None
            return ""
        if self._early is None:
            return ""
        self.certain = True
        return self._early


def _string(text: str) -> str | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, str) else None
