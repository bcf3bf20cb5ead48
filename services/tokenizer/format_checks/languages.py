"""What of programming languages matters for brackets and quotes in pairs.

Where that cannot be told without parsing the language, its rules say so, and the rest of the text is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

BRACKETS: Mapping[str, str] = {")": "(", "]": "[", "}": "{"}


@dataclass(frozen=True, slots=True)
class Starts:
    """Where something may begin: `characters` finds its first character, and `openings` are those of several."""

    characters: re.Pattern[str]
    openings: tuple[str, ...]

    @classmethod
    def of(cls, openings: Iterable[str], alone: str) -> Starts:
        """Make it of what begins with some characters and of what is one character alone."""
        openings = tuple(openings)
        first = sorted({opening[0] for opening in openings} | set(alone))
        # Without any, what matches nowhere.
        characters = f"[{''.join(map(re.escape, first))}]" if first else "(?!)"
        return cls(re.compile(characters), tuple(opening for opening in openings if len(opening) > 1))

    def may_become(self, text: str, at: int) -> bool:
        """Whether the end of a text from `at` on is the begin of an opening, and not all of it."""
        left = len(text) - at
        return any(left < len(opening) and opening.startswith(text[at:]) for opening in self.openings)


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """A part of a text in which brackets do not count: a string, a comment, or what is like them.

    Attributes:
        closing: ends it.
        escapes: a backslash takes the next character along.
        lines: it may go over the ends of lines.
        inner: what begins within it, and what that is; None: code up to the bracket that closes it.
        nests: begins another of its kind within it.
        judged: it is a fault that it is not closed; else its end is the end of the line or text, or nobody knows.
    """

    closing: str
    escapes: bool = True
    lines: bool = False
    inner: Mapping[str, Span | None] = field(default_factory=dict)
    nests: str | None = None
    judged: bool = True
    starts: Starts = field(init=False)

    def __post_init__(self) -> None:
        openings = (self.closing, *self.inner, *([] if self.nests is None else [self.nests]))
        alone = ("\\" if self.escapes else "") + ("" if self.lines else "\n")
        object.__setattr__(self, "starts", Starts.of(openings, alone))


@dataclass(frozen=True, slots=True)
class Rule:
    """What begins in code with certain characters, unless that depends on what stands around it.

    Attributes:
        opening: the characters.
        begins: what begins; None: nothing, they are passed over.
        before: found in the text before it, of which only the end is known.
        after: matched at its place, within the next `needs` characters.
        unclear: from here on the text cannot be judged.
    """

    opening: str
    begins: Span | None = None
    before: re.Pattern[str] | None = None
    after: re.Pattern[str] | None = None
    needs: int = 0
    unclear: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """A language's rules; the first that holds counts.

    Attributes:
        brackets: those that must be in pairs.
        unclear_closing: a closing bracket with no opening one may be no bracket at all; these then end the judging.
        no_bracket: found in the text before a closing bracket without an opening one: it is none.
    """

    rules: tuple[Rule, ...] = ()
    brackets: str = "()[]{}"
    unclear_closing: str = ""
    no_bracket: re.Pattern[str] | None = None
    starts: Starts = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "starts", Starts.of([rule.opening for rule in self.rules], self.brackets))


def _string(quote: str, *, escapes: bool = True, lines: bool = False) -> Rule:
    return Rule(quote, Span(quote, escapes, lines))


def _line_comment(opening: str, before: re.Pattern[str] | None = None) -> Rule:
    return Rule(opening, Span("\n", escapes=False, lines=True, judged=False), before)


def _block_comment(opening: str, closing: str) -> Rule:
    return Rule(opening, Span(closing, escapes=False, lines=True))


_NESTING_COMMENT = Rule("/*", Span("*/", escapes=False, lines=True, nests="/*"))
_LINE_BEGIN = re.compile(r"(?:^|\n)[ \t]*$")
_SLASHES = (_line_comment("//"), _block_comment("/*", "*/"))
_QUOTES = (_string('"'), _string("'"))
_TRIPLE = _string('"""', lines=True)
# Other lines may stand in place of those after it, brackets and all.
_BRANCHES = tuple(Rule(word, unclear=True) for word in ("#else", "#elif"))
_COMMENT = Span("*/", escapes=False, lines=True)
_PREPROCESSOR = Rule("#", Span("\n", lines=True, inner={"/*": _COMMENT}, judged=False), _LINE_BEGIN)
# https://en.cppreference.com/w/cpp/language/integer_literal: 1'000'000
_DIGIT_SEPARATOR = Rule("'", before=re.compile(r"(?:^|[^A-Za-z0-9_'])[0-9][A-Za-z0-9_']*$"))
_RAW_CPP = Rule('"', before=re.compile(r"(?:^|[^A-Za-z0-9_])(?:u8|u|U|L)?R$"), unclear=True)

_PYTHON = Language((_line_comment("#"), _TRIPLE, _string("'''", lines=True), *_QUOTES))
_C = Language((*_SLASHES, *_BRANCHES, _PREPROCESSOR, _RAW_CPP, _string('"'), _DIGIT_SEPARATOR, _string("'")))
_C_SHARP = Language(
    (
        *_SLASHES,
        *_BRANCHES,
        _PREPROCESSOR,
        Rule('@"', unclear=True),
        Rule('@$"', unclear=True),
        _string('"""', escapes=False, lines=True),
        *_QUOTES,
    )
)
_JAVA = Language((*_SLASHES, _TRIPLE, *_QUOTES))
_KOTLIN = Language((_line_comment("//"), _NESTING_COMMENT, _string('"""', escapes=False, lines=True), *_QUOTES))
_SWIFT = Language((_line_comment("//"), _NESTING_COMMENT, Rule('#"', unclear=True), _TRIPLE, _string('"')))
_GO = Language((*_SLASHES, _string("`", escapes=False, lines=True), *_QUOTES))
_RUST = Language(
    (
        _line_comment("//"),
        _NESTING_COMMENT,
        Rule('"', Span('"', escapes=False, lines=True), re.compile(r"(?:^|[^A-Za-z0-9_])[bc]?r$")),
        Rule('"', before=re.compile(r"(?:^|[^A-Za-z0-9_])[bc]?r#+$"), unclear=True),
        _string('"', lines=True),
        Rule("'", Span("'"), after=re.compile(r"'(?:\\|[^\\]')"), needs=3),
        # A lifetime: https://doc.rust-lang.org/reference/tokens.html#lifetimes-and-loop-labels
        Rule("'"),
    )
)
# A value is expected here, so that a slash begins a regular expression and < an element.
_WORDS = "return|typeof|case|default|in|of|delete|void|throw|new|do|else|instanceof|yield|await"
_VALUE_EXPECTED = re.compile(rf"(?:^|[=(,:?&|!{{;\[+\-*%~^<>]|\b(?:{_WORDS}))\s*$")
_REGULAR_EXPRESSION = Span("/", inner={"[": Span("]", judged=False)}, judged=False)
_SCRIPT = Language(
    (
        *_SLASHES,
        Rule("/", _REGULAR_EXPRESSION, _VALUE_EXPECTED),
        Rule("`", Span("`", lines=True, inner={"${": None})),
        Rule("<", before=_VALUE_EXPECTED, after=re.compile(r"<[A-Za-z>]"), needs=2, unclear=True),
        *_QUOTES,
    )
)
_JSON = Language((*_SLASHES, _string('"')))
_SHELL = Language(
    (
        _line_comment("#", re.compile(r"(?:^|[\s;&|(])$")),
        Rule("\\", after=re.compile(r"\\", re.DOTALL), needs=2),
        Rule("<<<"),
        # A document in the script, which ends with a word of its own.
        Rule("<<", unclear=True),
        Rule("$'", Span("'", lines=True)),
        Rule('"', Span('"', lines=True, inner={"$(": None})),
        _string("'", escapes=False, lines=True),
    ),
    # Patterns of case end with one.
    unclear_closing=")",
)
_PHP = Language(
    (
        Rule("<<<", unclear=True),
        Rule("?>", unclear=True),
        Rule("#[", unclear=True),
        *_SLASHES,
        _line_comment("#"),
        _string('"', lines=True),
        _string("'", lines=True),
    )
)
_CSS = Language((Rule("url(", unclear=True), _block_comment("/*", "*/"), *_QUOTES))
_ATTRIBUTE = {quote: Span(quote, escapes=False, lines=True) for quote in "\"'"}
_HTML = Language(
    (
        _block_comment("<!--", "-->"),
        *(Rule(f"<{name}", Span(f"</{name}", escapes=False, lines=True)) for name in ("script", "style")),
        # Of template languages.
        *(Rule(opening, unclear=True) for opening in ("<?", "<%", "{{", "{%", "<![")),
        Rule(
            "<",
            Span(">", escapes=False, lines=True, inner=_ATTRIBUTE),
            after=re.compile(r"<[A-Za-z/!]"),
            needs=2,
        ),
    ),
    brackets="",
)

PLAIN = Language(brackets="")
"""No code, or none that is in pairs."""

UNKNOWN = Language(
    # Items of lists, and faces.
    no_bracket=re.compile(r"(?:(?:^|\n)[ \t]*[A-Za-z0-9]{1,3}|[:;=8][-']?)$")
)
"""Brackets alone."""

_LANGUAGES: tuple[tuple[Language, str], ...] = (
    (PLAIN, "text txt plain plaintext output log markdown md diff patch csv tsv console pycon latex tex regex ascii"),
    (_PYTHON, "python py python3 py3 pyi"),
    (_SCRIPT, "javascript js jsx mjs cjs node typescript ts tsx mts"),
    (_JSON, "json jsonc json5 jsonl ndjson geojson"),
    (_C, "c h cpp c++ cc cxx hpp cuda cu glsl hlsl objc objective-c arduino ino"),
    (_C_SHARP, "csharp cs c#"),
    (_JAVA, "java"),
    (_KOTLIN, "kotlin kt"),
    (_SWIFT, "swift"),
    (_GO, "go golang"),
    (_RUST, "rust rs"),
    (_SHELL, "shell sh bash zsh ksh"),
    (_PHP, "php"),
    (_CSS, "css"),
    (_HTML, "html htm xhtml xml svg"),
)
_BY_NAME = {name: language for language, names in _LANGUAGES for name in names.split()}
_NAME = re.compile(r"[A-Za-z0-9_+#-]+")


def language_of(info: str) -> Language:
    """Return the language that a code block's info string names; an unknown one's brackets are all that is known."""
    found = _NAME.search(info)
    return UNKNOWN if found is None else _BY_NAME.get(found.group().lower(), UNKNOWN)
