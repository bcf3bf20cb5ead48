"""The syntax of patterns: what is taken means what it means to Python, and the rest is refused with its reason."""

from __future__ import annotations

import itertools
import re

import pytest

from services.tokenizer.filters.pattern_syntax import PatternError, parse_pattern
from services.tokenizer.filters.pattern_tree import Node

# Each matches texts of at most five characters.
PATTERNS = [
    "a",
    "ab|c",
    "a?b{1,2}",
    "(?:ab|c){1,2}",
    "(a|b)(c|)",
    "[ab]{2}c?",
    "[^a]b",
    "a.b",
    r"\d{1,3}",
    r"[\d-]a",
    r"[a\]c]b",
    "[]a]b",
    r"a\.b",
    r"\x61\u0062",
    "a{2}",
    "a{0,2}b",
    "(?:a{0,1}b{0,1}){2}c",
    "(?:a|ab)(?:c|bc)",
    r"\w\s\w",
    r"\W\S",
    r"\Da",
    "(?:(?:a|b){1,2}c){1}",
    "a{1,2}",
    "-{1,2}a",
]
TEXTS = ["".join(text) for size in range(6) for text in itertools.product("abc1- .", repeat=size)]


def spans(tree: Node) -> tuple[re.Pattern[str], re.Pattern[str] | None]:
    """RE2's texts of a tree, as Python reads them."""
    beginning = tree.beginning()
    return re.compile(_python(tree.whole())), None if beginning is None else re.compile(_python(beginning))


def _python(source: str) -> str:
    # RE2's classes of Unicode, as far as the texts here hold such characters.
    for theirs, ours in ((r"\pL\pM\pN_", r"\w"), (r"\p{Nd}", r"\d"), (r"\P{Nd}", r"\D"), (r"\pZ", "")):
        source = source.replace(theirs, ours)
    return re.sub(r"\\x\{([0-9a-f]+)\}", lambda code: rf"\U{int(code[1], 16):08x}", source)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_whole_and_beginning(pattern: str) -> None:
    """A tree matches the texts that Python's own engine matches, its beginning exactly the proper beginnings of those,
    and its width is that of the longest."""
    tree = parse_pattern(pattern, fold=False)
    whole, beginning = spans(tree)
    matched = {text for text in TEXTS if re.fullmatch(pattern, text)}
    assert {text for text in TEXTS if whole.fullmatch(text)} == matched
    begun = {text[:end] for text in matched for end in range(len(text))}
    assert beginning is not None
    assert {text for text in TEXTS if beginning.fullmatch(text) and len(text) < tree.most} == begun
    assert (tree.least, tree.most) == (min(map(len, matched)), max(map(len, matched)))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("a*", r"repetition without an end \(\*\); write \{0,20\}"),
        ("a+", r"repetition without an end \(\+\)"),
        ("a{2,}", r"repetition without an end \(\{2,\}\); write \{2,20\}"),
        ("a{300}", "repeats 300 times"),
        ("(?:a{20}){20}", "matches up to 400 characters; at most 256 are allowed"),
        ("a?", "matches the empty text"),
        ("", "matches the empty text"),
        ("a(?=b)", r"group of the kind \(\?…; only \(…\) and \(\?:…\) are allowed, without look-around"),
        ("(?<!a)b", "without look-around"),
        ("(?i)a", "without look-around or flags"),
        (r"(a)\1", r"back reference \(\\1\), which is not allowed; write its text out"),
        ("^a", r"anchor \(\^\); set whole_words"),
        ("a$", r"anchor \(\$\)"),
        (r"\ba", r"around its match \(\\b\); set whole_words instead"),
        ("(a", "without its "),
        ("a)", "without its "),
        ("[a", "ends in the middle"),
        ("a\\", "ends in the middle"),
        ("a{1,2}?", "repetition after a repetition"),
        ("a{x}", "begins no repetition"),
        ("a{2,1}", "ends before it begins"),
        ("[b-a]", "ends before it begins"),
        ("[[:alpha:]]", "named set"),
        (r"[\W]", "negate the set instead"),
        (r"\q", "unknown escape"),
        (r"\x4", "2 hexadecimal digits"),
        (r"\ud800", "no character"),
        ("?a", "repeats nothing"),
        ("a" * 1001, "has 1001 characters; at most 1000"),
        ("(" * 60 + "a" + ")" * 60, "more than 50 groups"),
    ],
)
def test_refused(pattern: str, message: str) -> None:
    """What has no greatest width, looks around, or is malformed is refused: what is wrong, and what to write."""
    with pytest.raises(PatternError, match=message) as refusal:
        parse_pattern(pattern, fold=False)
    assert "\n" not in str(refusal.value)


def test_folded_patterns() -> None:
    """A pattern for folded text has its own letters folded, in sets too; a set must stay one of single characters."""
    whole, _ = spans(parse_pattern("É[A-CÄ]ß", fold=True))
    assert [text for text in ("eass", "eäss", "EASS", "ecss") if whole.fullmatch(text)] == ["eass", "ecss"]
    with pytest.raises(PatternError, match="not one character when folded"):
        parse_pattern("[ß]", fold=True)
    with pytest.raises(PatternError, match="range of more than 1000"):
        parse_pattern("[\u0001-\uffff]", fold=True)
