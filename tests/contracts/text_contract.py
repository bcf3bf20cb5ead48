"""What every `TextService` does for the frontend. One suite, run over each implementation.

A test class inherits `TextContract` and provides the fixture `text`: a service with one model, which says something of
its own for each prompt, the same each time at temperature 0, and goes on for at least 2000 tokens with ignore_eos.
"""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import grpc.aio
import pytest

from services.chassis.errors import InvalidRequest, NotFound, ServiceError
from streamomni.engine.v1 import models_pb2, sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2
from tests.contracts.live_text import SERVICE, SERVING, LiveText
from tests.contracts.text_leaving_contract import TextLeavingContract
from tests.contracts.text_logprobs_contract import TextLogprobsContract
from tests.contracts.text_record import Record
from tests.contracts.text_requests import TOKENS, asking, endless
from tests.contracts.text_tools_contract import TextToolsContract

LENGTH, STOP = sampling_pb2.FINISH_REASON_LENGTH, sampling_pb2.FINISH_REASON_STOP
CHAT = chat_pb2.ChatPrompt(messages=[chat_pb2.ChatMessage(role="user", text="four five six seven")])
PROMPTS: list[dict[str, Any]] = [
    {"text": text_pb2.TextPrompt(text="The quick brown fox jumps over the lazy dog")},
    {"tokens": text_pb2.TokenPrompt(token_ids=[500, 501, 502, 503])},
    {"chat": CHAT},
]


def assert_same(one: Record, other: Record) -> None:
    """Two generations gave the same text, ids and ends."""
    assert (one.error, other.error) == (None, None)
    assert one.n == other.n
    for index in range(one.n):
        assert one.text(index) == other.text(index)
        assert one.token_ids(index) == other.token_ids(index)
        assert one.finishes[index].reason == other.finishes[index].reason
        assert one.finishes[index].usage.completion_tokens == other.finishes[index].usage.completion_tokens


class TextContract(TextLeavingContract, TextLogprobsContract, TextToolsContract):
    @pytest.mark.parametrize("prompt", PROMPTS, ids=["text", "tokens", "chat"])
    async def test_link_and_call_give_the_same(self, text: LiveText, prompt: dict[str, Any]) -> None:
        """Whatever the kind of prompt: the link's deltas put together are the text and ids of the public call."""
        request = asking(model=text.model, **prompt)
        alone = await text.generate(request)
        async with text.link() as link:
            record = await link.start(1, request)
            await link.end_of(record)
        assert_same(record, alone)
        assert record.started is not None and record.started.model == text.model
        assert record.started.prompt_tokens > 0
        assert record.text()

    async def test_a_model_without_a_name_is_the_only_one(self, text: LiveText) -> None:
        """An empty model name asks the only model, and its own name is told."""
        for request in (asking(), asking(model=text.model)):
            started = (await text.generate(request)).started
            assert started is not None and started.model == text.model

    async def test_many_generations_share_the_link(self, text: LiveText) -> None:
        """16 generations at once under one request id, with numbers in no order: each gets its own text, whole."""
        requests = {7 * number % 16 + 2**40: f"number {number} says {number} more words" for number in range(16)}
        async with text.link() as link:
            records = {
                words: await link.start(stream_id, asking(words, request_id="same"))
                for stream_id, words in requests.items()
            }
            await link.end_of(*records.values())
        for words in list(records)[::5]:
            assert_same(records[words], await text.generate(asking(words)))
        assert len({record.text() for record in records.values()}) == 16

    async def test_three_choices(self, text: LiveText) -> None:
        """n = 3: one start, three texts, three ends with counts of their own; another generation has one."""
        async with text.link() as link:
            three = await link.start(1, asking(n=3))
            one = await link.start(2, asking())
            await link.end_of(three, one)
        assert_same(three, await text.generate(asking(n=3)))
        assert set(three.finishes) == {0, 1, 2}
        assert [three.text(index) for index in range(3)] == [one.text()] * 3
        assert sum(finish.usage.completion_tokens for finish in three.finishes.values()) == 3 * TOKENS

    @pytest.mark.parametrize("count", [1, 2, 17])
    async def test_max_tokens_is_exact(self, text: LiveText, count: int) -> None:
        """An answer without another end has max_tokens tokens and ends by length."""
        record = await text.generate(asking(max_tokens=count))
        assert len(record.token_ids()) == count
        assert record.finishes[0].reason == LENGTH
        assert record.finishes[0].WhichOneof("matched_stop") is None

    async def test_stop_token(self, text: LiveText) -> None:
        """The first stop token is the last token given, without its text, and the finish names it."""
        free = await text.generate(asking())
        ids = free.token_ids()
        request = asking()
        request.sampling_params.stop_token_ids.extend([ids[2], ids[4]])
        record = await text.generate(request)
        first = min(ids.index(ids[2]), ids.index(ids[4]))
        assert record.token_ids() == ids[: first + 1]
        assert (record.finishes[0].reason, record.finishes[0].stop_token_id) == (STOP, ids[first])
        shorter = await text.generate(asking(max_tokens=first))
        assert record.text() == shorter.text()

    @pytest.mark.parametrize("include", [False, True])
    @pytest.mark.parametrize(
        "pieces", [[(0, 4)], [(0, 9), (2, 5)], [(0, 5), (2, 5)]], ids=["one", "within", "together"]
    )
    async def test_stop_strings(self, text: LiveText, pieces: list[tuple[int, int]], include: bool) -> None:
        """The stop that is completed first, the longest of several, ends text, ids and counts. It is told, and shown
        only if asked for."""
        free = await text.generate(asking())
        whole = free.text()
        middle = len(whole) // 2
        stops = [whole[middle + begin : middle + end] for begin, end in pieces]
        end, length = min((whole.index(stop) + len(stop), -len(stop)) for stop in stops)
        request = asking(stop=stops, include_stop_str_in_output=include, n=2)
        async with text.link() as link:
            record = await link.start(1, request)
            await link.end_of(record)
        assert_same(record, await text.generate(request))
        for index in range(2):
            assert record.text(index) == whole[: end if include else end + length]
            assert record.finishes[index].reason == STOP
            assert record.finishes[index].stop_string == whole[end + length : end]
            ids = record.token_ids(index)
            assert 0 < len(ids) < TOKENS and ids == free.token_ids()[: len(ids)]

    async def test_held_back_text_is_flushed(self, text: LiveText) -> None:
        """Where the answer ends within the beginning of a stop string, nothing is missing and no stop is told."""
        free = await text.generate(asking())
        record = await text.generate(asking(stop=[f"{free.text()[-3:]}\N{LLAMA}"]))
        assert_same(record, free)
        assert record.finishes[0].WhichOneof("matched_stop") is None

    @pytest.mark.parametrize(
        ("request_", "kind", "param", "reason"),
        [
            (asking(model="no-such-model"), NotFound, "model", "MODEL_NOT_FOUND"),
            (text_pb2.GenerateRequest(), InvalidRequest, "prompt", "INVALID_REQUEST"),
            (asking(n=0), InvalidRequest, "n", "INVALID_REQUEST"),
            (asking(n=129), InvalidRequest, "n", "INVALID_REQUEST"),
            (asking(stop=[""]), InvalidRequest, "stop", "INVALID_REQUEST"),
            (asking(stop=list("abcde")), InvalidRequest, "stop", "INVALID_REQUEST"),
        ],
        ids=["model", "prompt", "no choice", "choices", "empty stop", "stops"],
    )
    async def test_a_refused_request_harms_itself_only(
        self,
        text: LiveText,
        request_: text_pb2.GenerateRequest,
        kind: type[ServiceError],
        param: str,
        reason: str,
    ) -> None:
        """It fails with its class, field and reason before anything else came of it, on the link and as a call; those
        before and behind it on the link are served."""
        async with text.link() as link:
            before = await link.start(1, asking())
            refused = await link.start(2, request_)
            behind = await link.start(3, asking())
            await link.end_of(before, refused, behind)
        for record in (refused, await text.generate(request_)):
            assert type(record.error) is kind
            assert (record.error.param, record.error.reason) == (param, reason)
            assert (record.started, record.entries, record.finishes) == (None, [], {})
        assert_same(before, behind)

    async def test_a_live_number_is_not_given_again(self, text: LiveText) -> None:
        """The second start of a live number fails, with it ends the first, and others go on."""
        async with text.link() as link:
            twice, other = await link.start(1, endless()), await link.start(2, endless())
            await link.until(lambda: twice.entries and other.entries)
            await link.start(1, asking())
            await link.end_of(twice)
            assert type(twice.error) is InvalidRequest and twice.error.param == "stream_id"
            # What came of the number after its failure would break a rule.
            await link.end_of(await link.start(3, asking()))
            assert not other.over

    async def test_commands_in_one_message(self, text: LiveText) -> None:
        """Commands of a batch are carried out in order: what is started and cancelled in it gives nothing more."""
        async with text.link() as link:
            first, second = await link.start_together(1, [asking(), endless()], cancelled=[2])
            await link.end_of(first)
            await link.end_of(await link.start(3, asking()))
            assert not second.entries and not second.over

    async def test_a_command_of_no_kind_ends_the_link(self, text: LiveText) -> None:
        """A command that is neither a start nor a cancel is refused, not passed over."""
        call = text.stub.GenerateMany(iter([text_pb2.GenerateManyRequest()]))
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await anext(aiter(call))
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    async def test_models_are_listed_and_watched(self, text: LiveText) -> None:
        """The first list of a watch comes at once and is that of the unary call: one model, ready, with its limits."""
        watch = text.stub.WatchModels(text_pb2.WatchModelsRequest())
        try:
            async with asyncio.timeout(1):
                watched = (await anext(aiter(watch))).models
        finally:
            watch.cancel()
        listed = (await text.stub.ListModels(text_pb2.ListModelsRequest())).models
        for model in (*watched, *listed):
            # It may have changed between the two.
            model.ClearField("load")
        assert list(watched) == list(listed)
        (model,) = listed
        assert (model.name, model.state) == (text.model, models_pb2.MODEL_STATE_READY)
        assert model.created_unix_s > 0 and model.limits.context_length > 0 and model.limits.vocab_size > 0

    async def test_health_is_serving(self, text: LiveText) -> None:
        """The server and the service are told as SERVING."""
        assert await text.health("") == await text.health(SERVICE) == SERVING
