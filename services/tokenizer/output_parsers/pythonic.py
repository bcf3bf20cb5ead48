"""Calls in Python's syntax."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable

from services.tokenizer.output_parsers.json_call import BLANKS, MAX_NAME
from services.tokenizer.output_parsers.port import NewId
from services.tokenizer.output_parsers.state_parser import StateParser
from services.tokenizer.output_parsers.tagged import PYTHON_TAG
from services.tokenizer.output_parsers.tags import Tags

PYTHON_START = "<|python_start|>"
_TAGS = Tags(PYTHON_TAG, PYTHON_START)
_NAME = re.compile(r"\s*([A-Za-z_][\w.]*)\s*(\(?)")
_MARKS = re.compile(r"""['"\\()\[\]{}]""")
_MAX_CALL = 64 * 1024
_JSON_NAMES = {"true": True, "false": False, "null": None}


class PythonicParser(StateParser):
    """Llama 3.2 and 4: an answer that begins with `[f(a=1, b="x"), g()]`, with or without a tag before it.

    A call is told when its closing parenthesis has come: its arguments have to be turned into JSON as a whole.

    https://www.llama.com/docs/model-cards-and-prompt-formats/llama4/#tool-calling-and-code-interpreter
    """

    def __init__(self, new_id: NewId) -> None:
        super().__init__(_TAGS, new_id)
        self._parentheses: _Parentheses | None = None
        self._state = self._at_start

    def _opened(self, tag: str) -> Callable[[], bool]:
        return self._at_list

    def _at_start(self) -> bool:
        begins = self._starts_with("[")
        if begins is None:
            return False
        self._state = self._at_list if begins else self._in_content
        return True

    def _at_list(self) -> bool:
        opened = self._skip("[")
        if opened is None:
            return False
        if not opened:
            return self._no_call()
        self._state = self._in_call
        return True

    def _in_call(self) -> bool:
        if not self._unread.strip(BLANKS):
            return False
        name = _NAME.match(self._unread)
        if name is None or len(name[1]) > MAX_NAME or not (name[2] or name.end() == len(self._unread)):
            return self._no_call()
        if name[2] and self._parentheses is None:
            self._parentheses = _Parentheses(name.end())
        end = -1 if self._parentheses is None else self._parentheses.end(self._unread)
        if end < 0:
            return self._no_call() if len(self._unread) > _MAX_CALL else False
        self._parentheses = None
        arguments = _arguments(self._unread[name.end() - 1 : end])
        if arguments is None:
            return self._no_call()
        self._unread = self._unread[end:]
        self._begin(name[1], arguments)
        self._state = self._after_call
        return True

    def _after_call(self) -> bool:
        comma = self._skip(",")
        if comma is None:
            return False
        if comma:
            self._doubtful = ""
            self._state = self._in_call
            return True
        if self._skip("]"):
            return self._after_calls()
        return self._no_call()


class _Parentheses:
    """Finds where the parenthesis that was opened before `start` is closed, in a text that grows."""

    def __init__(self, start: int) -> None:
        self._position = start
        self._depth = 1
        self._quote = ""

    def end(self, text: str) -> int:
        """Where it is closed, or -1."""
        while (found := _MARKS.search(text, self._position)) is not None:
            mark, self._position = found.group(), found.end()
            if mark == "\\":
                self._position += 1
            elif self._quote:
                if mark == self._quote:
                    self._quote = ""
            elif mark in "'\"":
                self._quote = mark
            elif mark in "([{":
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth == 0:
                    return self._position
        self._position = max(self._position, len(text))
        return -1


def _arguments(parenthesised: str) -> str | None:
    """JSON text of keyword arguments, or None where they are something else."""
    try:
        call = ast.parse(f"f{parenthesised}", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            return None
        values = {}
        for keyword in call.keywords:
            if keyword.arg is None:
                return None
            values[keyword.arg] = ast.literal_eval(_Literals().visit(keyword.value))
        return json.dumps(values, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


class _Literals(ast.NodeTransformer):
    """Takes JSON's names for Python's."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A constant for one of JSON's names."""
        return ast.Constant(_JSON_NAMES[node.id]) if node.id in _JSON_NAMES else node
