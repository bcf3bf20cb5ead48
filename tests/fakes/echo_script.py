"""The script that says the prompt back, with all that a text service may be asked to tell beside it."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator
from typing import Any

from services.chassis.errors import InvalidRequest
from services.tokenizer.events import Parsed
from services.tokenizer.output_parsers.port import Content, Part, Reasoning, ToolCallPiece
from services.tokenizer.output_parsers.selection import OutputFormat
from services.tokenizer.stop_strings import StopStrings
from services.tokenizer.tool_use import ToolUse
from services.tokenizer.tools_wire import pieces, tool_use
from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import text_pb2
from tests.fakes.schema_instance import instance
from tests.fakes.text_events import CONTEXT_LENGTH, PROMPT_TOKENS, Event, finished, prompt_text, started

_FORMAT = OutputFormat("hermes", "think")
_LOGPROB = -0.5
# Characters of a token where a schema says what comes.
_PIECE = 5


async def echo(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
    """Say the prompt back, a word a token, in every choice; with ignore_eos again and again.

    Tools that must be called are: the answer is then the first that their schemas allow. A chat's answer is taken
    apart as Hermes' calls and reasoning between `<think>` tags.

    Raises:
        InvalidRequest: there is a suffix, for which the scripted model has no tokens.
    """
    if request.text.HasField("suffix"):
        raise InvalidRequest(
            "the model has no tokens for a suffix; leave it out", param="suffix", reason="NO_FILL_IN_THE_MIDDLE"
        )
    use = tool_use(request.chat)
    schema = use.json_schema()
    words = [f"{word} " for word in prompt_text(request).split()] if schema is None else _forced(schema)
    sampling = request.sampling_params
    choices = [_Choice(index, request, use) for index in range(request.n if request.HasField("n") else 1)]
    most = sampling.max_tokens if sampling.HasField("max_tokens") else CONTEXT_LENGTH - PROMPT_TOKENS
    reason, tokens = sampling_pb2.FINISH_REASON_STOP, 0
    matched: dict[str, Any] = {}
    yield _started(request)
    goes_on = sampling.ignore_eos and schema is None
    for token_id, word in itertools.cycle(enumerate(words)) if goes_on else enumerate(words):
        stopped = token_id in sampling.stop_token_ids
        for choice in choices:
            yield choice.delta(token_id, word, stopped and not request.include_stop_str_in_output)
        tokens += 1
        if choices[0].over:
            break
        if stopped or choices[0].stop is not None:
            matched = {"stop_token_id": token_id} if choices[0].stop is None else {"stop_string": choices[0].stop}
            break
        if tokens == most:
            reason = sampling_pb2.FINISH_REASON_LENGTH
            break
        if tokens >= len(words):
            # What goes on and on does so at the pace of a model.
            await asyncio.sleep(0.001)
    for choice in choices:
        rest = choice.rest()
        if rest.text or rest.reasoning or rest.tool_calls:
            yield rest
        called = choice.called and reason == sampling_pb2.FINISH_REASON_STOP
        end = sampling_pb2.FINISH_REASON_TOOL_CALLS if called else reason
        yield finished(tokens, choice.index, end, choice.reasoning_tokens, **matched)


class _Choice:
    """One choice's answer as it is said."""

    def __init__(self, index: int, request: text_pb2.GenerateRequest, use: ToolUse) -> None:
        is_chat = request.WhichOneof("prompt") == "chat"
        new_parser = _FORMAT.parsers(use, reasoning_opened=False) if is_chat else None
        sampling = request.sampling_params
        self._parser = None if new_parser is None else new_parser()
        self._matcher = StopStrings(request.stop).matcher(request.include_stop_str_in_output)
        self._alternatives = sampling.logprobs if sampling.HasField("logprobs") else None
        self._one_call = not use.parallel
        self._characters = 0
        self._reasoning_tokens = 0
        self._reasoned = self._answered = False
        self.index = index
        self.stop: str | None = None
        self.called = False
        # Where a second call begins and one is allowed.
        self.over = False

    @property
    def reasoning_tokens(self) -> int:
        """Tokens before the answer, where there was reasoning."""
        return self._reasoning_tokens if self._reasoned else 0

    def delta(self, token_id: int, word: str, hidden: bool) -> text_pb2.Delta:
        """Say a token."""
        logprobs = None
        if self._alternatives is not None:
            logprobs = _logprobs([word], [token_id], [self._characters], self._alternatives)
        self._characters += len(word)
        parts: list[Part] = []
        if not hidden:
            parts = [Content(word)] if self._parser is None else self._parser.feed(word)
        delta = self._sorted(parts)
        self._reasoning_tokens += not self._answered
        delta.token_ids.append(token_id)
        if logprobs is not None:
            delta.logprobs.CopyFrom(logprobs)
        return delta

    def rest(self) -> text_pb2.Delta:
        """What was held back."""
        ended = self.over or self.stop is not None
        delta = self._sorted([] if self._parser is None or ended else self._parser.flush())
        if self.stop is None:
            delta.text += self._matcher.flush()
        return delta

    def _sorted(self, parts: list[Part]) -> text_pb2.Delta:
        delta = text_pb2.Delta(index=self.index)
        for part in parts:
            self._reasoned |= isinstance(part, Reasoning)
            self._answered |= not isinstance(part, Reasoning)
            if isinstance(part, Reasoning):
                delta.reasoning += part.text
            elif isinstance(part, ToolCallPiece):
                self.called = True
                self.over |= self._one_call and part.index > 0
                if self.over:
                    break
                delta.tool_calls.extend(pieces(Parsed("", [part])))
            elif self.stop is None:
                result = self._matcher.feed(part.text)
                delta.text += result.text
                self.stop = result.match.stop if result.match is not None else None
        return delta


def _forced(schema: str) -> list[str]:
    text = json.dumps(instance(json.loads(schema)))
    return [text[begin : begin + _PIECE] for begin in range(0, len(text), _PIECE)]


def _started(request: text_pb2.GenerateRequest) -> text_pb2.Started:
    event, text = started(request), prompt_text(request)
    if request.echo:
        event.prompt_text = text
    sampling = request.sampling_params
    if sampling.HasField("prompt_logprobs"):
        begins = [len(text) * token // PROMPT_TOKENS for token in range(PROMPT_TOKENS + 1)]
        words = [text[begin:end] for begin, end in itertools.pairwise(begins)]
        told = _logprobs(words[1:], list(range(1, PROMPT_TOKENS)), begins[1:-1], sampling.prompt_logprobs)
        event.prompt_logprobs.CopyFrom(told)
        event.prompt_first_token_bytes = words[0].encode()
    return event


def _logprobs(words: list[str], token_ids: list[int], offsets: list[int], alternatives: int) -> text_pb2.TextLogprobs:
    """Every token is the likeliest of those told."""
    places = [(token_id, place) for token_id in token_ids for place in range(alternatives)]
    likeliest = [word.encode() for word in words for _ in range(alternatives)]
    return text_pb2.TextLogprobs(
        logprobs=sampling_pb2.Logprobs(
            logprobs=[_LOGPROB] * len(words),
            ranks=[1] * len(words),
            top_count=alternatives,
            top_token_ids=[token_id + place for token_id, place in places],
            top_logprobs=[_LOGPROB - place for _, place in places],
        ),
        token_bytes=[word.encode() for word in words],
        top_token_bytes=[own if place == 0 else b"?" for own, (_, place) in zip(likeliest, places, strict=True)],
        text_offsets=offsets,
    )
