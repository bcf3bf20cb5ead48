"""Log probabilities: columns that belong to the tokens beside them, whatever is held back or cut off."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.tokenizer.events import FinishReason
from services.tokenizer.logprobs import Logprobs, with_bytes
from services.tokenizer.text_tokenizer import TextTokenizer
from tests.tokenizer.choice_recorder import END, run
from tests.tokenizer.conftest import SMOLLM2, TokenizerOf
from tests.tokenizer.test_choice import splits

TOPS = 2


def logprobs_of(token_ids: list[int]) -> Logprobs:
    """Numbers that tell which id they belong to."""
    return Logprobs(
        [-float(token_id) for token_id in token_ids],
        [token_id + 1 for token_id in token_ids],
        TOPS,
        [token_id + place for token_id in token_ids for place in range(TOPS)],
        [-float(token_id) - place for token_id in token_ids for place in range(TOPS)],
    )


@pytest.fixture(scope="module")
def tokenizer(tokenizer_of: TokenizerOf) -> TextTokenizer:
    """The default model's tokenizer."""
    return tokenizer_of(SMOLLM2)


@settings(max_examples=300, deadline=None)
@given(st.data(), st.booleans(), st.sampled_from(FinishReason))
def test_none_is_lost_and_none_doubled(
    tokenizer: TextTokenizer, data: st.DataObject, include: bool, reason: FinishReason
) -> None:
    """For any ids, splits and stops each delta's numbers are those of its own ids, and its text offsets are
    where each token's text begins in the whole."""
    spice = st.sampled_from([END, 1, 0, *range(3, 17), 198, 216, 28, 42])
    ids = data.draw(st.lists(st.one_of(st.integers(0, 49151), spice), min_size=1, max_size=24))
    whole = tokenizer.decode(ids)
    begin = data.draw(st.integers(0, max(0, len(whole) - 1)))
    stops = [stop for stop in [whole[begin : begin + data.draw(st.integers(0, 4))]] if stop]
    got = run(
        tokenizer, data.draw(splits(ids)), stops=stops, include_stop=include, reason=reason, logprobs_of=logprobs_of
    )
    plain = run(tokenizer, [ids], stops=stops, include_stop=include, reason=reason)
    assert (got.text, got.token_ids, got.finish) == (plain.text, plain.token_ids, plain.finish)
    offsets: list[int] = []
    for (token_ids, _), logprobs in zip(got.deltas, got.logprobs, strict=True):
        if logprobs is None:
            assert not token_ids
            continue
        expected = logprobs_of(token_ids)
        expected.text_offsets = logprobs.text_offsets
        assert logprobs == expected
        offsets += logprobs.text_offsets
    decoder, characters = tokenizer.decoder([500]), 0
    for token_id, offset in zip(got.token_ids, offsets, strict=True):
        assert offset == characters
        characters += len(decoder.feed([token_id]))


def test_without_them_nothing_is_told(tokenizer: TextTokenizer) -> None:
    """Where the engine tells none, no delta has any."""
    got = run(tokenizer, [tokenizer.encode("one two"), tokenizer.encode(" three")], stops=["x"])
    assert set(got.logprobs) == {None}


def test_a_split_character_has_its_own_bytes(tokenizer_of: TokenizerOf) -> None:
    """Tokens and alternatives have their own bytes, special tokens those of their name."""
    tokenizer = tokenizer_of("qwen3")
    told = with_bytes(tokenizer.table, [11162, 99, 247], Logprobs([-1.0] * 3, [1] * 3, 1, [99, 151645, 151644], [-1.0]))
    assert [list(token) for token in told.token_bytes] == [[32, 240, 159], [166], [153]]
    assert told.top_token_bytes == [b"\xa6", b"<|im_end|>", b"<|im_start|>"]


def test_an_id_that_the_tokenizer_does_not_know_has_no_bytes(tokenizer: TextTokenizer) -> None:
    """A model's own table may be larger than its tokenizer's."""
    assert with_bytes(tokenizer.table, [10**6], Logprobs([-1.0], [1])).token_bytes == [b""]


def test_offsets_of_a_split_character(tokenizer: TextTokenizer) -> None:
    """A token that begins a character, and those that go on with it, have the offset of what is not yet complete."""
    ids = tokenizer.encode("a 🦙b", False)
    got = run(tokenizer, [ids], logprobs_of=logprobs_of)
    (logprobs,) = got.logprobs
    assert logprobs is not None
    assert [tokenizer.table.token_bytes[one] for one in ids] == [b"a", b" \xf0\x9f", b"\xa6", b"\x99", b"b"]
    assert logprobs.text_offsets == [0, 1, 2, 2, 3]
