"""What a caller asked to be told of the prompt: its text, and its tokens' log probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from services.chassis.errors import InvalidRequest
from services.tokenizer.events import PromptDetail
from services.tokenizer.logprobs import Logprobs, PromptLogprobs, with_bytes
from services.tokenizer.text_tokenizer import TextTokenizer

Echo = Callable[[TextTokenizer, Sequence[int]], str]
"""Gives the text of a prompt from its token ids."""

# They travel in one message, and a link that carries more than its bound at once ends for all.
MAX_PROMPT_LOGPROBS = 2**19


def check_prompt_logprobs(prompt_tokens: int, alternatives: int | None) -> None:
    """Check that what is asked of a prompt can be told.

    Raises:
        InvalidRequest: it is too much.
    """
    if alternatives is not None and (count := prompt_tokens * (alternatives + 1)) > MAX_PROMPT_LOGPROBS:
        raise InvalidRequest(
            f"the prompt's {prompt_tokens} tokens with {alternatives} alternatives each make {count} log probabilities;"
            f" at most {MAX_PROMPT_LOGPROBS} are allowed; ask for fewer alternatives or shorten the prompt",
            param="prompt_logprobs",
        )


def prompt_detail(
    tokenizer: TextTokenizer,
    prompt_token_ids: Sequence[int],
    skip_special_tokens: bool,
    echo: Echo | None,
    logprobs: Logprobs | None,
) -> PromptDetail:
    """Gather what is told of a prompt of at least one token.

    Args:
        logprobs: of the tokens from the second on; None where nobody asked. They get their text offsets here.
    """
    text = None if echo is None else echo(tokenizer, prompt_token_ids)
    if logprobs is None:
        return PromptDetail(text, None)
    offsets = _text_offsets(tokenizer, prompt_token_ids, skip_special_tokens)
    logprobs.text_offsets = offsets[1:]
    first, rest = prompt_token_ids[0], prompt_token_ids[1:]
    first_bytes = tokenizer.table.token_bytes.get(first, b"")
    return PromptDetail(text, PromptLogprobs(first_bytes, with_bytes(tokenizer.table, rest, logprobs)))


def _text_offsets(tokenizer: TextTokenizer, token_ids: Sequence[int], skip_special_tokens: bool) -> list[int]:
    decoder = tokenizer.decoder((), skip_special_tokens)
    offsets, characters = [], 0
    for token_id in token_ids:
        offsets.append(characters)
        characters += len(decoder.feed([token_id]))
    return offsets
