"""Filtered texts: what comes out is what the slow reference says, however the text is split."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.tokenizer.filters.filtered_text import FilteredText
from services.tokenizer.filters.folding import Folder
from services.tokenizer.filters.scanner import Scanner, finders
from services.tokenizer.findings import FilterAction, FilterMatch
from tests.tokenizer.filters.reference import Written, filtered
from tests.tokenizer.filters.reference import fold as folded

MASK, STOP, REPORT = FilterAction.MASK, FilterAction.STOP, FilterAction.REPORT
# Few letters, so that matches begin, overlap and fail often; the rest folds to one, no or two of them.
PLAIN_LETTERS = "aabb c"
LETTERS = "aabbAÁ\u0301 cﬁif\u200bａ1"
PATTERNS = (
    "a{2,4}",
    "ab?a",
    "(?:ab|b)c?",
    "[ab]{3}",
    "a(?:b|bb)a",
    "b[^a]b",
    "(?:a{1,2}b){1,3}",
    "c(?:a|)b",
    "i?f{1,2}",
    r"\d{1,3}a",
    "a.c",
)


def words(letters: str) -> st.SearchStrategy[str]:
    """Words that fold to something."""
    return st.text(letters, min_size=1, max_size=5).filter(lambda word: folded(word) != "")


@st.composite
def written_rules(draw: st.DrawFn) -> list[Written]:
    """One to four rules."""
    rules = []
    for _ in range(draw(st.integers(1, 4))):
        is_folded = draw(st.booleans())
        rules.append(
            Written(
                action=draw(st.sampled_from((MASK, MASK, REPORT, STOP))),
                words=tuple(draw(st.lists(words(LETTERS if is_folded else PLAIN_LETTERS), min_size=1, max_size=3))),
                patterns=tuple(draw(st.lists(st.sampled_from(PATTERNS), max_size=2))),
                whole_words=draw(st.booleans()),
                fold=is_folded,
                mask=draw(st.sampled_from("█*")),
            )
        )
    return rules


def pieces_of(text: str, cuts: Sequence[int]) -> list[str]:
    """The text, cut at these places."""
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(edges)]


def scanner(rules: Sequence[Written]) -> Scanner:
    """All rules together."""
    return Scanner([finders({at: rule.rule(str(at)) for at, rule in enumerate(rules)})], Folder())


def run(scanner: Scanner, rules: Sequence[Written], pieces: Sequence[str]) -> tuple[list[str], FilteredText]:
    """What comes out after each piece and at the end."""
    text = FilteredText(scanner, [rule.rule(str(at)) for at, rule in enumerate(rules)])
    return [*(text.feed(piece) for piece in pieces), text.flush()], text


TEXTS = st.text(LETTERS, max_size=24)
CUTS = st.lists(st.integers(0, 24), max_size=8)


@settings(max_examples=300, deadline=None)
@given(written_rules(), st.lists(st.tuples(TEXTS, CUTS), min_size=1, max_size=4))
def test_what_comes_out_is_the_references_for_every_split(
    rules: list[Written], texts: list[tuple[str, list[int]]]
) -> None:
    """Text, matches told and stop are those of the reference on the whole text, whatever the split, and also where the
    scanner remembers moves from texts before."""
    shared = scanner(rules)
    for text, cuts in texts:
        for pieces in (pieces_of(text, cuts), list(text), [text]):
            out, state = run(shared, rules, pieces)
            expected, told, stopped = filtered(rules, text)
            assert "".join(out) == expected
            assert state.matches == told
            assert state.stopped is stopped
            assert state.out == len(expected)


@settings(max_examples=200, deadline=None)
@given(written_rules(), TEXTS, CUTS)
def test_what_has_left_never_holds_a_part_of_a_match(rules: list[Written], text: str, cuts: list[int]) -> None:
    """After each piece, what has left is the begin of what leaves in the end: nothing that must be masked, or that
    follows a stop, was out before it was known."""
    expected, _, _ = filtered(rules, text)
    out, _ = run(scanner(rules), rules, pieces_of(text, cuts))
    left = ""
    for piece in out:
        left += piece
        assert expected.startswith(left)


def may_begin_match(rule: Written, text: str) -> bool:
    """Whether more text could make a match of a folded text, or, for whole words, tell that it is one."""
    for word in rule.words:
        known = folded(word) if rule.fold else word
        if known.startswith(text) and (known != text or rule.whole_words):
            return True
    return False


@settings(max_examples=200, deadline=None)
@given(written_rules(), TEXTS, CUTS)
def test_no_more_is_held_than_a_match_may_begin_with(rules: list[Written], text: str, cuts: list[int]) -> None:
    """With word lists, what is held back after each piece is the proper begin of a word, or a word that waits to be
    known as whole."""
    plain = [Written(r.action, r.words, (), r.whole_words, r.fold, r.mask) for r in rules if r.action is not REPORT]
    if not plain:
        return
    state = FilteredText(scanner(plain), [rule.rule(str(at)) for at, rule in enumerate(plain)])
    for piece in pieces_of(text, cuts):
        state.feed(piece)
        if state.stopped:
            return
        held = text[state.out : state.taken]
        # A character that folds to several may be held for the last of them.
        begins = range(max(1, len(folded(held[:1]))))
        assert not held or any(
            may_begin_match(rule, (folded(held) if rule.fold else held)[begin:]) for rule in plain for begin in begins
        )


def one(action: FilterAction, *word_list: str, whole_words: bool = False, fold: bool = False) -> Written:
    """A rule of words."""
    return Written(action, word_list, whole_words=whole_words, fold=fold)


@pytest.mark.parametrize(
    ("rules", "pieces", "expected"),
    [
        ([one(MASK, "damn")], ["oh d", "am", "n it"], ["oh ", "", "████ it", ""]),
        ([one(MASK, "damn")], ["oh da", "y"], ["oh ", "day", ""]),
        ([one(MASK, "damn")], ["dam"], ["", "dam"]),
        ([one(MASK, "ab", "abcd")], ["ab", "c", "x"], ["", "", "██cx", ""]),
        ([one(MASK, "ab", "abcd")], ["ab", "cd"], ["", "████", ""]),
        ([one(MASK, "abc", "cde")], ["abcde"], ["█████", ""]),
        ([one(MASK, "aba")], ["ababa"], ["████", "█"]),
        ([one(MASK, "ab"), Written(MASK, ("bc",), mask="*")], ["abc"], ["██*", ""]),
        ([one(MASK, "cat", whole_words=True)], ["cat", "s cat", "."], ["", "cats ", "███.", ""]),
        ([one(MASK, "cat", whole_words=True)], ["concat cat"], ["concat ", "███"]),
        ([one(MASK, "cafe", fold=True)], ["CAF", "É!"], ["", "████!", ""]),
        ([one(MASK, "cafe", fold=True)], ["ｃａｆｅ", " e\u0301"], ["████", " e\u0301", ""]),
        ([one(MASK, "café", fold=True)], ["c\u200bafe"], ["█████", ""]),
        ([one(STOP, "damn")], ["oh d", "amn it"], ["oh ", "", ""]),
        ([one(STOP, "abcd", "bc")], ["abcd"], ["a", ""]),
        ([one(STOP, "abc"), one(MASK, "xa")], ["xab", "c"], ["█", "", ""]),
    ],
)
def test_cases(rules: list[Written], pieces: list[str], expected: list[str]) -> None:
    """Overlaps, a word that is the begin of a longer one, boundaries, folding and stops give what is written here."""
    out, _ = run(scanner(rules), rules, pieces)
    assert out == expected


def test_a_long_match_is_told_once_though_a_shorter_lies_in_it() -> None:
    """Of a rule's matches in one another the outer one is told; another rule's match in it is told too."""
    rules = [one(MASK, "abc", "b", "abcd"), one(MASK, "bc")]
    _, state = run(scanner(rules), rules, ["abcd"])
    assert state.matches == [FilterMatch(MASK, "0", 0, 4), FilterMatch(MASK, "1", 1, 2)]


@given(st.text("0123456789x", max_size=60), CUTS)
def test_numbers(text: str, cuts: list[int]) -> None:
    """A pattern of 5 to 7 digits masks all runs of at least 5 digits, and holds back up to 7 digits at the end."""
    rules = [Written(MASK, patterns=(r"\d{5,7}",))]
    out, _ = run(scanner(rules), rules, pieces_of(text, cuts))
    assert "".join(out) == re.sub(r"\d{5,}", lambda match: "█" * len(match[0]), text)
