"""Whether a text is one JSON value, found while it comes: https://www.rfc-editor.org/rfc/rfc8259."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from services.tokenizer.format_checks.port import Fault

_WHITESPACE = re.compile(r"[ \t\n\r]*")
# What may stand in a string by itself: all but quotes, backslashes and control characters.
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_DIGITS = frozenset("0123456789")
_HEX_DIGIT = frozenset("0123456789abcdefABCDEF")
_ESCAPED = frozenset('"\\/bfnrt')
_LITERALS = {literal[0]: literal for literal in ("true", "false", "null")}
_CLOSING = {"{": "}", "[": "]"}

_VALUE = "a value"
_AFTER_VALUE = {"": "nothing", "{": "',' or '}'", "[": "',' or ']'"}


@dataclass(frozen=True, slots=True)
class _Part:
    """A place in a number: what must follow, None where it may end, and which parts kinds of characters lead to."""

    wanted: str | None
    moves: Mapping[str, str]


_KINDS = {"0": "0", "-": "-", "+": "+", ".": ".", "e": "e", "E": "e"} | dict.fromkeys("123456789", "1")
_PARTS = {
    "begin": _Part("a digit", {"-": "minus", "0": "zero", "1": "integer"}),
    "minus": _Part("a digit", {"0": "zero", "1": "integer"}),
    "zero": _Part(None, {".": "point", "e": "e"}),
    "integer": _Part(None, {"0": "integer", "1": "integer", ".": "point", "e": "e"}),
    "point": _Part("a digit", {"0": "fraction", "1": "fraction"}),
    "fraction": _Part(None, {"0": "fraction", "1": "fraction", "e": "e"}),
    "e": _Part("a digit or a sign", {"+": "sign", "-": "sign", "0": "exponent", "1": "exponent"}),
    "sign": _Part("a digit", {"0": "exponent", "1": "exponent"}),
    "exponent": _Part(None, {"0": "exponent", "1": "exponent"}),
}


class _BrokenError(Exception):
    """The text is no JSON from here on.

    Args:
        at: of the piece that is being read.
    """

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


class JsonText:
    """A `FormatChecker`: the whole text is one JSON value, with white space around it at most. Finds one fault.

    Each state is a method that takes a piece and a place in it and returns the place after what it read.
    """

    def __init__(self) -> None:
        self._state: Callable[[str, int], int] = self._value
        # What the text would go on with; told when it does not.
        self._wanted = _VALUE
        self._open: list[str] = []
        self._part = _PARTS["begin"]
        self._in_name = False
        self._left = ""
        self._hex_digits_left = 0
        self._before = 0
        self._over = False

    def feed(self, text: str) -> Sequence[Fault]:
        """Take the next characters; return the fault that they show, unless one was found before."""
        if self._over:
            return ()
        at, size = 0, len(text)
        try:
            while at < size:
                at = self._state(text, at)
        except _BrokenError as broken:
            return self._found(self._before + broken.at, str(broken))
        self._before += size
        return ()

    def finish(self) -> Sequence[Fault]:
        """Return the fault that the value is not complete, unless one was found before."""
        if self._over or self._next() == "nothing":
            return ()
        return self._found(self._before, f"the text ends where {self._next()} must follow")

    def _found(self, position: int, message: str) -> Sequence[Fault]:
        self._over = True
        return (Fault(position, message, position),)

    def _next(self) -> str:
        """What must follow here."""
        if self._state == self._number:
            if self._part.wanted is not None:
                return self._part.wanted
            return f"a digit or {self._after()}" if self._open else "nothing"
        return self._after() if self._state == self._after_value else self._wanted

    def _after(self) -> str:
        return _AFTER_VALUE[self._open[-1] if self._open else ""]

    def _go(self, state: Callable[[str, int], int], wanted: str) -> None:
        self._state, self._wanted = state, wanted

    def _wrong(self, text: str, at: int) -> _BrokenError:
        wanted = self._next()
        if wanted == "nothing":
            return _BrokenError(at, f"{text[at]!r} stands after the value, where the text must end")
        return _BrokenError(at, f"{text[at]!r} stands where {wanted} must follow")

    def _value(self, text: str, at: int) -> int:
        if (at := _skip(text, at)) == len(text):
            return at
        character = text[at]
        if character == '"':
            self._in_name = False
            self._go(self._string, "the end of a string")
        elif character in "{[":
            self._open.append(character)
            if character == "{":
                self._go(self._first_name, "a name in quotes or '}'")
            else:
                self._go(self._first_value, "a value or ']'")
        elif character in _LITERALS:
            self._left = _LITERALS[character][1:]
            self._go(self._literal, repr(_LITERALS[character]))
        elif character == "-" or character in _DIGITS:
            self._part, self._state = _PARTS["begin"], self._number
            return at
        else:
            raise self._wrong(text, at)
        return at + 1

    def _first_value(self, text: str, at: int) -> int:
        if (at := _skip(text, at)) < len(text) and text[at] == "]":
            return self._close(at)
        return self._value(text, at)

    def _first_name(self, text: str, at: int) -> int:
        if (at := _skip(text, at)) < len(text) and text[at] == "}":
            return self._close(at)
        return self._name(text, at)

    def _name(self, text: str, at: int) -> int:
        if (at := _skip(text, at)) == len(text):
            return at
        if text[at] != '"':
            raise self._wrong(text, at)
        self._in_name = True
        self._go(self._string, "the end of a string")
        return at + 1

    def _colon(self, text: str, at: int) -> int:
        if (at := _skip(text, at)) == len(text):
            return at
        if text[at] != ":":
            raise self._wrong(text, at)
        self._go(self._value, _VALUE)
        return at + 1

    def _after_value(self, text: str, at: int) -> int:
        if (at := _skip(text, at)) == len(text):
            return at
        character = text[at]
        if self._open:
            if character == ",":
                if self._open[-1] == "{":
                    self._go(self._name, "a name in quotes")
                else:
                    self._go(self._value, _VALUE)
                return at + 1
            if character == _CLOSING[self._open[-1]]:
                return self._close(at)
        raise self._wrong(text, at)

    def _close(self, at: int) -> int:
        self._open.pop()
        self._state = self._after_value
        return at + 1

    def _string(self, text: str, at: int) -> int:
        at = _past(_PLAIN, text, at)
        if at == len(text):
            return at
        if text[at] == '"':
            if self._in_name:
                self._go(self._colon, "':'")
            else:
                self._state = self._after_value
        elif text[at] == "\\":
            self._go(self._escape, "an escaped character")
        else:
            raise _BrokenError(at, f"{text[at]!r} stands in a string, where it must be escaped")
        return at + 1

    def _escape(self, text: str, at: int) -> int:
        if text[at] == "u":
            self._hex_digits_left = 4
            self._go(self._hex, "a hexadecimal digit")
        elif text[at] in _ESCAPED:
            self._go(self._string, "the end of a string")
        else:
            raise _BrokenError(at, f'{text[at]!r} stands after a backslash, where JSON has none of "\\/bfnrtu')
        return at + 1

    def _hex(self, text: str, at: int) -> int:
        if text[at] not in _HEX_DIGIT:
            raise self._wrong(text, at)
        self._hex_digits_left -= 1
        if self._hex_digits_left == 0:
            self._go(self._string, "the end of a string")
        return at + 1

    def _literal(self, text: str, at: int) -> int:
        if text[at] != self._left[0]:
            raise self._wrong(text, at)
        self._left = self._left[1:]
        if not self._left:
            self._state = self._after_value
        return at + 1

    def _number(self, text: str, at: int) -> int:
        while at < len(text):
            character = text[at]
            following = self._part.moves.get(_KINDS.get(character, ""))
            if following is None:
                break
            self._part = _PARTS[following]
            at += 1
        if at == len(text):
            return at
        if self._part.wanted is not None:
            raise self._wrong(text, at)
        if self._part is _PARTS["zero"] and text[at] in _DIGITS:
            raise _BrokenError(at, f"{text[at]!r} stands after a number's leading zero")
        self._state = self._after_value
        return self._after_value(text, at)


def _skip(text: str, at: int) -> int:
    return _past(_WHITESPACE, text, at)


def _past(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return the place after what a pattern matches, possibly nothing."""
    found = pattern.match(text, at)
    return at if found is None else found.end()
