"""Structured output on the link: what compiles holds no other stream up, and a cancel reaches it there."""

from __future__ import annotations

import asyncio
from pathlib import Path

from services.chassis.errors import Unsupported
from streamomni.engine.v1.sampling_pb2 import StructuredOutput
from tests.chassis.waiting import until
from tests.engine.link_caller import linked

YES = StructuredOutput(choice=StructuredOutput.Choices(values=["yes"]))


async def test_a_later_stream_is_served_meanwhile(tmp_path: Path) -> None:
    """A stream whose constraint takes long is served after those that were started behind it."""
    async with linked(tmp_path) as (service, link):
        service.engine.compile_seconds = 0.3
        await link.start(1, structured_output=YES, ignore_eos=False)
        await link.start(2, max_tokens=3)
        await until(lambda: link.ended(2))
        assert link.events[1] == []
        await until(lambda: link.ended(1))
        assert bytes(link.tokens[1, 0][:-1]) == b"yes" and link.events[1][-1] == "finished"
        await service.assert_idle()


async def test_refusal_is_an_event_of_its_stream(tmp_path: Path) -> None:
    """What the engine cannot compile fails its stream alone, and its number is free again."""
    async with linked(tmp_path) as (service, link):
        await link.start(1, max_tokens=20)
        await link.start(2, structured_output=StructuredOutput(regex="a"))
        await until(lambda: link.ended(1) and link.ended(2))
        assert link.events[2] == ["failed"] and type(link.failures[2]) is Unsupported
        assert link.events[1][-1] == "finished"
        await link.start(2, structured_output=YES, ignore_eos=False)
        await until(lambda: link.events[2][-1] == "finished")
        await service.assert_idle()


async def test_cancel_while_compiling_frees_the_number(tmp_path: Path) -> None:
    """A stream that is cancelled before its constraint is there gives nothing, and its number can be used at once."""
    async with linked(tmp_path) as (service, link):
        service.engine.compile_seconds = 0.1
        await link.start(1, structured_output=YES, ignore_eos=False)
        await link.cancel(1)
        await link.start(1, max_tokens=2)
        await until(lambda: link.ended(1))
        await asyncio.sleep(0.2)
        assert link.events[1] == ["started", "tokens", "tokens", "finished"]
        await service.assert_idle()


async def test_closing_the_link_while_compiling(tmp_path: Path) -> None:
    """It frees all places of the link at once."""
    async with linked(tmp_path) as (service, link):
        service.engine.compile_seconds = 5.0
        for stream_id in range(10):
            await link.start(stream_id, structured_output=YES, ignore_eos=False)
        await until(lambda: service.admission.active == 10)
        link.call.cancel()
        await until(lambda: service.admission.active == 0, 1.0)
