"""What every engine behind the port does. One suite, run over each implementation.

A test class inherits `EngineContract` and provides the fixture `live`: an engine
with `Shape`'s defaults, that is a context of 2048 tokens, 64 places and the end
tokens 2 and 5.
"""

from __future__ import annotations

import pytest

from services.chassis.errors import InvalidRequest
from services.engine.port import Finish, FinishReason, Logprobs
from tests.contracts.abort_contract import AbortContract
from tests.contracts.contract_requests import END_TOKEN, ENDLESS, GREEDY, SECOND_END_TOKEN, SEEDED, changed, prompt
from tests.contracts.live_engine import LiveEngine


def assert_columns(logprobs: Logprobs, token_ids: list[int], count: int) -> None:
    """The columns fit the tokens, and the alternatives agree with the tokens' own figures."""
    assert logprobs.top_count == count
    assert len(logprobs.logprobs) == len(logprobs.ranks) == len(token_ids)
    assert len(logprobs.top_token_ids) == len(logprobs.top_logprobs) == count * len(token_ids)
    for row, (token_id, own, rank) in enumerate(zip(token_ids, logprobs.logprobs, logprobs.ranks, strict=True)):
        top = logprobs.top_logprobs[row * count : (row + 1) * count]
        assert own <= 0.0 and rank >= 1
        assert top == sorted(top, reverse=True)
        if rank <= count:
            assert logprobs.top_token_ids[row * count + rank - 1] == token_id
            assert top[rank - 1] == pytest.approx(own, abs=1e-4)


class EngineContract(AbortContract):
    async def test_limits_are_the_models(self, live: LiveEngine) -> None:
        """The limits tell the served context and vocabulary, and that this engine refuses priorities."""
        limits = live.engine.limits
        assert (limits.context_length, limits.vocab_size, limits.max_logprobs) == (2048, 49152, 20)
        assert limits.supports_priority is False

    async def test_greedy_tokens_do_not_depend_on_company(self, live: LiveEngine) -> None:
        """At temperature 0 a prompt gives the same tokens alone, and among others in any order."""
        alone = [(await live.generate(prompt(number), GREEDY)).token_ids for number in range(6)]
        order = [3, 5, 0, 4, 1, 2]
        together = [live.start(prompt(number), GREEDY) for number in order]
        for number, record in zip(order, together, strict=True):
            assert (await live.end_of(record)).token_ids == alone[number]
        assert len(set(map(tuple, alone))) == len(alone)

    async def test_prefilled_comes_first_and_finish_last(self, live: LiveEngine) -> None:
        """The first output alone tells of the prompt, the last alone of the end, and nothing follows it."""
        records = [live.start(prompt(number), changed(GREEDY, max_tokens=3 + number)) for number in range(8)]
        for record in records:
            await live.end_of(record)
        await live.generate(prompt(90), GREEDY)
        for record in records:
            assert [output.prefilled is not None for output in record.outputs].count(True) == 1
            assert record.outputs[0].prefilled is not None
            assert [output.finish is not None for output in record.outputs].count(True) == 1
            assert record.outputs[-1].finish is not None
            assert not any(output.failed for output in record.outputs)

    @pytest.mark.parametrize("count", [1, 2, 17])
    async def test_max_tokens_is_exact(self, live: LiveEngine, count: int) -> None:
        """A generation without another end has max_tokens tokens and ends by length."""
        record = await live.generate(prompt(1), changed(GREEDY, max_tokens=count))
        assert len(record.token_ids) == count
        assert record.finish == Finish(FinishReason.LENGTH)

    @pytest.mark.parametrize("room", [1, 5])
    async def test_without_max_tokens_the_context_ends_it(self, live: LiveEngine, room: int) -> None:
        """The tokens of prompt and output together reach the context's length and no further."""
        record = await live.generate(prompt(2, 2048 - room), ENDLESS)
        assert len(record.token_ids) == room
        assert record.finish == Finish(FinishReason.LENGTH)

    async def test_stop_token_ends_and_is_told(self, live: LiveEngine) -> None:
        """The first stop token is the last token given, and the finish names it."""
        free = (await live.generate(prompt(3), GREEDY)).token_ids
        record = await live.generate(prompt(3), changed(GREEDY, stop_token_ids=(7, free[6], free[4])))
        first = min(free.index(free[4]), free.index(free[6]))
        assert record.token_ids == free[: first + 1]
        assert record.finish == Finish(FinishReason.STOP, free[first])

    @pytest.mark.parametrize("end_token", [END_TOKEN, SECOND_END_TOKEN])
    async def test_end_token_ends_unless_ignored(self, live: LiveEngine, end_token: int) -> None:
        """Each of the model's end tokens ends a generation, without the name of a stop token; ignore_eos goes on."""
        sampling = changed(GREEDY, allowed_token_ids=(end_token,), ignore_eos=False)
        record = await live.generate(prompt(4), sampling)
        assert record.token_ids == [end_token]
        assert record.finish == Finish(FinishReason.STOP)
        ignored = await live.generate(prompt(4), changed(sampling, ignore_eos=True))
        assert ignored.token_ids == [end_token] * 12
        assert ignored.finish == Finish(FinishReason.LENGTH)

    async def test_wanted_second_end_token_is_told(self, live: LiveEngine) -> None:
        """An end token that the request itself lists as a stop token is named as one, also with ignore_eos."""
        for ignore_eos in (False, True):
            sampling = changed(GREEDY, allowed_token_ids=(SECOND_END_TOKEN,), stop_token_ids=(SECOND_END_TOKEN,))
            record = await live.generate(prompt(4), changed(sampling, ignore_eos=ignore_eos))
            assert record.token_ids == [SECOND_END_TOKEN]
            assert record.finish.reason is FinishReason.STOP
            if ignore_eos:
                assert record.finish.stop_token_id == SECOND_END_TOKEN

    async def test_min_tokens_holds_ends_back(self, live: LiveEngine) -> None:
        """End and stop tokens are not generated before min_tokens."""
        sampling = changed(GREEDY, min_tokens=4, ignore_eos=False, logit_bias={END_TOKEN: 100.0})
        record = await live.generate(prompt(5), sampling)
        assert len(record.token_ids) == 5
        assert END_TOKEN not in record.token_ids[:4]
        assert record.finish == Finish(FinishReason.STOP)

    @pytest.mark.parametrize("count", [0, 3, 20])
    async def test_logprobs_come_in_columns(self, live: LiveEngine, count: int) -> None:
        """Each output carries its tokens' log probabilities with `count` alternatives a token."""
        for sampling in (GREEDY, SEEDED):
            record = await live.generate(prompt(6), changed(sampling, logprobs=count))
            assert len(record.token_ids) == sampling.max_tokens
            for output in record.outputs:
                assert output.logprobs is not None
                assert_columns(output.logprobs, list(output.token_ids), count)

    @pytest.mark.parametrize("count", [0, 4])
    async def test_prompt_logprobs_come_with_the_first_output(self, live: LiveEngine, count: int) -> None:
        """Prompt log probabilities are those from the second token on, also when the prompt is in the cache."""
        ids = prompt(7, 300)
        for _ in range(2):
            record = await live.generate(ids, changed(GREEDY, prompt_logprobs=count))
            prefilled = record.outputs[0].prefilled
            assert prefilled is not None and prefilled.prompt_logprobs is not None
            assert_columns(prefilled.prompt_logprobs, ids[1:], count)
        assert record.outputs[0].logprobs is None
        plain = (await live.generate(ids, GREEDY)).outputs[0].prefilled
        assert plain is not None and plain.prompt_logprobs is None

    async def test_prefix_cache_is_told_and_salted(self, live: LiveEngine) -> None:
        """A repeated prompt is found in the cache but for its last part, and only under the same salt."""
        ids = prompt(8, 400)
        assert (await live.generate(ids, GREEDY)).cached_tokens == 0
        assert 0 < (await live.generate(ids, GREEDY)).cached_tokens < len(ids)
        assert (await live.generate(ids, GREEDY, cache_salt="tenant")).cached_tokens == 0
        assert (await live.generate(ids, GREEDY, cache_salt="tenant")).cached_tokens > 0

    async def test_load_is_zero_after_the_last_finish(self, live: LiveEngine) -> None:
        """Within 1 s of the last finish the engine reports that nothing runs, waits or holds memory."""
        records = [live.start(prompt(number), GREEDY) for number in range(4)]
        for record in records:
            await live.end_of(record)
        assert await live.until(live.idle, 1.0)

    async def test_seeded_long_prompts_at_once(self, live: LiveEngine) -> None:
        """64 seeded requests with long prompts at once leave the engine alive, and a seed gives its tokens again."""
        sampling = changed(SEEDED, max_tokens=4)

        async def all_at_once() -> list[list[int]]:
            records = [
                live.start(prompt(100 + number, 500 + number), changed(sampling, seed=number)) for number in range(64)
            ]
            return [(await live.end_of(record)).token_ids for record in records]

        first = await all_at_once()
        assert await all_at_once() == first
        assert all(len(token_ids) == 4 for token_ids in first)
        for number in (0, 20, 63):
            alone = await live.generate(prompt(100 + number, 500 + number), changed(sampling, seed=number))
            assert alone.token_ids == first[number]

    @pytest.mark.parametrize("seed", [-1, 0, 2**63 - 1, -(2**63)])
    async def test_every_seed_is_repeatable(self, live: LiveEngine, seed: int) -> None:
        """Any 64-bit seed, -1 included, gives its tokens again, and another seed gives others."""
        sampling = changed(SEEDED, seed=seed, max_tokens=12)
        first, again = [(await live.generate(prompt(13), sampling)).token_ids for _ in range(2)]
        other = (await live.generate(prompt(13), changed(sampling, seed=5))).token_ids
        assert first == again != other

    async def test_biases_and_allowed_tokens_are_obeyed(self, live: LiveEngine) -> None:
        """A large bias forces its token, a low one bans it, and allowed tokens are the only ones."""
        free = (await live.generate(prompt(14), GREEDY)).token_ids
        forced = await live.generate(prompt(14), changed(GREEDY, logit_bias={777: 100.0}))
        assert forced.token_ids == [777] * 12
        banned = await live.generate(prompt(14), changed(GREEDY, logit_bias={free[0]: -100.0}))
        assert free[0] not in banned.token_ids
        allowed = await live.generate(prompt(14), changed(SEEDED, max_tokens=40, allowed_token_ids=(10, 11, 12)))
        assert set(allowed.token_ids) <= {10, 11, 12}
        assert len(allowed.token_ids) == 40

    @pytest.mark.parametrize(
        ("length", "changes"),
        [
            (2048, {}),
            (0, {}),
            (20, {"temperature": -1.0}),
            (20, {"logit_bias": {49152: 1.0}}),
            (20, {"allowed_token_ids": (49152,)}),
        ],
    )
    async def test_refused_requests_leave_it_alive(
        self, live: LiveEngine, length: int, changes: dict[str, object]
    ) -> None:
        """What the engine's library refuses raises InvalidRequest in one line, and others are served on."""
        other = live.start(prompt(15), GREEDY)
        with pytest.raises(InvalidRequest) as refusal:
            live.start(prompt(16, length), changed(GREEDY, **changes))
        assert "\n" not in refusal.value.message
        assert len((await live.end_of(other)).token_ids) == 12

    @pytest.mark.parametrize(
        "changes",
        [
            {"temperature": 1e-9},
            {"temperature": 2.0, "top_p": 5e-324},
            {"temperature": 1.0, "top_k": 2**31 - 1, "min_p": 1.0},
            {"temperature": 1.0, "repetition_penalty": 5e-324},
            {"temperature": 1.0, "allowed_token_ids": (END_TOKEN,), "min_tokens": 4, "ignore_eos": False},
            {"temperature": 1.0, "logit_bias": dict.fromkeys(range(1024), -100.0)},
            {"temperature": 1.0, "presence_penalty": -2.0, "frequency_penalty": 2.0, "repetition_penalty": 2.0},
            {"stop_token_ids": tuple(range(10_000, 11_024)), "min_tokens": 12},
        ],
    )
    async def test_extreme_values_leave_it_alive(self, live: LiveEngine, changes: dict[str, object]) -> None:
        """Requests at the edges of the allowed ranges end, and the engine serves on."""
        extreme = live.start(prompt(17), changed(GREEDY, **changes))
        other = live.start(prompt(18), GREEDY)
        assert len((await live.end_of(other)).token_ids) == 12
        await live.end_of(extreme)
        assert all(0 <= token_id < 49152 for token_id in extreme.token_ids)
        assert len((await live.generate(prompt(18), GREEDY)).token_ids) == 12
