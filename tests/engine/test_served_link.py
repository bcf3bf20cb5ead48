from __future__ import annotations

from services.chassis.errors import NotFound
from services.engine import wire
from services.engine.port import Logprobs
from services.engine.served_link import EngineOutbox
from streamomni.engine.v1 import engine_pb2


async def frame_of(outbox: EngineOutbox) -> engine_pb2.GenerateManyResponse:
    """The next frame."""
    frames = outbox.frames()
    frame = await anext(frames)
    await frames.aclose()
    return frame


async def test_entries_are_packed_in_parallel_arrays() -> None:
    """A step's tokens of several generations make one frame; where all choices are 0 their indices are left out."""
    outbox = EngineOutbox()
    outbox.add_tokens(7, 0, [1, 2], None)
    outbox.add_tokens(9, 0, [3], None)
    outbox.add_tokens(7, 0, [4], None)
    assert await frame_of(outbox) == engine_pb2.GenerateManyResponse(
        stream_ids=[7, 9, 7], token_counts=[2, 1, 1], token_ids=[1, 2, 3, 4]
    )


async def test_indices_are_sent_when_one_is_not_zero() -> None:
    """One entry of another choice brings the indices of all."""
    outbox = EngineOutbox()
    outbox.add_tokens(7, 0, [1], None)
    outbox.add_tokens(7, 2, [2], None)
    outbox.add_tokens(7, 0, [3], None)
    assert list((await frame_of(outbox)).indices) == [0, 2, 0]
    outbox.add_tokens(7, 0, [4], None)
    assert list((await frame_of(outbox)).indices) == []


async def test_logprobs_point_to_their_entries_of_the_frame() -> None:
    """Columns hold those of the entries that have some, by their positions in their own frame; the next counts anew."""
    outbox = EngineOutbox()
    outbox.add_tokens(7, 0, [1], None)
    outbox.add_tokens(8, 0, [2], Logprobs([-0.5], [1], 0, [], []))
    outbox.add_tokens(9, 0, [3, 4], Logprobs([-1.0, -2.0], [2, 3], 1, [5, 6], [-0.25, -0.75]))
    frame = await frame_of(outbox)
    assert frame.logprobs == engine_pb2.FrameLogprobs(
        entries=[1, 2],
        top_counts=[0, 1],
        logprobs=[-0.5, -1.0, -2.0],
        ranks=[1, 2, 3],
        top_token_ids=[5, 6],
        top_logprobs=[-0.25, -0.75],
    )
    outbox.add_tokens(9, 0, [4], Logprobs([-0.5], [1], 0, [], []))
    assert list((await frame_of(outbox)).logprobs.entries) == [0]
    outbox.add_tokens(9, 0, [5], None)
    assert not (await frame_of(outbox)).HasField("logprobs")


async def test_events_go_with_the_tokens_of_their_step() -> None:
    """Events and tokens that one pass adds share a frame, and a frame is forgotten once it is taken."""
    outbox = EngineOutbox()
    outbox.add_event(wire.failed(5, NotFound("no", param="model")))
    outbox.add_tokens(7, 0, [1], None)
    frame = await frame_of(outbox)
    assert [event.stream_id for event in frame.events] == [5]
    assert list(frame.token_ids) == [1]
    outbox.add_tokens(7, 0, [2], None)
    assert await frame_of(outbox) == engine_pb2.GenerateManyResponse(stream_ids=[7], token_counts=[1], token_ids=[2])


async def test_frames_are_below_the_message_limit() -> None:
    """A frame is at most twice what the outbox counted, so its limit (half a message) bounds the message too."""
    columns = Logprobs([-0.5] * 4, [2**31] * 4, 20, [2**32 - 1] * 80, [-1.0] * 80)
    outbox = EngineOutbox()
    for number in range(50):
        outbox.add_tokens(2**64 - 1 - number, 127, [2**32 - 1] * 4, columns)
    counted = outbox._waiting_bytes
    assert (await frame_of(outbox)).ByteSize() <= 2 * counted
