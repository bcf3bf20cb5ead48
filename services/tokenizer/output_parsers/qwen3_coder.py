"""Calls as tags for the function and each of its parameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from services.tokenizer.output_parsers.argument_types import ArgumentTypes, string_piece
from services.tokenizer.output_parsers.json_call import MAX_NAME
from services.tokenizer.output_parsers.port import NewId
from services.tokenizer.output_parsers.state_parser import StateParser
from services.tokenizer.output_parsers.tags import Tags
from services.tokenizer.tool_use import Tool

FUNCTION = "<function="
PARAMETER = "<parameter="
QWEN3_CODER_TAGS = ("<tool_call>", "</tool_call>")
_CALL, _CALL_END = QWEN3_CODER_TAGS
_FUNCTION_END = "</function>"
_PARAMETER_END = "</parameter>"
# Models forget the outer tag now and then.
_OPENINGS = Tags(_CALL, FUNCTION)
# They forget a value's end as well; the next tag in a line of its own is one then.
_VALUE_ENDS = Tags(f"\n{_PARAMETER_END}", _PARAMETER_END, f"\n{PARAMETER}", f"\n{_FUNCTION_END}")
_NAME = re.compile(rf"[^\s<>]{{1,{MAX_NAME}}}")
_NO_TYPES = ArgumentTypes({}, "")


class Qwen3CoderParser(StateParser):
    """Qwen3-Coder, Qwen3.5 and their heirs: `<tool_call>` around `<function=name>`, in it `<parameter=key>` and the
    value for each argument, all closed as in XML. Values stand in lines of their own, unescaped.

    A value's type is that of the tool's JSON Schema. Strings are passed on as they come, all else when its end has
    come. What the stream's end cuts off stays cut off.

    The format is that of the models' own chat templates.

    Args:
        tools: that may be called.
        new_id: makes the calls' ids.
    """

    def __init__(self, tools: Sequence[Tool], new_id: NewId) -> None:
        super().__init__(_OPENINGS, new_id)
        self._parameters: Mapping[str, Mapping[str, object]] = {tool.name: tool.parameters for tool in tools}
        self._name = ""
        self._certain = False
        self._types = _NO_TYPES
        # The value's beginning, while it may be something else than a string.
        self._value: list[str] = []
        self._value_size = 0
        self._value_begun = self._in_string = False

    def _opened(self, tag: str) -> Callable[[], bool]:
        return self._at_function if tag == _CALL else self._in_function_name

    def _at_function(self) -> bool:
        begun = self._skip(FUNCTION)
        if begun:
            self._state = self._in_function_name
        return bool(begun) or (begun is False and self._no_call())

    def _in_function_name(self) -> bool:
        name = self._read_name()
        if name:
            self._name, self._certain = name, False
            self._state = self._at_parameter
        return bool(name) or (name is None and self._no_call())

    def _at_parameter(self) -> bool:
        begun = self._skip(PARAMETER)
        if begun:
            self._state = self._in_key
            return True
        ended = self._skip(_FUNCTION_END)
        if ended:
            self._end_arguments()
            self._doubtful = ""
            self._state = self._after_function
            return True
        over = self._skip(_CALL_END) if self._certain else False
        if over:
            self._end_arguments()
            return self._after_calls()
        return False if None in (begun, ended, over) else self._broken()

    def _in_key(self) -> bool:
        key = self._read_name()
        if key is None:
            return self._broken()
        if not key:
            return False
        opening = f'"{string_piece(key)}": '
        if self._certain:
            self._continue(f", {opening}")
        else:
            self._begin(self._name, f"{{{opening}")
        self._certain = True
        self._doubtful = ""
        self._types = ArgumentTypes(self._parameters.get(self._name, {}), key)
        self._value, self._value_size = [], 0
        self._value_begun = self._in_string = False
        self._state = self._in_value
        return True

    def _in_value(self) -> bool:
        text, tag, self._unread = _VALUE_ENDS.split(self._unread)
        self._add_value(text)
        if tag is None:
            return False
        self._continue('"' if self._in_string else self._types.json_of("".join(self._value)))
        if _PARAMETER_END not in tag:
            self._unread = tag + self._unread
        self._state = self._at_parameter
        return True

    def _add_value(self, text: str) -> None:
        if text and not self._value_begun:
            # The line break after the tag is the format's.
            text = text.removeprefix("\n")
            self._value_begun = True
        if not self._in_string:
            self._value.append(text)
            self._value_size += len(text)
            if self._value_size <= self._types.undecided:
                return
            self._in_string = True
            text = "".join(self._value)
            self._continue('"')
        self._continue(string_piece(text))

    def _after_function(self) -> bool:
        closed = self._skip(_CALL_END)
        if closed:
            return self._after_calls()
        another = self._skip(FUNCTION)
        if another:
            self._state = self._in_function_name
            return True
        return False if closed is None or another is None else self._after_calls()

    def _read_name(self) -> str | None:
        """A name and the end of its tag; "" while it goes on, None where there is none."""
        found = _NAME.match(self._unread)
        if found is None:
            return None
        name = found.group()
        if found.end() == len(self._unread):
            return ""
        if self._unread[found.end()] != ">":
            return None
        self._doubtful += f"{name}>"
        self._unread = self._unread[found.end() + 1 :]
        return name

    def _end_arguments(self) -> None:
        if self._certain:
            self._continue("}")
        else:
            self._begin(self._name, "{}")
        self._certain = True

    def _broken(self) -> bool:
        """What comes is neither a parameter nor the end: a call that is certain ends here."""
        if self._certain:
            self._end_arguments()
        return self._no_call()

    def _give_back(self) -> None:
        if self._state == self._in_value:
            self._add_value(self._unread)
            self._unread = ""
            if not self._in_string:
                self._continue("".join(self._value))
