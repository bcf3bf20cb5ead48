"""Log probabilities and what is told of a prompt, to and from their messages."""

from __future__ import annotations

from services.tokenizer.context_wire import context_report
from services.tokenizer.events import PromptDetail
from services.tokenizer.logprobs import Logprobs, TextLogprobs
from streamomni.engine.v1 import engine_pb2, sampling_pb2
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


def frame_logprobs(frame: engine_pb2.GenerateManyResponse) -> dict[int, Logprobs]:
    """Read what a frame tells of the tokens of its entries, by their positions."""
    if not frame.HasField("logprobs"):
        return {}
    columns, counts = frame.logprobs, frame.token_counts
    # Lists of the whole once: a message's own are slow to take parts of.
    logprobs, ranks = list(columns.logprobs), list(columns.ranks)
    top_token_ids, top_logprobs = list(columns.top_token_ids), list(columns.top_logprobs)
    told: dict[int, Logprobs] = {}
    begin = top_begin = 0
    for entry, top_count in zip(columns.entries, columns.top_counts, strict=True):
        end = begin + counts[entry]
        top_end = top_begin + counts[entry] * top_count
        told[entry] = Logprobs(
            logprobs[begin:end],
            ranks[begin:end],
            top_count,
            top_token_ids[top_begin:top_end],
            top_logprobs[top_begin:top_end],
        )
        begin, top_begin = end, top_end
    return told


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
