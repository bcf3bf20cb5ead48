"""Prompts of a wanted length."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from services.cli.bench.prompts import Prompts
from tests.cli.bench.run_options import options

IDS = ("--endpoint", "completions", "--prompt-ids", "--vocabulary", "1000")


def prompts(*arguments: str, seed: int = 0) -> Prompts:
    """A source of prompts."""
    return Prompts(options(*arguments), random.Random(seed))


@given(st.integers(1, 100_000))
def test_ids_are_exactly_so_many(count: int) -> None:
    """A prompt of token ids has the wanted length, and ids of the vocabulary alone."""
    prompt = prompts(*IDS, "--prompt-tokens", str(count)).next()
    assert isinstance(prompt, list)
    assert len(prompt) == count
    assert min(prompt) >= 0 and max(prompt) < 1000


@given(st.integers(1, 300_000))
def test_text_has_exactly_so_many_characters(count: int) -> None:
    """A text of a wanted number of characters has them, none of them a space at an end that a template strips."""
    text = prompts("--prompt-characters", str(count)).next()
    assert isinstance(text, str)
    assert len(text) == len(text.strip()) == count


def test_text_has_about_so_many_tokens() -> None:
    """A text is made of so many words, each with a space before it."""
    text = prompts("--prompt-tokens", "500").next()
    assert isinstance(text, str) and len(text.split(" ")) == 500


def test_lengths_fill_their_range() -> None:
    """Lengths of a range are drawn from all of it, both ends included."""
    source = prompts("--prompt-tokens", "3-5")
    assert {len(str(source.next()).split()) for _ in range(200)} == {3, 4, 5}


def test_prompts_differ_from_their_start() -> None:
    """No two prompts share a beginning that a cache of prefixes would know."""
    source = prompts("--prompt-tokens", "2000")
    assert len({tuple(str(source.next()).split()[:12]) for _ in range(500)}) == 500


def test_same_seed_gives_the_same_prompts() -> None:
    """What is sent can be repeated."""
    first, again, other = (prompts("--prompt-tokens", "50-90", seed=seed) for seed in (7, 7, 8))
    texts = [first.next() for _ in range(20)]
    assert texts == [again.next() for _ in range(20)]
    assert texts != [other.next() for _ in range(20)]


def test_shared_prefix_comes_on_top_of_its_share() -> None:
    """So many prompts begin with the same words, before as many of their own as the others have."""
    source = prompts("--prompt-tokens", "10", "--shared-prefix", "40/0.5")
    words = [str(source.next()).split() for _ in range(400)]
    longer = [tuple(each[:40]) for each in words if len(each) == 50]
    assert {len(each) for each in words} == {10, 50}
    assert len(set(longer)) == 1
    assert 140 < len(longer) < 260


def test_shared_prefix_of_ids_is_exact() -> None:
    """With token ids the prefix is ids, too."""
    source = prompts(*IDS, "--prompt-tokens", "10", "--shared-prefix", "40")
    first, second = source.next(), source.next()
    assert len(first) == len(second) == 50
    assert first[:40] == second[:40] and first[40:] != second[40:]
