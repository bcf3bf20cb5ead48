"""Stop strings within the first `min_tokens` tokens do not count, as in vLLM."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from services.tokenizer.events import FinishReason
from services.tokenizer.text_tokenizer import TextTokenizer
from tests.tokenizer.choice_recorder import run
from tests.tokenizer.conftest import SMOLLM2, ReferenceOf, TokenizerOf

TEXT = "one two three two one"


@pytest.fixture(scope="module")
def smollm2_pair(tokenizer_of: TokenizerOf, reference_of: ReferenceOf) -> tuple[TextTokenizer, Tokenizer]:
    """The default model's tokenizer, and Hugging Face's of the same files."""
    return tokenizer_of(SMOLLM2), reference_of(SMOLLM2)


def vllm_stop(texts: list[str], stop: str, min_tokens: int) -> int | None:
    """Index of the character after the first stop that vLLM finds; it looks token by token at what is new."""
    seen = ""
    for position, text in enumerate(texts):
        seen += text
        if text and position >= min_tokens:
            found = seen.find(stop, max(0, len(seen) - len(text) - len(stop) + 1))
            if found >= 0:
                return found + len(stop)
    return None


@pytest.mark.parametrize(
    ("min_tokens", "text"),
    [(0, "one "), (1, "one "), (2, "one two three "), (3, "one two three "), (4, TEXT), (5, TEXT)],
)
@pytest.mark.parametrize("frame_size", [1, 2, 5])
def test_a_stop_counts_from_the_token_after_min_tokens(
    smollm2_pair: tuple[TextTokenizer, Tokenizer], min_tokens: int, text: str, frame_size: int
) -> None:
    """A stop completed by an earlier token stays in the text, and the next one ends it."""
    tokenizer, reference = smollm2_pair
    ids: list[int] = reference.encode(TEXT).ids
    assert len(ids) == 5
    frames = [ids[begin : begin + frame_size] for begin in range(0, 5, frame_size)]
    got = run(tokenizer, frames, stops=["two"], min_tokens=min_tokens)
    assert got.text == text
    assert got.finish.matched_stop == (None if text == TEXT else "two")


def test_a_stop_that_ends_after_the_bound_counts(smollm2_pair: tuple[TextTokenizer, Tokenizer]) -> None:
    """A stop may begin in a token that does not count; nothing of it is shown."""
    tokenizer, reference = smollm2_pair
    ids: list[int] = reference.encode(TEXT).ids
    got = run(tokenizer, [[token_id] for token_id in ids], stops=["two thr"], min_tokens=2)
    assert (got.text, got.finish.matched_stop, got.finish.reason) == ("one ", "two thr", FinishReason.STOP)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(300, 600), min_size=1, max_size=12), st.integers(0, 40), st.integers(1, 3), st.data())
def test_it_is_vllms_rule(
    smollm2_pair: tuple[TextTokenizer, Tokenizer], ids: list[int], place: int, size: int, data: st.DataObject
) -> None:
    """For any ids, bound and stop the text is cut where vLLM's detokenizer cuts it."""
    tokenizer, reference = smollm2_pair
    whole: str = reference.decode(ids, skip_special_tokens=True)
    stop = whole[place : place + size] or "e"
    min_tokens = data.draw(st.integers(0, len(ids)))
    decoder = tokenizer.decoder([500], True)
    end = vllm_stop([decoder.feed([token_id]) for token_id in ids], stop, min_tokens)
    got = run(tokenizer, [ids], stops=[stop], include_stop=True, min_tokens=min_tokens)
    assert got.text == (whole if end is None else whole[:end])
