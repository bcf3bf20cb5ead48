"""The public Generate: what it answers, through both real tiers over a scripted engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2
from tests.tokenizer.engine_fixtures import (
    END,
    TextTier,
    asking,
    endless,
    running_tiers,
    sampling,
    until,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(smollm2: Path) -> AsyncIterator[TextTier]:
    """Both tiers."""
    async with running_tiers(smollm2) as tier:
        yield tier


@pytest_asyncio.fixture(loop_scope="module")
async def tier(running: TextTier) -> AsyncIterator[TextTier]:
    """Both tiers. Within 1 s of a test's end nothing is left of what it started."""
    yield running
    await until(running.idle, 1)


async def test_text_in_text_out(tier: TextTier) -> None:
    """A text prompt is encoded, the answer decoded; Started first, counts and the model's name with it."""
    answer = await tier.generate(text_pb2.GenerateRequest(text=text_pb2.TextPrompt(text="The quick brown fox")))
    ids = tier.encode("The quick brown fox")
    assert (answer.text(), answer.token_ids()) == ("The quick brown fox", [*ids, END])
    (start,) = answer.started
    assert (start.prompt_tokens, start.cached_tokens, start.model) == (len(ids), 0, "scripted")
    assert answer.finish.usage == sampling_pb2.Usage(prompt_tokens=len(ids), completion_tokens=len(ids) + 1)
    assert (answer.after_end, answer.error) == (0, None)


async def test_a_chat_in_text_out(tier: TextTier) -> None:
    """A chat reaches the engine as RenderChat shows it, and cached tokens are told."""
    message = chat_pb2.ChatMessage(role="user", text="Tell me of the quick brown fox, and of the lazy dog too.")
    chat = chat_pb2.ChatPrompt(messages=[message])
    rendered = await tier.stub.RenderChat(text_pb2.RenderChatRequest(chat=chat))
    first = await tier.generate(text_pb2.GenerateRequest(chat=chat, sampling_params=sampling(max_tokens=5)))
    assert list(tier.engine.lines.requests[-1].prompt_token_ids) == list(rendered.token_ids)
    again = await tier.generate(text_pb2.GenerateRequest(chat=chat, sampling_params=sampling(max_tokens=5)))
    assert first.finish.usage.cached_tokens == 0 < again.finish.usage.cached_tokens
    assert again.started[0].cached_tokens == again.finish.usage.cached_tokens


async def test_a_split_character_comes_whole(tier: TextTier) -> None:
    """An emoji over three tokens of three steps comes as one character, with the ids that completed it."""
    ids = tier.encode("a \N{LLAMA}b")
    answer = await tier.generate(asking(ids))
    assert [(list(delta.token_ids), delta.text) for delta in answer.deltas] == [
        (ids[:1], "a"),
        (ids[1:2], " "),
        (ids[2:4], "\N{LLAMA}"),
        (ids[4:], "b"),
        ([END], ""),
    ]


async def test_a_cut_character_is_one_replacement(tier: TextTier) -> None:
    """Where max_tokens cuts a character, the text ends with one U+FFFD."""
    ids = tier.encode("ok \N{LLAMA}")
    answer = await tier.generate(asking(ids, sampling_params=sampling(max_tokens=len(ids) - 1)))
    assert answer.text() == "ok \ufffd"
    assert answer.finish.reason == sampling_pb2.FINISH_REASON_LENGTH
    assert answer.token_ids() == ids[:-1]


@pytest.mark.parametrize("include", [False, True])
async def test_a_stop_string_ends_the_stream(tier: TextTier, include: bool) -> None:
    """The text ends before or with it, the engine stops within 1 s, the finish names it, counts agree."""
    ids = tier.encode("go on and stop there and go on")
    params = endless()
    answer = await tier.generate(
        asking(ids, stop=[" the", "never"], include_stop_str_in_output=include, sampling_params=params)
    )
    await until(tier.idle, 1)
    assert answer.text() == ("go on and stop the" if include else "go on and stop")
    assert answer.finish.reason == sampling_pb2.FINISH_REASON_STOP
    assert answer.finish.stop_string == " the"
    assert answer.token_ids() == ids[: len(answer.token_ids())] == tier.encode("go on and stop there")
    assert answer.finish.usage.completion_tokens == len(answer.token_ids())


async def test_a_stop_token_ends_the_stream(tier: TextTier) -> None:
    """A caller's stop token is named in the finish, reported as an id and not shown."""
    ids = tier.encode("one two three")
    answer = await tier.generate(asking(ids, sampling_params=sampling(stop_token_ids=[ids[1]])))
    assert (answer.text(), answer.token_ids()) == ("one", ids[:2])
    assert answer.finish.stop_token_id == ids[1]


@pytest.mark.parametrize(("include", "skip", "text"), [(False, False, "Hi"), (True, True, "Hi")])
async def test_the_end_token_is_no_text(tier: TextTier, include: bool, skip: bool, text: str) -> None:
    """It is hidden with special tokens shown too, unless the stop is asked for as well."""
    ids = tier.encode("Hi")
    answer = await tier.generate(asking(ids, include_stop_str_in_output=include, skip_special_tokens=skip))
    assert (answer.text(), answer.token_ids()) == (text, [*ids, END])
    shown = await tier.generate(asking(ids, include_stop_str_in_output=True, skip_special_tokens=False))
    assert shown.text() == "Hi<|im_end|>"


async def test_choices_are_seeded_apart(tier: TextTier) -> None:
    """N choices with one seed are n streams with seeds that follow, wrapping at 2^63; each has one finish."""
    before = len(tier.engine.lines.requests)
    answer = await tier.generate(
        asking(tier.encode("three of them"), n=3, sampling_params=sampling(seed=2**63 - 2, temperature=1.0))
    )
    seeds = [request.sampling.seed for request in tier.engine.lines.requests[before:]]
    assert seeds == [2**63 - 2, 2**63 - 1, -(2**63)]
    assert set(answer.finishes) == {0, 1, 2}
    assert {answer.text(index) for index in range(3)} == {"three of them"}
    assert (len(answer.started), answer.after_end) == (1, 0)


async def test_parameters_reach_the_engine_unchanged(tier: TextTier) -> None:
    """What the request says of sampling is what the engine gets."""
    await tier.generate(
        asking(
            tier.encode("so"),
            cache_salt="salt",
            sampling_params=sampling(
                temperature=0.0,
                top_p=0.25,
                top_k=7,
                min_p=0.125,
                presence_penalty=-0.5,
                frequency_penalty=0.5,
                repetition_penalty=1.5,
                seed=-3,
                max_tokens=4,
                min_tokens=2,
                ignore_eos=True,
                stop_token_ids=[9],
                logit_bias={11: 1.5},
            ),
        )
    )
    request = tier.engine.lines.requests[-1]
    got = request.sampling
    assert (got.temperature, got.top_p, got.top_k, got.min_p) == (0.0, 0.25, 7, 0.125)
    assert (got.presence_penalty, got.frequency_penalty, got.repetition_penalty) == (-0.5, 0.5, 1.5)
    assert (got.seed, got.max_tokens, got.min_tokens, got.ignore_eos) == (-3, 4, 2, True)
    assert (got.stop_token_ids, dict(got.logit_bias), request.cache_salt) == ((9,), {11: 1.5}, "salt")


async def test_two_requests_may_have_one_id(tier: TextTier) -> None:
    """Both are served."""
    requests = [asking(tier.encode(text), request_id="same") for text in ("first", "second")]
    answers = await asyncio.gather(*map(tier.generate, requests))
    assert [answer.text() for answer in answers] == ["first", "second"]
