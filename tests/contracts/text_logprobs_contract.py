"""The part of the text service's contract about log probabilities and what is told of a prompt."""

from __future__ import annotations

from typing import Any

import pytest

from services.chassis.errors import InvalidRequest
from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2
from tests.contracts.live_text import LiveText
from tests.contracts.text_record import Record
from tests.contracts.text_requests import TOKENS, asking

PROMPT = "The quick brown fox jumps"
CHAT = chat_pb2.ChatPrompt(messages=[chat_pb2.ChatMessage(role="user", text="four five six seven")])


def telling(logprobs: int | None = None, prompt_logprobs: int | None = None, **fields: Any) -> text_pb2.GenerateRequest:
    """A request that asks for log probabilities; special tokens are shown, so that the tokens' bytes are the text."""
    request = asking(skip_special_tokens=False, **fields)
    wanted = sampling_pb2.SamplingParams(logprobs=logprobs, prompt_logprobs=prompt_logprobs)
    request.sampling_params.MergeFrom(wanted)
    return request


async def both_ways(text: LiveText, request: text_pb2.GenerateRequest) -> list[Record]:
    """The generation on the link, and as a public call."""
    async with text.link() as link:
        record = await link.start(1, request)
        await link.end_of(record)
    return [record, await text.generate(request)]


def joined(told: list[text_pb2.TextLogprobs]) -> text_pb2.TextLogprobs:
    """What several deltas tell, as one."""
    whole = text_pb2.TextLogprobs()
    for one in told:
        whole.MergeFrom(one)
    return whole


class TextLogprobsContract:
    @pytest.mark.parametrize("prompt", [{}, {"chat": CHAT}], ids=["text", "chat"])
    @pytest.mark.parametrize("count", [0, 3])
    async def test_logprobs_belong_to_their_tokens(self, text: LiveText, count: int, prompt: dict[str, Any]) -> None:
        """Each token of each choice has a number, a rank, its own bytes and its place in the text; the bytes together
        are the text; greedily the token itself comes first of its alternatives."""
        for record in await both_ways(text, telling(count, n=2, **prompt)):
            for index in range(2):
                told = joined(record.logprobs(index))
                numbers = told.logprobs
                assert len(numbers.logprobs) == len(record.token_ids(index)) == TOKENS
                assert b"".join(told.token_bytes).decode(errors="replace") == record.text(index)
                assert all(number <= 0 for number in numbers.logprobs)
                assert set(numbers.ranks) == {1}
                assert {one.logprobs.top_count for one in record.logprobs(index)} == {count}
                assert len(numbers.top_token_ids) == count * TOKENS
                if count:
                    assert list(numbers.top_token_ids[::count]) == record.token_ids(index)
                    assert list(numbers.top_logprobs[::count]) == list(numbers.logprobs)
                    assert list(told.top_token_bytes[::count]) == list(told.token_bytes)
                    assert numbers.top_logprobs[0] >= numbers.top_logprobs[1] >= numbers.top_logprobs[2]
                assert told.text_offsets[0] == 0 and list(told.text_offsets) == sorted(told.text_offsets)
                for token, offset in zip(told.token_bytes, told.text_offsets, strict=True):
                    own = token.decode(errors="ignore")
                    # A broken character before it is replaced when this token shows that it is broken.
                    rest = record.text(index)[offset:].lstrip("\ufffd")
                    assert own.encode() != token or rest.startswith(own)

    async def test_nothing_is_told_unasked(self, text: LiveText) -> None:
        """Without the wish for them there are no log probabilities and nothing of the prompt."""
        for record in await both_ways(text, telling()):
            assert record.logprobs() == []
            assert record.started is not None
            told = {field.name for field, _ in record.started.ListFields()}
            assert told <= {"prompt_tokens", "cached_tokens", "model"}

    async def test_a_stop_string_ends_them_too(self, text: LiveText) -> None:
        """Also with text held back each id has its log probability in the delta of the id, and none comes of
        a token after the stop."""
        whole = (await text.generate(telling())).text()
        stop = whole[len(whole) // 2 :][:5]
        for record in await both_ways(text, telling(1, stop=[stop])):
            assert record.finishes[0].stop_string == stop
            assert len(joined(record.logprobs()).token_bytes) == len(record.token_ids()) < TOKENS
            assert len(record.logprobs()) == sum(bool(token_ids) for _, token_ids, _ in record.entries)

    @pytest.mark.parametrize("count", [0, 2])
    async def test_the_prompt_is_told(self, text: LiveText, count: int) -> None:
        """Its text where echo asks for it, and of each of its tokens but the first the number; the bytes of all
        are its text. The answer is the same as without."""
        alone = await text.generate(telling())
        for record in await both_ways(text, telling(None, count, echo=True)):
            started = record.started
            assert started is not None and started.prompt_text == PROMPT
            told = started.prompt_logprobs
            assert len(told.logprobs.logprobs) == len(told.token_bytes) == started.prompt_tokens - 1
            assert len(told.logprobs.top_token_ids) == count * (started.prompt_tokens - 1)
            assert started.prompt_first_token_bytes + b"".join(told.token_bytes) == PROMPT.encode()
            assert list(told.text_offsets) == [
                len((started.prompt_first_token_bytes + b"".join(told.token_bytes[:before])).decode())
                for before in range(len(told.token_bytes))
            ]
            assert (record.text(), record.token_ids()) == (alone.text(), alone.token_ids())

    @pytest.mark.parametrize(
        ("request_", "param"),
        [
            (telling(21), "logprobs"),
            (telling(None, 21), "prompt_logprobs"),
            (asking(echo=True, chat=CHAT), "echo"),
            (asking(echo=True, text=text_pb2.TextPrompt(text="a", suffix="b")), "echo"),
            (asking(text=text_pb2.TextPrompt(text="a", suffix="b")), "suffix"),
        ],
        ids=["logprobs", "prompt logprobs", "echo of a chat", "echo with a suffix", "suffix without tokens for it"],
    )
    async def test_what_cannot_be_told_is_refused(
        self, text: LiveText, request_: text_pb2.GenerateRequest, param: str
    ) -> None:
        """It fails by its field, before anything else came."""
        for record in await both_ways(text, request_):
            assert type(record.error) is InvalidRequest and record.error.param == param
            assert (record.started, record.entries) == (None, [])
