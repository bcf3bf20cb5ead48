"""The link that this tier serves: against both real tiers over a scripted engine."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
import pytest_asyncio

from services.chassis.errors import DeadlineExceeded, InvalidRequest, NotFound, ServiceError, Unavailable, Unsupported
from services.chassis.link_server import OUTBOX_LIMIT_BYTES
from services.engine.port import Limits
from services.tokenizer.served_link import TextOutbox
from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import text_pb2
from tests.fakes.scripted_engine import Shape
from tests.tokenizer.engine_fixtures import END, Answer, TextTier, asking, endless, running_tiers, sampling, until
from tests.tokenizer.text_link import TextLink, text_link

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tier(smollm2: Path) -> AsyncIterator[TextTier]:
    """Both tiers."""
    async with running_tiers(smollm2) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def link(tier: TextTier) -> AsyncIterator[TextLink]:
    """A link. Within 1 s of its end nothing is left of what it started."""
    async with text_link(tier.stub) as opened:
        yield opened
    await until(tier.idle, 1)
    tier.engine.lines.by_seed.clear()


async def test_a_generation_from_start_to_finish(tier: TextTier, link: TextLink) -> None:
    """Started once, text and ids in order, one finish with the counts."""
    ids = tier.encode("The quick brown fox")
    answer = await link.start(1, asking(ids))
    await until(lambda: bool(answer.finishes))
    assert [(start.prompt_tokens, start.model) for start in answer.started] == [(len(ids), "scripted")]
    assert (answer.text(), answer.token_ids()) == ("The quick brown fox", [*ids, END])
    assert answer.finish.reason == sampling_pb2.FINISH_REASON_STOP
    assert answer.finish.usage.completion_tokens == len(ids) + 1
    assert answer.after_end == 0


async def test_many_generations_share_the_link(tier: TextTier, link: TextLink) -> None:
    """64 generations of random ids at once: each gets its own text and ids, whole, and one end; frames carry several
    of them."""
    chance = random.Random(1)
    prompts = {number: chance.choices(range(3, 49152), k=chance.randint(1, 40)) for number in range(64)}
    # Scripted, the second end token would end them as well.
    prompts = {number: [token_id for token_id in ids if token_id != 5] for number, ids in prompts.items()}
    answers = {number: await link.start(number, asking(ids)) for number, ids in prompts.items()}
    await until(lambda: all(answer.finishes for answer in answers.values()), 20)
    tokenizer = tier.models.find("").tokenizer
    for number, answer in answers.items():
        assert answer.token_ids() == [*prompts[number], END]
        assert answer.text() == tokenizer.decode(prompts[number])
        assert (len(answer.started), answer.after_end, answer.error) == (1, 0, None)
    assert max(len(set(frame.stream_ids)) for frame in link.frames) > 8


async def test_a_stop_string_ends_one_choice_while_the_others_go_on(tier: TextTier, link: TextLink) -> None:
    """Of three choices the one with the stop string is cancelled at the engine within 1 s; its text, ids and
    counts end there, and the other two go on."""
    tier.engine.lines.by_seed |= {
        7: tier.encode("on and on"),
        8: [*tier.encode("then we"), *tier.encode(" stop here")],
        9: tier.encode("and so forth"),
    }
    answer = await link.start(1, asking([500], n=3, stop=["stop"], sampling_params=endless(seed=7)))
    await until(lambda: 1 in answer.finishes)
    await until(lambda: tier.engine.load.running == 2, 1)
    assert answer.finishes[1].stop_string == "stop"
    assert answer.text(1) == "then we "
    assert answer.finishes[1].usage.completion_tokens == len(answer.token_ids(1)) == len(tier.encode("then we stop"))
    seen = len(answer.text(0)), len(answer.text(2))
    await until(lambda: len(answer.text(0)) > seen[0] and len(answer.text(2)) > seen[1])
    assert (set(answer.finishes), answer.after_end, len(answer.started)) == ({1}, 0, 1)
    assert [request.sampling.seed for request in tier.engine.lines.requests[-3:]] == [7, 8, 9]


async def test_indices_are_left_out_where_all_are_0(tier: TextTier, link: TextLink) -> None:
    """Frames of first choices only have no indices; frames with others have one for each entry."""
    first = await link.start(1, asking(tier.encode("one two three")))
    await until(lambda: bool(first.finishes))
    assert all(not frame.indices for frame in link.frames)
    link.frames.clear()
    second = await link.start(2, asking(tier.encode("one two three"), n=2))
    await until(lambda: len(second.finishes) == 2)
    assert any(frame.indices for frame in link.frames)
    assert all(len(frame.indices) in (0, len(frame.stream_ids)) for frame in link.frames)
    assert second.text(0) == second.text(1) == "one two three"


async def test_a_cancel_command_ends_one_generation(tier: TextTier, link: TextLink) -> None:
    """The engine has dropped it within 1 s, nothing more comes of it, and another goes on."""
    cancelled = await link.start(1, asking([500], n=2, sampling_params=endless()))
    other = await link.start(2, asking([501], sampling_params=endless()))
    await until(lambda: bool(cancelled.deltas and other.deltas))
    await link.cancel(1)
    await until(lambda: tier.engine.load.running == 1 and tier.admission.active == 1, 1)
    seen, told = len(other.deltas), len(cancelled.deltas)
    await until(lambda: len(other.deltas) > seen + 20)
    assert len(cancelled.deltas) == told
    assert not cancelled.finishes and cancelled.error is None
    # Of what has ended or never was, nothing happens.
    await link.cancel(1)
    await link.cancel(99)
    await until(lambda: len(other.deltas) > seen + 40)


async def test_a_cancel_right_behind_its_start(tier: TextTier, link: TextLink) -> None:
    """Whatever the engine had begun is dropped; the link serves on."""
    for number in range(1, 20):
        await link.start(number, asking([500], sampling_params=endless()))
        await link.cancel(number)
    last = await link.start(100, asking(tier.encode("last")))
    await until(lambda: bool(last.finishes))
    await until(tier.idle, 1)


async def test_a_cancel_while_a_large_prompt_is_encoded(tier: TextTier, link: TextLink) -> None:
    """Its place is free at once, and it never reaches the engine."""
    before = len(tier.engine.lines.requests)
    text = text_pb2.TextPrompt(text="".join(map(chr, range(0x100, 0x4000))) * 20)
    await link.start(1, text_pb2.GenerateRequest(text=text))
    await until(lambda: tier.admission.active == 1)
    await link.cancel(1)
    await until(lambda: tier.admission.active == 0, 1)
    last = await link.start(2, asking([500]))
    await until(lambda: bool(last.finishes))
    assert len(tier.engine.lines.requests) == before + 1
    assert link.answers[1] == Answer()


@pytest.mark.parametrize("half", [False, True], ids=["cancelled", "half-closed"])
async def test_closing_the_link_cancels_all_that_it_started(tier: TextTier, half: bool) -> None:
    """Within 1 s the engine has dropped everything, queued ones too, and those of another link go on."""
    async with text_link(tier.stub) as closing, text_link(tier.stub) as other:
        for number in range(80):
            await closing.start(number, asking([500], sampling_params=endless()))
        await until(lambda: tier.engine.load.running == 64 and tier.engine.load.waiting == 16)
        going_on = await other.start(1, asking([501], sampling_params=endless()))
        if half:
            await closing.call.done_writing()
        else:
            closing.call.cancel()
        await until(lambda: tier.engine.load.running == 1 and tier.engine.load.waiting == 0, 1)
        assert tier.admission.active == tier.engine.admission.active == 1
        seen = len(going_on.deltas)
        await until(lambda: len(going_on.deltas) > seen)
    await until(tier.idle, 1)


async def test_a_number_in_use_is_refused(tier: TextTier, link: TextLink) -> None:
    """The second start of a live number fails, and with the stream of this number its first generation ends."""
    answer = await link.start(1, asking([500], sampling_params=endless()))
    await until(lambda: bool(answer.deltas))
    await link.start(1, asking([501]))
    await until(lambda: answer.error is not None)
    assert isinstance(answer.error, InvalidRequest)
    assert answer.error.param == "stream_id"
    await until(lambda: tier.admission.active == 0)


@pytest.mark.parametrize(
    ("bad", "kind", "param"),
    [
        (text_pb2.GenerateRequest(), InvalidRequest, "prompt"),
        (asking([500], n=0), InvalidRequest, "n"),
        (asking([49152]), InvalidRequest, "prompt"),
        (asking([]), InvalidRequest, "prompt_token_ids"),
        (asking([500], model="other"), NotFound, "model"),
        (asking([500], stop=[""]), InvalidRequest, "stop"),
        (text_pb2.GenerateRequest(text=text_pb2.TextPrompt(text="a", suffix="b")), InvalidRequest, "suffix"),
        (asking([500], lora_name="adapter"), Unsupported, "lora_name"),
        (asking([500], priority=1), Unsupported, "priority"),
        (asking([500], sampling_params=sampling(temperature=-1)), InvalidRequest, "temperature"),
        (
            asking([500], sampling_params=sampling(structured_output=sampling_pb2.StructuredOutput(regex="a"))),
            Unsupported,
            "structured_output",
        ),
    ],
)
async def test_a_bad_start_harms_itself_only(
    tier: TextTier, link: TextLink, bad: text_pb2.GenerateRequest, kind: type[ServiceError], param: str
) -> None:
    """It fails with its class and field; those before and behind it on the link are served."""
    before = await link.start(1, asking([500] * 20))
    refused = await link.start(2, bad)
    behind = await link.start(3, asking([501]))
    await until(lambda: bool(before.finishes and behind.finishes) and refused.error is not None)
    assert type(refused.error) is kind
    assert refused.error is not None and refused.error.param == param
    assert (refused.started, refused.deltas, refused.finishes) == ([], [], {})
    assert (len(before.token_ids()), behind.token_ids()) == (21, [501, END])


async def test_a_deadline_ends_a_generation_on_the_link(tier: TextTier, link: TextLink) -> None:
    """In decode and in the queue: one error, and the engine is free within 1 s."""
    answers = [
        await link.start(number, asking([500], deadline_ms=100, sampling_params=endless())) for number in range(70)
    ]
    await until(lambda: all(answer.error is not None for answer in answers), 2)
    assert all(isinstance(answer.error, DeadlineExceeded) for answer in answers)
    assert not any(answer.finishes for answer in answers)
    await until(tier.idle, 1)


async def test_a_command_of_no_kind_ends_the_link(link: TextLink) -> None:
    """A command that is neither a start nor a cancel is refused, not passed over, as at the engine."""
    await link.call.write(text_pb2.GenerateManyRequest())
    await until(lambda: link.error is not None)
    assert isinstance(link.error, InvalidRequest) and link.error.param == "command"


async def test_a_client_that_reads_nothing_loses_its_link(smollm2: Path) -> None:
    """What waits for it is bounded; past the bound the link ends as unavailable and all it started is cancelled,
    while another link goes on."""
    limits = Limits(context_length=10**7, vocab_size=49152, max_logprobs=20, supports_priority=False)
    shape = Shape(limits=limits, max_num_seqs=512, kv_cache_tokens=10**9)
    # The token with the longest text, so that few of them fill the bound.
    long_token = 46778
    async with running_tiers(smollm2, shape=shape, tick_seconds=0.0) as tier:
        assert len(tier.models.find("").tokenizer.decode([long_token])) == 81
        flooded = tier.stub.GenerateMany()
        await flooded.initial_metadata()
        async with text_link(tier.stub) as other:
            going_on = await other.start(1, asking([501], sampling_params=endless()))
            await until(lambda: bool(going_on.deltas))
            for number in range(500):
                start = text_pb2.StartGeneration(
                    stream_id=number, request=asking([long_token], sampling_params=endless())
                )
                await flooded.write(text_pb2.GenerateManyRequest(start=start))
            await until(lambda: tier.admission.active == 1, 20)
            seen = len(going_on.deltas)
            await until(lambda: len(going_on.deltas) > seen)
            link = TextLink(tier.stub)
            link.call.cancel()
            link.call, link.answers = flooded, {number: Answer() for number in range(500)}
            await link.read()
            assert isinstance(link.error, Unavailable)
            assert "lags more than" in link.error.message
            assert max(frame.ByteSize() for frame in link.frames) <= OUTBOX_LIMIT_BYTES
        await until(tier.idle, 1)


async def test_the_outbox_packs_what_gathers_into_one_frame() -> None:
    """Entries of several generations and several of one, in order, their texts and ids aligned, and all events."""
    outbox = TextOutbox()
    outbox.add_text(1, 0, [5, 6], "ab")
    outbox.add_text(2, 3, [], "c")
    outbox.add_event(text_pb2.StreamEvent(stream_id=2, started=text_pb2.Started(prompt_tokens=1)))
    outbox.add_text(1, 0, [7], "")
    async with aclosing(outbox.frames()) as frames:
        frame = await anext(frames)
        assert frame == text_pb2.GenerateManyResponse(
            stream_ids=[1, 2, 1],
            indices=[0, 3, 0],
            token_counts=[2, 0, 1],
            token_ids=[5, 6, 7],
            texts=["ab", "c", ""],
            events=[text_pb2.StreamEvent(stream_id=2, started=text_pb2.Started(prompt_tokens=1))],
        )
        outbox.add_text(1, 0, [8], "d")
        assert await anext(frames) == text_pb2.GenerateManyResponse(
            stream_ids=[1], token_counts=[1], token_ids=[8], texts=["d"]
        )
        outbox.close()
        with pytest.raises(StopAsyncIteration):
            await anext(frames)


async def test_the_outboxs_figure_bounds_a_frame() -> None:
    """What it counts is at least what goes over the wire, so a frame is never too large for a message."""
    outbox = TextOutbox()
    entries = OUTBOX_LIMIT_BYTES // (8 * 5 + 4 * 64 + 1)
    for number in range(entries):
        outbox.add_text(2**63 - number, 127, [2**32 - 1, 2**32 - 2], "\N{LLAMA}" * 64)
    async with aclosing(outbox.frames()) as frames:
        frame = await anext(frames)
        assert 0.8 * OUTBOX_LIMIT_BYTES < frame.ByteSize() <= OUTBOX_LIMIT_BYTES
        for number in range(entries + 1):
            outbox.add_text(number, 0, [1, 2], "x" * 64)
        with pytest.raises(Unavailable, match=f"lags more than {OUTBOX_LIMIT_BYTES} bytes behind"):
            await anext(frames)
