"""One choice with the tokenizers of many models: its text is the plain one, for any ids, splits and stops."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from services.tokenizer.events import Finish, FinishReason, Usage
from services.tokenizer.stop_strings import MAX_STOPS
from services.tokenizer.text_tokenizer import TextTokenizer
from services.tokenizer.token_table import DecoderKind, TokenTable
from services.tokenizer.tokenizer_files import TOKENIZER_JSON, TokenizerFiles
from tests.tokenizer.choice_recorder import first_stop, run
from tests.tokenizer.conftest import ReferenceOf, TokenizerOf
from tests.tokenizer.plain_texts import plain_text
from tests.tokenizer.small_tokenizers import SMALL_TOKENIZERS
from tests.tokenizer.test_choice import splits

# The prompt of `run`.
PROMPT = [500]
FAMILIES = {
    DecoderKind.BYTE_LEVEL: ["qwen3", "llama3_1", "gptoss", "mistral_nemo", "deepseek_v3"],
    DecoderKind.BYTE_FALLBACK: ["llama2", "gemma3"],
}


def awkward(table: TokenTable) -> st.SearchStrategy[int]:
    """Ids of all sorts: any, parts of characters, white space, special and added ones, and one that does not exist."""
    parts = sorted(one for one in table.token_bytes if table.texts[one] is None) if table.texts else []
    blanks = sorted(one for one, content in table.token_bytes.items() if not content.strip())
    sorts = [range(table.vocab_size), parts, blanks, sorted(table.special_ids), sorted(table.added_ids), [10**6]]
    return st.one_of([st.sampled_from(ids) for ids in sorts if ids])


def holds_for(tokenizer: TextTokenizer, reference: Tokenizer) -> None:
    """Run the property for one tokenizer."""

    @settings(max_examples=120, deadline=None)
    @given(st.data(), st.booleans(), st.booleans(), st.sampled_from(FinishReason))
    def holds(data: st.DataObject, include: bool, skip: bool, reason: FinishReason) -> None:
        ids = data.draw(st.lists(awkward(tokenizer.table), min_size=1, max_size=20))
        shown = ids[:-1] if reason is FinishReason.STOP and not include else ids
        whole = plain_text(reference, tokenizer.table, shown, skip, PROMPT)
        places = data.draw(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 6)), max_size=MAX_STOPS))
        stops = [whole[begin : begin + size] for begin, size in places]
        # U+FFFD for a part of a character says nothing of the text before the next token.
        stops = [stop for stop in stops if stop and "\ufffd" not in stop]
        frames = data.draw(splits(ids))

        got = run(tokenizer, frames, stops=stops, include_stop=include, skip_special_tokens=skip, reason=reason)

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
            if plain_text(reference, tokenizer.table, shown[:count], skip, PROMPT).startswith(whole[:end])
        )
        assert got.text == whole[: end if include else end - len(stop)]
        assert (got.token_ids, got.cancelled) == (ids[:used], 1)
        assert got.finish == Finish(FinishReason.STOP, stop, Usage(9, used, 4))

    holds()


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in FAMILIES.items() for name in names])
def test_text_ids_and_usage_of_models(
    kind: DecoderKind, name: str, tokenizer_of: TokenizerOf, reference_of: ReferenceOf
) -> None:
    """With byte-level and byte-fallback tokenizers the deltas are the plain text up to the first stop, and
    ids and usage agree on the token that completed it."""
    assert tokenizer_of(name).table.kind is kind
    holds_for(tokenizer_of(name), reference_of(name))


@pytest.mark.parametrize("small", SMALL_TOKENIZERS, ids=lambda small: small.__name__)
def test_text_ids_and_usage_of_other_decoders(small: Callable[[], Tokenizer]) -> None:
    """The same where only the reference knows how to decode."""
    reference = small()
    tokenizer = TextTokenizer(TokenizerFiles({TOKENIZER_JSON: reference.to_str().encode()}))
    assert tokenizer.table.kind is DecoderKind.OTHER
    holds_for(tokenizer, reference)
