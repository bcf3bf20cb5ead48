"""One choice: what its reader gets is the one-shot text, cut at the first stop, with the ids that made it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from services.tokenizer.events import Finish, FinishReason, Usage
from services.tokenizer.stop_strings import MAX_STOPS
from services.tokenizer.text_tokenizer import TextTokenizer
from tests.tokenizer.choice_recorder import END, first_stop, run
from tests.tokenizer.conftest import SMOLLM2, ReferenceOf, TokenizerOf


@st.composite
def splits(draw: st.DrawFn, ids: list[int]) -> list[list[int]]:
    """The ids in frames of random sizes, none empty."""
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(ids) - 1)), max_size=8)))
    bounds = [0, *(cut for cut in cuts if cut < len(ids)), len(ids)]
    return [ids[low:high] for low, high in itertools.pairwise(bounds) if low < high]


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[list[int]], list[int], list[tuple[int, int]], list[str]]:
    """Frames, their ids, and stops: as places of the text, so that they are found, and of their own."""
    spice = st.sampled_from([END, 1, 0, *range(3, 17), 198, 216, 28, 42])
    ids = draw(st.lists(st.one_of(st.integers(0, 49151), spice), min_size=1, max_size=24))
    places = draw(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 6)), max_size=MAX_STOPS - 1))
    own = draw(st.lists(st.text("ab e\n<", min_size=1, max_size=3), max_size=1))
    return draw(splits(ids)), ids, places, own


@settings(max_examples=400, deadline=None)
@given(cases(), st.booleans(), st.booleans(), st.sampled_from(FinishReason))
def test_deltas_are_the_one_shot_text_up_to_the_first_stop(
    smollm2_pair: tuple[TextTokenizer, Tokenizer],
    case: tuple[list[list[int]], list[int], list[tuple[int, int]], list[str]],
    include: bool,
    skip: bool,
    reason: FinishReason,
) -> None:
    """For any ids, splits and stops the text is one-shot decoding cut at the first stop, and ids, text
    and usage agree on the token that completed it."""
    tokenizer, reference = smollm2_pair
    frames, ids, places, own = case
    hides_last = reason is FinishReason.STOP and not include
    shown = ids[:-1] if hides_last else ids
    whole: str = reference.decode(shown, skip_special_tokens=skip)
    stops = [*own, *(whole[begin : begin + size] for begin, size in places)]
    # U+FFFD for a part of a character says nothing of the text before the next token.
    stops = [stop for stop in stops if stop and "\ufffd" not in stop]

    got = run(tokenizer, frames, stops=stops, include_stop=include, skip_special_tokens=skip, reason=reason)

    assert got.starts == [(9, 4)]
    assert all(text for _, text in got.deltas[:-1]), "only the last delta may be without text"
    match = first_stop(stops, whole)
    if match is None:
        assert (got.text, got.token_ids, got.cancelled) == (whole, ids, 0)
        assert got.finish == Finish(reason, None, Usage(9, len(ids), 4))
        return
    stop, end = match
    used = next(
        count
        for count in range(1, len(shown) + 1)
        if reference.decode(shown[:count], skip_special_tokens=skip).startswith(whole[:end])
    )
    assert got.text == whole[: end if include else end - len(stop)]
    assert got.token_ids == ids[:used]
    assert got.cancelled == 1
    assert got.finish == Finish(FinishReason.STOP, stop, Usage(9, used, 4))


@pytest.fixture(scope="module")
def smollm2_pair(tokenizer_of: TokenizerOf, reference_of: ReferenceOf) -> tuple[TextTokenizer, Tokenizer]:
    """The default model's tokenizer, and Hugging Face's of the same files."""
    return tokenizer_of(SMOLLM2), reference_of(SMOLLM2)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.booleans(), st.booleans())
def test_sentencepiece_splits_do_not_matter(
    tokenizer_of: TokenizerOf, data: st.DataObject, include: bool, skip: bool
) -> None:
    """With byte-fallback tokens too, each split gives the text and ids of one frame."""
    tokenizer = tokenizer_of("llama2")
    # 3 to 258 are single bytes, 0 to 2 control tokens, 29871 a lone space.
    token = st.one_of(st.integers(0, 31999), st.integers(131, 258), st.sampled_from([0, 1, 2, 29871]))
    ids = data.draw(st.lists(token, min_size=1, max_size=20))
    whole = tokenizer.decode([500, *ids], skip)[len(tokenizer.decode([500], skip)) :]
    begin = data.draw(st.integers(0, max(0, len(whole) - 1)))
    stops = [stop for stop in [whole[begin : begin + 3]] if stop]
    whole_frame, singles = (
        run(tokenizer, frames, stops=stops, include_stop=include, skip_special_tokens=skip)
        for frames in ([ids], [[token_id] for token_id in ids])
    )
    frames = data.draw(splits(ids))
    other = run(tokenizer, frames, stops=stops, include_stop=include, skip_special_tokens=skip)
    assert whole_frame.text == singles.text == other.text
    assert whole_frame.token_ids == singles.token_ids == other.token_ids
    assert whole_frame.finish == singles.finish == other.finish
    match = first_stop(stops, whole)
    assert whole_frame.text == (whole if match is None else whole[: match[1] - (0 if include else len(match[0]))])
