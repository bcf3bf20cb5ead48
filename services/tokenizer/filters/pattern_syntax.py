"""The syntax of patterns: what of regular expressions has a greatest width and looks at nothing but its match."""

from __future__ import annotations

import string

from services.tokenizer.filters.folding import fold_character
from services.tokenizer.filters.pattern_tree import Characters, InOrder, Node, OneOf, Repeated

MAX_WIDTH = 256
"""Characters of a pattern's longest match. Bounds the text that is held back."""
MAX_PATTERN = 1000
"""Characters of a pattern."""
_MAX_FOLDED_RANGE = 1000

_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_WORD = r"\pL\pM\pN_"
_SPACE = r"\t-\r \x{85}\pZ"
_CLASSES = {"d": r"\p{Nd}", "w": _WORD, "s": _SPACE}
_NEGATED = {"D": r"\P{Nd}", "W": f"^{_WORD}", "S": f"^{_SPACE}"}

NO_WORD_CHARACTER = f"[^{_WORD}]"
"""RE2's text for what `is_word_character` is not."""


class PatternError(Exception):
    """A pattern is refused; the text says why, what is allowed and what to do."""


def parse_pattern(pattern: str, fold: bool) -> Node:
    """Read a pattern.

    Args:
        fold: it is for folded text, so its own characters are folded.

    Raises:
        PatternError: it is malformed or holds what is not allowed, has a match without characters, or one of more than
            `MAX_WIDTH` characters.
    """
    if len(pattern) > MAX_PATTERN:
        raise PatternError(f"has {len(pattern)} characters; at most {MAX_PATTERN} are allowed, so split it")
    tree = _Parser(pattern, fold).parse()
    if tree.most > MAX_WIDTH:
        raise PatternError(
            f"matches up to {tree.most} characters; at most {MAX_WIDTH} are allowed, so lower its repetitions"
        )
    if tree.least == 0:
        raise PatternError("matches the empty text; let it match one character at least")
    return tree


class _Parser:
    """Reads one pattern, by recursive descent."""

    def __init__(self, pattern: str, fold: bool) -> None:
        self._pattern = pattern
        self._fold = fold
        self._at = 0

    def parse(self) -> Node:
        tree = self._alternatives(0)
        if self._at < len(self._pattern):
            raise self._error("holds a ) without its (; write \\) for the character")
        return tree

    def _alternatives(self, depth: int) -> Node:
        if depth > 50:
            raise PatternError("has more than 50 groups in one another; nest fewer")
        parts = [self._in_order(depth)]
        while self._take("|"):
            parts.append(self._in_order(depth))
        return parts[0] if len(parts) == 1 else OneOf(parts)

    def _in_order(self, depth: int) -> Node:
        parts: list[Node] = []
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            parts.append(self._repeats(self._atom(depth)))
        return InOrder(parts)

    def _repeats(self, part: Node) -> Node:
        character = self._peek()
        if character and character in "*+":
            raise self._error(f"has a repetition without an end ({character}); write {{0,20}} or the like")
        if character == "?":
            self._at += 1
            result = Repeated(part, 0, 1)
        elif character == "{":
            result = self._counted(part)
        else:
            return part
        if self._peek() and self._peek() in "?+*{":
            raise self._error("has a repetition after a repetition; the longest match counts, so write one only")
        return result

    def _counted(self, part: Node) -> Repeated:
        end = self._pattern.find("}", self._at)
        inner = self._pattern[self._at + 1 : end] if end >= 0 else ""
        fewest, comma, times = inner.partition(",")
        if not fewest.isdecimal() or not inner.isascii() or (comma and times and not times.isdecimal()):
            raise self._error("has a { that begins no repetition; write {2} or {2,5}, or \\{ for the character")
        if comma and not times:
            raise self._error(f"has a repetition without an end ({{{inner}}}); write {{{fewest},20}} or the like")
        self._at = end + 1
        low, high = int(fewest[:6]), int((times if comma else fewest)[:6])
        if high < low:
            raise self._error(f"has a repetition that ends before it begins ({{{inner}}}); write the smaller first")
        if high > MAX_WIDTH:
            raise self._error(f"repeats {high} times; at most {MAX_WIDTH} characters may match, so lower it")
        return Repeated(part, low, high)

    def _atom(self, depth: int) -> Node:
        character = self._next()
        if character == "(":
            return self._group(depth)
        if character == "[":
            return self._set()
        if character == ".":
            return Characters(r"^\n")
        if character == "\\":
            return self._escaped()
        if character in "^$":
            raise self._error(f"has an anchor ({character}); set whole_words, or write \\{character} for the character")
        if character in "*+?{":
            raise self._error(f"repeats nothing ({character}); write \\{character} for the character")
        return self._literal(character)

    def _group(self, depth: int) -> Node:
        if self._take("?") and not self._take(":"):
            raise self._error(
                "has a group of the kind (?…; only (…) and (?:…) are allowed, without look-around or flags"
            )
        tree = self._alternatives(depth + 1)
        if not self._take(")"):
            raise self._error("has a ( without its ); close it, or write \\( for the character")
        return tree

    def _escaped(self) -> Node:
        character = self._peek()
        if character in _CLASSES or character in _NEGATED:
            self._at += 1
            return Characters((_CLASSES | _NEGATED)[character])
        return self._literal(self._escaped_character())

    def _escaped_character(self) -> str:
        character = self._next()
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character in _HEX_DIGITS:
            digits = self._pattern[self._at : self._at + _HEX_DIGITS[character]]
            self._at += len(digits)
            if len(digits) < _HEX_DIGITS[character] or not set(digits) <= set(string.hexdigits):
                raise self._error(f"has a \\{character} without its {_HEX_DIGITS[character]} hexadecimal digits")
            code = int(digits, 16)
            if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                raise self._error(f"names {digits}, which is no character")
            return chr(code)
        if character in "bBAZ":
            raise self._error(f"looks at what is around its match (\\{character}); set whole_words instead")
        if character.isdigit():
            raise self._error(f"has a back reference (\\{character}), which is not allowed; write its text out")
        if character.isalnum():
            raise self._error(f"has an unknown escape (\\{character}); write the character itself")
        return character

    def _set(self) -> Node:
        negated = self._take("^")
        members = ""
        first = True
        while first or self._peek() != "]":
            first = False
            members += self._member()
        self._at += 1
        return Characters(("^" if negated else "") + members)

    def _member(self) -> str:
        low = self._next()
        if low == "\\":
            if self._peek() in _NEGATED:
                raise self._error(f"has \\{self._peek()} in a set; negate the set instead")
            if self._peek() in _CLASSES:
                return _CLASSES[self._next()]
            low = self._escaped_character()
        elif low == "[" and self._peek() in (":", ".", "="):
            raise self._error("has a named set such as [:alpha:]; write \\w, \\d, \\s or the characters")
        high = low
        if self._peek() == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("]", ""):
            self._at += 1
            high = self._next()
            if high == "\\":
                high = self._escaped_character()
            if high < low:
                raise self._error(f"has a range that ends before it begins ({low}-{high}); write the smaller first")
        return self._range(low, high)

    def _range(self, low: str, high: str) -> str:
        if not self._fold:
            return _code(low) if low == high else f"{_code(low)}-{_code(high)}"
        if ord(high) - ord(low) >= _MAX_FOLDED_RANGE:
            raise self._error(
                f"has a range of more than {_MAX_FOLDED_RANGE} characters; set fold to false, or write a smaller one"
            )
        members = {fold_character(chr(code)) for code in range(ord(low), ord(high) + 1)}
        if low == high and len(fold_character(low)) != 1:
            raise self._error(f"has {low} in a set, which is not one character when folded; write it outside of sets")
        return "".join(_code(member) for member in sorted(members) if len(member) == 1)

    def _literal(self, character: str) -> Node:
        texts = fold_character(character) if self._fold else character
        parts = [Characters(_code(text)) for text in texts]
        return parts[0] if len(parts) == 1 else InOrder(parts)

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _next(self) -> str:
        character = self._peek()
        if not character:
            raise PatternError("ends in the middle; complete it, or write a \\ before the last special character")
        self._at += 1
        return character

    def _take(self, character: str) -> bool:
        if self._peek() != character:
            return False
        self._at += 1
        return True

    def _error(self, text: str) -> PatternError:
        return PatternError(f"{text} (at character {self._at})")


def _code(character: str) -> str:
    return f"\\x{{{ord(character):x}}}"
