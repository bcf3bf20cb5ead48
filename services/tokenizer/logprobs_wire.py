"""Log probabilities and what is told of a prompt, to and from their messages."""

from __future__ import annotations

from services.tokenizer.context_wire import context_report
from services.tokenizer.events import PromptDetail
from services.tokenizer.logprobs import Logprobs, TextLogprobs
from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import text_pb2


def logprobs_of(message: sampling_pb2.Logprobs) -> Logprobs:
    """Read what the engine tells of a run of tokens."""
    return Logprobs(
        list(message.logprobs),
        list(message.ranks),
        message.top_count,
        list(message.top_token_ids),
        list(message.top_logprobs),
    )


def fill_text_logprobs(message: text_pb2.TextLogprobs, logprobs: TextLogprobs) -> None:
    """Put those of a run of tokens into an empty message; protobuf would copy one that is given whole."""
    numbers, columns = logprobs.numbers, message.logprobs
    columns.logprobs.extend(numbers.logprobs)
    columns.ranks.extend(numbers.ranks)
    columns.top_count = numbers.top_count
    columns.top_token_ids.extend(numbers.top_token_ids)
    columns.top_logprobs.extend(numbers.top_logprobs)
    message.token_bytes.extend(logprobs.token_bytes)
    message.top_token_bytes.extend(logprobs.top_token_bytes)
    message.text_offsets.extend(numbers.text_offsets)


def started(model: str, prompt_tokens: int, cached_tokens: int, prompt: PromptDetail | None) -> text_pb2.Started:
    """The event that a generation has begun."""
    message = text_pb2.Started(prompt_tokens=prompt_tokens, cached_tokens=cached_tokens, model=model)
    if prompt is None:
        return message
    if prompt.text is not None:
        message.prompt_text = prompt.text
    if prompt.logprobs is not None:
        message.prompt_first_token_bytes = prompt.logprobs.first_token_bytes
        fill_text_logprobs(message.prompt_logprobs, prompt.logprobs.rest)
    if prompt.context is not None:
        message.context.CopyFrom(context_report(prompt.context))
    return message
