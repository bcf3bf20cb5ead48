"""What is told of a prompt: its text, its tokens' bytes and where each begins."""

from __future__ import annotations

import pytest

from services.chassis.errors import InvalidRequest
from services.tokenizer.logprobs import Logprobs
from services.tokenizer.prompt_detail import MAX_PROMPT_LOGPROBS, check_prompt_logprobs, prompt_detail
from tests.tokenizer.conftest import SMOLLM2, TokenizerOf


def test_only_what_was_asked_is_told(tokenizer_of: TokenizerOf) -> None:
    """Text without log probabilities, and the other way around."""
    tokenizer = tokenizer_of(SMOLLM2)
    ids = tokenizer.encode("Hello world")
    text_alone = prompt_detail(tokenizer, ids, True, lambda tokenizer, ids: tokenizer.decode(ids), None)
    assert (text_alone.text, text_alone.logprobs) == ("Hello world", None)
    numbers_alone = prompt_detail(tokenizer, ids, True, None, Logprobs([-1.0], [1]))
    assert numbers_alone.text is None and numbers_alone.logprobs is not None


def test_the_first_token_has_bytes_alone(tokenizer_of: TokenizerOf) -> None:
    """The columns begin with the second token, offsets count characters of the prompt's text."""
    tokenizer = tokenizer_of(SMOLLM2)
    ids = tokenizer.encode("a 🦙b")
    told = prompt_detail(tokenizer, ids, True, None, Logprobs([-1.0] * 4, [1] * 4)).logprobs
    assert told is not None
    assert told.first_token_bytes == b"a"
    assert told.rest.token_bytes == [b" \xf0\x9f", b"\xa6", b"\x99", b"b"]
    assert told.rest.numbers.text_offsets == [1, 2, 2, 3]


def test_a_hidden_first_token_takes_no_place(tokenizer_of: TokenizerOf) -> None:
    """SentencePiece: BOS is hidden and the space that begins a text is none, so the first word begins at 0."""
    tokenizer = tokenizer_of("llama2")
    ids = tokenizer.encode("Hello world")
    told = prompt_detail(tokenizer, ids, True, None, Logprobs([-1.0] * 2, [1] * 2)).logprobs
    assert told is not None
    assert (told.first_token_bytes, told.rest.token_bytes) == (b"<s>", [b" Hello", b" world"])
    assert told.rest.numbers.text_offsets == [0, 5]


def test_a_prompt_of_one_token(tokenizer_of: TokenizerOf) -> None:
    """It has no log probability at all, but its bytes are told."""
    told = prompt_detail(tokenizer_of(SMOLLM2), [28120], True, None, Logprobs()).logprobs
    assert told is not None
    assert told.first_token_bytes and not told.rest.token_bytes


def test_what_is_told_of_a_prompt_is_bounded() -> None:
    """More than a message can well hold is refused; the alternatives count, and the token itself."""
    check_prompt_logprobs(MAX_PROMPT_LOGPROBS, None)
    check_prompt_logprobs(MAX_PROMPT_LOGPROBS // 4, 3)
    with pytest.raises(InvalidRequest) as caught:
        check_prompt_logprobs(MAX_PROMPT_LOGPROBS // 4 + 1, 3)
    assert caught.value.param == "prompt_logprobs"
