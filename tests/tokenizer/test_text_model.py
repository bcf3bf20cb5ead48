"""A model as the tokenizer tier sees it."""

from __future__ import annotations

import pytest

from services.chassis.errors import InvalidRequest
from services.tokenizer.text_model import TextModel
from tests.tokenizer.conftest import SMOLLM2, TokenizerOf


@pytest.mark.parametrize(("engine_vocab_size", "last"), [(None, 49151), (49280, 49279), (1000, 999)])
def test_the_engines_vocabulary_decides(tokenizer_of: TokenizerOf, engine_vocab_size: int | None, last: int) -> None:
    """The last id that the engine takes is allowed and the next refused, whether the tokenizer knows more ids or
    fewer; while the engine does not tell, the tokenizer's vocabulary counts."""
    model = TextModel("m", tokenizer_of(SMOLLM2), None, engine_vocab_size)
    model.check_token_ids([], "the prompt", "prompt")
    model.check_token_ids([0, last], "the prompt", "prompt")
    message = f"the prompt holds 4294967295; token ids of this model are 0 to {last}"
    with pytest.raises(InvalidRequest) as caught:
        model.check_token_ids([1, 2**32 - 1, last + 1], "the prompt", "prompt")
    assert caught.value.message == message
    assert (caught.value.param, caught.value.reason) == ("prompt", "TOKEN_ID_OUT_OF_VOCABULARY")
