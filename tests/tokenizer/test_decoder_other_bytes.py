"""A decoder that knows bytes but is none of the known kinds: the reference decodes, and characters still come whole."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from services.tokenizer.decoder import decoder_for
from services.tokenizer.token_table import DecoderKind, TokenTable
from tests.tokenizer.small_tokenizers import bytes_first

HELLO, A, REPLACEMENT, END = 257, 258, 260, 261


@pytest.fixture(scope="module")
def reference() -> Tokenizer:
    """The tokenizer."""
    return bytes_first()


@pytest.fixture(scope="module")
def table(reference: Tokenizer) -> TokenTable:
    """Its table."""
    table = TokenTable.from_tokenizer_json(reference.to_str().encode())
    assert table.kind is DecoderKind.OTHER
    return table


def deltas(
    table: TokenTable,
    reference: Tokenizer,
    chunks: Sequence[Sequence[int]],
    prompt: Sequence[int] = (),
    skip: bool = True,
) -> list[str]:
    """The deltas of these chunks after a prompt, and the flush."""
    decoder = decoder_for(table, reference, prompt, skip)
    return [*(decoder.feed(chunk) for chunk in chunks), decoder.flush()]


CHARACTERS = st.characters(exclude_categories=["Cs"]).map(lambda character: list(character.encode()))
IDS = st.lists(st.one_of(CHARACTERS, st.sampled_from([[256], [HELLO], [A], [259], [REPLACEMENT], [END]])), max_size=16)


@example([], [[48]] * 5 + [list("\ufffd".encode()), list("\x80".encode())], {9}, False)
@example([list("\ufffd".encode())], [[48]], set(), False)
@example([], [list("\u0800\ufffd".encode()), list("\x80".encode())], {7}, False)
@given(IDS, IDS, st.sets(st.integers(1, 40)), st.booleans())
def test_the_deltas_are_what_the_output_adds(
    table: TokenTable,
    reference: Tokenizer,
    prompt: list[list[int]],
    output: list[list[int]],
    cuts: set[int],
    skip: bool,
) -> None:
    """For whole characters in bytes, any split and any prompt, the text is that of one-shot decoding."""
    before, ids = ([one for part in parts for one in part] for parts in (prompt, output))
    edges = [0, *sorted(cut for cut in cuts if cut < len(ids)), len(ids)]
    chunks = [ids[start:end] for start, end in pairwise(edges)]
    whole: str = reference.decode(before + ids, skip_special_tokens=skip)
    text = "".join(deltas(table, reference, chunks, before, skip))
    assert reference.decode(before, skip_special_tokens=skip) + text == whole


def test_a_split_character_waits_for_its_last_byte(table: TokenTable, reference: Tokenizer) -> None:
    """Nothing before the character is whole; cut off, it is U+FFFD, and bad bytes raise nothing."""
    llama = list("\N{LLAMA}".encode())
    assert deltas(table, reference, [[A], *([byte] for byte in llama)]) == ["a", "", "", "", "\N{LLAMA}", ""]
    assert set(deltas(table, reference, [[byte] for byte in llama[:3]])[-1]) == {"\ufffd"}
    bad = deltas(table, reference, [[byte] for byte in (*llama, 0xF0, A, *[0xFF] * 12, HELLO)])
    assert "".join(bad).replace("\ufffd", "") == "\N{LLAMA}a Hello"


@pytest.mark.parametrize("kept", [1, 2, 3])
@pytest.mark.parametrize("output", [[HELLO], [*"\N{LLAMA}".encode(), A], [REPLACEMENT, A]])
def test_a_prompt_that_ends_inside_a_character_takes_nothing_away(
    table: TokenTable, reference: Tokenizer, kept: int, output: list[int]
) -> None:
    """After a prompt that ends inside a character or with U+FFFD the output is as after the text before that."""
    expected = deltas(table, reference, [[token_id] for token_id in output], [A])
    for end in (list("\N{LLAMA}".encode())[:kept], [REPLACEMENT] * kept):
        assert deltas(table, reference, [[token_id] for token_id in output], [A, *end]) == expected


def test_bytes_that_would_complete_the_prompts_character_do_not(table: TokenTable, reference: Tokenizer) -> None:
    """The rest of a character whose beginning the prompt holds is no character, and what follows is not cut."""
    llama = list("\N{LLAMA}".encode())
    text = "".join(deltas(table, reference, [[*llama[2:], HELLO]], [A, *llama[:2]]))
    assert text == "\ufffd\ufffd Hello"
