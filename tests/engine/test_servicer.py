from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from services.chassis import errors
from services.engine.port import Limits
from streamomni.engine.v1 import engine_pb2, models_pb2, sampling_pb2
from tests.chassis.waiting import until
from tests.engine.engine_service import (
    EngineService,
    engine_service,
    error_of_reading,
    generate_request,
)
from tests.fakes.scripted_engine import Shape

MANY_LOGPROBS = Shape(limits=Limits(200_000, 49152, 5000, False), kv_cache_tokens=10**7)


async def test_generate_streams_one_generation(service: EngineService) -> None:
    """Started, the deltas with all tokens, then Finished with reason and usage; the call ends well."""
    call = service.stub.Generate(generate_request(max_tokens=5))
    responses = [response async for response in call]
    kinds = [response.WhichOneof("event") for response in responses]
    assert kinds == ["started", *["delta"] * 5, "finished"]
    assert responses[0].started == engine_pb2.Started(prompt_tokens=10, cached_tokens=0, model="m")
    finished = responses[-1].finished
    assert finished.reason == sampling_pb2.FINISH_REASON_LENGTH and not finished.HasField("stop_token_id")
    assert finished.usage == sampling_pb2.Usage(prompt_tokens=10, completion_tokens=5)
    await service.assert_idle()


async def test_generate_tells_choices_stop_tokens_and_logprobs(service: EngineService) -> None:
    """Choices carry their index, a stop token is named, and log probabilities come in columns."""
    request = generate_request(n=2, stop_token_ids=[7], allowed_token_ids=[7], logprobs=2, prompt_logprobs=1, model="m")
    responses = [response async for response in service.stub.Generate(request)]
    assert len(responses[0].started.prompt_logprobs.logprobs) == 9
    assert responses[0].started.prompt_logprobs.top_count == 1
    deltas = {r.delta.index: r.delta for r in responses if r.HasField("delta")}
    finishes = {r.finished.index: r.finished for r in responses if r.HasField("finished")}
    assert sorted(deltas) == sorted(finishes) == [0, 1]
    for index in (0, 1):
        assert list(deltas[index].token_ids) == [7]
        assert list(deltas[index].logprobs.top_token_ids) == [7, 8]
        assert (finishes[index].reason, finishes[index].stop_token_id) == (sampling_pb2.FINISH_REASON_STOP, 7)


BAD: list[tuple[dict[str, Any], grpc.StatusCode, type[errors.ServiceError], str, str]] = [
    (
        {"prompt_token_ids": []},
        grpc.StatusCode.INVALID_ARGUMENT,
        errors.InvalidRequest,
        "prompt_token_ids",
        "EMPTY_PROMPT",
    ),
    (
        {"prompt_token_ids": [49152]},
        grpc.StatusCode.INVALID_ARGUMENT,
        errors.InvalidRequest,
        "prompt_token_ids",
        "TOKEN_ID_OUT_OF_VOCABULARY",
    ),
    (
        {"prompt_token_ids": [1] * 2048},
        grpc.StatusCode.INVALID_ARGUMENT,
        errors.InvalidRequest,
        "prompt_token_ids",
        "CONTEXT_LENGTH_EXCEEDED",
    ),
    ({"temperature": -1.0}, grpc.StatusCode.INVALID_ARGUMENT, errors.InvalidRequest, "temperature", "INVALID_REQUEST"),
    ({"n": 0}, grpc.StatusCode.INVALID_ARGUMENT, errors.InvalidRequest, "n", "INVALID_REQUEST"),
    ({"model": "../../x"}, grpc.StatusCode.NOT_FOUND, errors.NotFound, "model", "MODEL_NOT_FOUND"),
    ({"model": "x" * 200_000}, grpc.StatusCode.NOT_FOUND, errors.NotFound, "model", "MODEL_NOT_FOUND"),
    ({"lora_name": "a"}, grpc.StatusCode.UNIMPLEMENTED, errors.Unsupported, "lora_name", "UNSUPPORTED"),
    ({"priority": 1}, grpc.StatusCode.UNIMPLEMENTED, errors.Unsupported, "priority", "UNSUPPORTED"),
    (
        {"structured_output": sampling_pb2.StructuredOutput(regex="a+")},
        grpc.StatusCode.UNIMPLEMENTED,
        errors.Unsupported,
        "structured_output",
        "UNSUPPORTED",
    ),
    (
        {"request_id": "x" * 257},
        grpc.StatusCode.INVALID_ARGUMENT,
        errors.InvalidRequest,
        "request_id",
        "INVALID_REQUEST",
    ),
]


@pytest.mark.parametrize(("fields", "code", "kind", "param", "reason"), BAD)
async def test_bad_requests_harm_themselves_only(
    service: EngineService,
    fields: dict[str, Any],
    code: grpc.StatusCode,
    kind: type[errors.ServiceError],
    param: str,
    reason: str,
) -> None:
    """A bad request ends with its code and details before anything is sent; a running generation goes on."""
    other = service.stub.Generate(generate_request())
    await other.read()
    found, error = await error_of_reading(service.stub.Generate(generate_request(**fields)))
    assert (found, type(error), error.param, error.reason) == (code, kind, param, reason)
    assert isinstance(await other.read(), engine_pb2.GenerateResponse)
    other.cancel()
    await service.assert_idle()


async def test_overload_says_when_to_come_back(tmp_path: Path) -> None:
    """Where no place is free the call is UNAVAILABLE with a time to wait, and a freed place is taken again."""
    async with engine_service(tmp_path, limit=1) as service:
        first = service.stub.Generate(generate_request())
        await first.read()
        code, error = await error_of_reading(service.stub.Generate(generate_request()))
        assert (code, error.reason, error.retry_after) == (grpc.StatusCode.UNAVAILABLE, "OVERLOADED", 1.0)
        first.cancel()
        await service.assert_idle()
        responses = [r async for r in service.stub.Generate(generate_request(max_tokens=1))]
        assert responses[-1].HasField("finished")


@pytest.mark.parametrize("phase", ["queued", "decode", "engine hangs"])
async def test_client_cancel_aborts_within_a_second(tmp_path: Path, phase: str) -> None:
    """A cancelled call has freed the engine and its places within 1 s, in each phase."""
    async with engine_service(tmp_path, shape=Shape(max_num_seqs=1)) as service:
        first = service.stub.Generate(generate_request())
        await first.read()
        call = first
        if phase == "queued":
            call = service.stub.Generate(generate_request())
            await until(lambda: service.model.status().load.waiting == 1)
            call.cancel()
            await until(lambda: service.admission.active == 1, 1.0)
        elif phase == "engine hangs":
            service.engine.hang()
            await asyncio.sleep(0.01)
            first.cancel()
            await until(lambda: service.admission.active == 0, 1.0)
            service.engine.resume()
        first.cancel()
        await service.assert_idle()


@pytest.mark.parametrize("own_call", [True, False])
async def test_deadlines_abort_within_a_second(service: EngineService, own_call: bool) -> None:
    """A call's deadline and the request's own end the generation as DEADLINE_EXCEEDED, and free the engine."""
    call = (
        service.stub.Generate(generate_request(), timeout=0.2)
        if own_call
        else service.stub.Generate(generate_request(deadline_ms=200))
    )
    code, error = await error_of_reading(call)
    assert code is grpc.StatusCode.DEADLINE_EXCEEDED and isinstance(error, errors.DeadlineExceeded)
    await service.assert_idle()


async def test_slow_reader_is_bounded_and_cancelled(tmp_path: Path) -> None:
    """A reader that takes nothing has its generation cancelled at the bound; reading on, it is told so, after what
    was sent, and another reader is not held up."""
    async with engine_service(tmp_path, shape=MANY_LOGPROBS, tick_seconds=0.0) as service:
        slow = service.stub.Generate(generate_request(logprobs=5000))
        other = service.stub.Generate(generate_request(max_tokens=300))
        responses = [response async for response in other]
        assert responses[-1].HasField("finished")
        await until(lambda: service.count("streamomni:generations_cancelled_total") == 1, 20.0)
        await service.assert_idle()
        generated = service.count("vllm:generation_tokens_total")
        # 5,000 alternatives make about 35 kB a token; what gRPC buffers and the bound together are some megabytes.
        assert generated < 1500
        code, error = await error_of_reading(slow)
        assert code is grpc.StatusCode.UNAVAILABLE and "behind" in error.message


async def test_death_of_the_engine_fails_calls_and_is_mended(tmp_path: Path) -> None:
    """When the engine dies a running call is UNAVAILABLE after its tokens, and a later one is served by a new one."""
    async with engine_service(tmp_path) as service:
        call = service.stub.Generate(generate_request())
        await call.read()
        await call.read()
        service.engine.die()
        code, error = await error_of_reading(call)
        assert (code, error.reason) == (grpc.StatusCode.UNAVAILABLE, "ENGINE_FAILED")
        assert error.retry_after is not None
        await until(lambda: len(service.loader.engines) == 2)
        await service.until_ready()
        responses = [r async for r in service.stub.Generate(generate_request(max_tokens=2))]
        assert responses[-1].HasField("finished")


async def test_failures_are_logged_with_the_requests_id(service: EngineService) -> None:
    """An unknown failure in a call is INTERNAL, the one line with its traceback names the request, no place is lost."""
    # The port's `add` may raise InvalidRequest alone; anything else is a fault of ours.
    service.engine.add = _raises  # type: ignore[method-assign]
    with capture_logs(processors=[merge_contextvars]) as logs:
        code, error = await error_of_reading(service.stub.Generate(generate_request(request_id="r-7")))
    assert code is grpc.StatusCode.INTERNAL and "secret" not in error.message
    assert [(line["request_id"]) for line in logs if line["event"] == "call failed"] == ["r-7"]
    assert service.admission.active == 0


def _raises(request: Any) -> None:
    raise RuntimeError("the secret")


async def test_garbage_is_refused(service: EngineService) -> None:
    """Bytes that are no message end their call as INVALID_ARGUMENT, and the next call is served."""
    method: Any = service.channel.unary_stream("/streamomni.engine.v1.EngineService/Generate")
    code, _ = await error_of_reading(method(b"\xff\xff\xff"))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert [r async for r in service.stub.Generate(generate_request(max_tokens=1))]


async def test_no_tasks_are_left(tmp_path: Path) -> None:
    """After finished, cancelled and failed calls no task remains."""
    before = asyncio.all_tasks()
    async with engine_service(tmp_path) as service:
        for _ in range(5):
            call = service.stub.Generate(generate_request())
            await call.read()
            call.cancel()
            watch = service.stub.WatchModels(models_pb2.WatchModelsRequest())
            await watch.read()
            watch.cancel()
            await error_of_reading(service.stub.Generate(generate_request(n=0)))
        await service.assert_idle()
    del call, watch
    await asyncio.sleep(0.1)
    assert asyncio.all_tasks() - before == set()
