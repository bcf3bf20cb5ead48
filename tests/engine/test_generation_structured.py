"""Generations with a structured output, which is compiled before the engine gets the request."""

from __future__ import annotations

import asyncio

import pytest

from services.chassis.errors import DeadlineExceeded, InternalError, InvalidRequest, Unsupported
from services.engine.port import Finish, FinishReason, Output, Sampling, Step
from services.engine.structured_output import Choice, Regex, StructuredOutput
from tests.chassis.waiting import until
from tests.engine.recording_sink import RecordingSink
from tests.engine.served_generations import served

YES = Sampling(structured_output=Choice(("yes",)))


async def test_output_is_the_choice() -> None:
    """Each of n choices says what the constraint forces, and ends."""
    async with served() as tier:
        sink = tier.start(YES, n=2)
        await until(lambda: len(sink.finishes) == 2, 1.0)
        for index in (0, 1):
            assert bytes(sink.token_ids[index][:-1]) == b"yes"
            assert sink.finishes[index][0] == Finish(FinishReason.STOP)
        await tier.assert_idle()


async def test_others_go_on_meanwhile() -> None:
    """A request that is started after one that is being compiled is served before it."""
    async with served() as tier:
        tier.engine.compile_seconds = 0.2
        slow = tier.start(YES)
        quick = tier.start(Sampling(max_tokens=3, ignore_eos=True))
        await until(lambda: bool(quick.finishes), 1.0)
        assert slow.events == []
        await until(lambda: bool(slow.finishes), 1.0)


async def test_refused_constraint_fails_its_generation_alone() -> None:
    """What does not compile is the generation's one event, all its places are free, and the next is served."""
    async with served(limit=3) as tier:
        refused = tier.start(Sampling(structured_output=Regex("a")), n=3)
        await until(lambda: refused.error is not None, 1.0)
        assert type(refused.error) is Unsupported and len(refused.events) == 1
        assert tier.admission.active == 0
        good = tier.start(YES)
        await until(lambda: bool(good.finishes), 1.0)


async def test_malformed_constraint_is_refused_at_once() -> None:
    """What breaks a limit is refused by the start itself, and takes no place."""
    async with served() as tier:
        with pytest.raises(InvalidRequest, match="choice has 0 strings"):
            tier.start(Sampling(structured_output=Choice(())))
        assert tier.admission.active == 0


async def test_cancel_while_compiling() -> None:
    """It frees the places at once, nothing is told, and the engine never gets the request."""
    async with served() as tier:
        tier.engine.compile_seconds = 0.05
        sink = tier.start(YES, n=4)
        await asyncio.sleep(0.01)
        assert tier.generation is not None and tier.admission.active == 4
        tier.generation.cancel()
        assert tier.admission.active == 0
        await asyncio.sleep(0.1)
        assert sink.events == []
        assert tier.count("vllm:prompt_tokens_total") == 0


async def test_deadline_while_compiling() -> None:
    """A deadline that passes meanwhile ends the generation with its error, once."""
    async with served() as tier:
        tier.engine.compile_seconds = 0.2
        sink = tier.start(YES, deadline_seconds=0.02)
        await until(lambda: sink.error is not None, 1.0)
        assert type(sink.error) is DeadlineExceeded
        await asyncio.sleep(0.3)
        assert len(sink.events) == 1 and tier.admission.active == 0


async def test_output_that_is_given_up_names_the_constraint() -> None:
    """A constraint that the engine cannot keep to any further is the request's fault, not the service's."""
    async with served() as tier:
        tier.engine.hang()
        sink = tier.start(YES)
        await asyncio.sleep(0.01)
        assert tier.generation is not None
        tier.generations.on_step(Step([Output(tier.generation.choices[0].request_id, [], failed=True)], None))
        assert type(sink.error) is InvalidRequest
        assert (sink.error.param, sink.error.reason) == ("structured_output", "STRUCTURED_OUTPUT_FAILED")
        assert tier.admission.active == 0
        tier.engine.resume()


async def test_fault_of_the_compiler_is_an_internal_error() -> None:
    """An unknown exception fails the one generation with a fixed text; the model serves on."""
    async with served() as tier:
        compile_output = tier.engine.compile

        async def fail(output: StructuredOutput) -> object:
            raise RuntimeError("secret")

        tier.engine.compile = fail  # type: ignore[method-assign]
        sink = tier.start(YES)
        await until(lambda: sink.error is not None, 1.0)
        assert type(sink.error) is InternalError and "secret" not in sink.error.message
        tier.engine.compile = compile_output  # type: ignore[method-assign]
        good = tier.start(YES, RecordingSink())
        await until(lambda: bool(good.finishes), 1.0)
        assert tier.admission.active == 0
