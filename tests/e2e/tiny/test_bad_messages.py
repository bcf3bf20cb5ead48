"""Bad input over gRPC, on the engine's and the tokenizer's port: each tier refuses for itself."""

from __future__ import annotations

import queue
import socket
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status

from streamomni.engine.v1 import engine_pb2, engine_pb2_grpc, sampling_pb2
from streamomni.text.v1 import text_pb2, text_pb2_grpc
from tests.e2e.service import Service
from tests.e2e.tiny.bad_messages import BadMessage, engine_rows, text_rows, unary_rows

SECONDS = 1.0
# Each a message that no request may be: a field number without end, a length beyond the end, no UTF-8.
GARBAGE = (b"\xff\xff\xff", b"\x0a\xff\xff\xff\x7f", b"GET / HTTP/1.1\r\n\r\n")
SERVICES: tuple[tuple[str, Any], ...] = (("engine", engine_pb2), ("tokenizer", text_pb2))
LARGE = [("grpc.max_send_message_length", 64 << 20)]


@pytest.fixture(scope="module")
def channels(service: Service) -> Iterator[dict[str, grpc.Channel]]:
    """A channel to each port, by the tier's name."""
    with (
        grpc.insecure_channel(service.engine, options=LARGE) as engine,
        grpc.insecure_channel(service.tokenizer, options=LARGE) as tokenizer,
    ):
        yield {"engine": engine, "tokenizer": tokenizer}


def generate_of(tier: str, channel: grpc.Channel) -> Any:
    """The tier's method Generate."""
    stubs: dict[str, Any] = {
        "engine": engine_pb2_grpc.EngineServiceStub,
        "tokenizer": text_pb2_grpc.TextServiceStub,
    }
    return stubs[tier](channel)


def rows_of(tier: str) -> list[BadMessage]:
    """The rows of a tier."""
    return list(engine_rows() if tier == "engine" else text_rows())


def fault_of(bad: BadMessage, status: Status | None) -> str | None:
    """How a status differs from the one that a message should get, None if it does not."""
    shown = str(bad.message)[:80]
    if status is None:
        return f"{shown}: not refused, or without details"
    info, field = ErrorInfo(), BadRequest()
    found = [detail.Unpack(info) or detail.Unpack(field) for detail in status.details]
    named = [violation.field for violation in field.field_violations]
    wrong = (status.code, named) != (bad.code.value[0], [bad.field])
    if wrong or not all(found[:2]) or info.domain != "streamomni" or not info.reason or "\n" in status.message:
        return f"{shown}: {status.code} {info.reason} {named} {status.message!r}, not {bad.code} {bad.field}"
    return None


def refusal_of(call: Any) -> Status | None:
    """The status that a call ends with before it has sent anything, None if it sends something."""
    try:
        next(call) if hasattr(call, "__next__") else call()
    except grpc.RpcError as error:
        refused: Any = error
        status: Status | None = rpc_status.from_call(refused)
        return status
    return None


def timed_fault(bad: BadMessage, method: Any) -> str | None:
    """What is wrong with a method's refusal or its time, the best of three."""
    times: list[float] = []
    while not times or (min(times) >= SECONDS and len(times) < 3):
        begin = time.monotonic()
        call = method(bad.message) if isinstance(method, grpc.UnaryStreamMultiCallable) else lambda: method(bad.message)
        fault = fault_of(bad, refusal_of(call))
        times.append(time.monotonic() - begin)
        if fault:
            return fault
    return None if min(times) < SECONDS else f"{str(bad.message)[:80]}: took {times} s"


@pytest.mark.parametrize("tier", ["engine", "tokenizer"])
def test_each_kind_is_refused(service: Service, channels: dict[str, grpc.Channel], tier: str) -> None:
    """Generate refuses each row within 1 s, before anything is sent, with its code, a reason and the field; the
    engine has computed nothing."""
    before = service.engine_metric("vllm:prompt_tokens_total")
    generate = generate_of(tier, channels[tier]).Generate
    faults = [fault for bad in rows_of(tier) if (fault := timed_fault(bad, generate))]
    assert not faults, "\n".join(faults)
    assert service.engine_metric("vllm:prompt_tokens_total") == before


@pytest.mark.parametrize("tier", ["engine", "tokenizer"])
def test_each_kind_fails_alone_on_the_link(channels: dict[str, grpc.Channel], tier: str) -> None:
    """On one link each row ends its own stream with the same status, and a generation among them goes on to its end."""
    rows = rows_of(tier)
    messages: Any = engine_pb2 if tier == "engine" else text_pb2
    prompt = {"prompt_token_ids": [5]} if tier == "engine" else {"tokens": text_pb2.TokenPrompt(token_ids=[5])}
    params = sampling_pb2.SamplingParams(temperature=0, ignore_eos=True, max_tokens=500)
    good = messages.GenerateRequest(sampling_params=params, **prompt)
    commands: queue.Queue[Any] = queue.Queue()

    def start(stream_id: int, request: Any) -> None:
        commands.put(messages.GenerateManyRequest(start=messages.StartGeneration(stream_id=stream_id, request=request)))

    start(0, good)
    link = generate_of(tier, channels[tier]).GenerateMany(iter(commands.get, None))
    for number, bad in enumerate(rows, 1):
        start(number, bad.message)
    statuses: dict[int, Status] = {}
    tokens, over = 0, set[int]()
    while len(over) <= len(rows):
        frame = next(link)
        counts = zip(frame.stream_ids, frame.token_counts, strict=True)
        tokens += sum(count for stream_id, count in counts if stream_id == 0)
        for event in frame.events:
            if event.HasField("failed"):
                statuses[event.stream_id] = event.failed
            if not event.HasField("started"):
                assert event.stream_id not in over
                over.add(event.stream_id)
    commands.put(None)
    assert list(link) == [] and tokens == 500
    faults = [fault for number, bad in enumerate(rows, 1) if (fault := fault_of(bad, statuses.get(number)))]
    assert not faults, "\n".join(faults)


def test_unary_methods_refuse(channels: dict[str, grpc.Channel]) -> None:
    """Tokenize, Detokenize and RenderChat refuse each row within 1 s, with code, reason and field."""
    stub: Any = text_pb2_grpc.TextServiceStub(channels["tokenizer"])
    faults = [fault for name, bad in unary_rows() if (fault := timed_fault(bad, getattr(stub, name)))]
    assert not faults, "\n".join(faults)


def test_garbage_on_every_method(channels: dict[str, grpc.Channel]) -> None:
    """Bytes that are no message are INVALID_ARGUMENT with details within 1 s, on every method of both ports."""
    tried = 0
    for tier, module in SERVICES:
        for service_name, described in module.DESCRIPTOR.services_by_name.items():
            for method in described.methods:
                path = f"/{module.DESCRIPTOR.package}.{service_name}/{method.name}"
                for garbage in GARBAGE:
                    begin = time.monotonic()
                    status = refusal_of(_raw_call(channels[tier], path, method, garbage))
                    assert status is not None and status.code == grpc.StatusCode.INVALID_ARGUMENT.value[0], path
                    assert time.monotonic() - begin < SECONDS
                    tried += 1
    assert tried == len(GARBAGE) * 14


def _raw_call(channel: Any, path: str, method: Any, message: bytes) -> Any:
    # grpc's stubs know no call without a serializer.
    if method.client_streaming:
        return channel.stream_stream(path)(iter([message]))
    if method.server_streaming:
        return channel.unary_stream(path)(message)
    return lambda: channel.unary_unary(path)(message)


@pytest.mark.parametrize("tier", ["engine", "tokenizer"])
def test_what_is_not_served(service: Service, channels: dict[str, grpc.Channel], tier: str) -> None:
    """Unknown methods and services are UNIMPLEMENTED; what speaks no HTTP/2 is closed; health goes on."""
    channel: Any = channels[tier]
    for path in ("/streamomni.engine.v1.EngineService/Nothing", "/nothing.Service/Method", "/../../x", "/"):
        with pytest.raises(grpc.RpcError) as refused:
            channel.unary_unary(path)(b"", timeout=5)
        error: Any = refused.value
        assert error.code() is grpc.StatusCode.UNIMPLEMENTED, path
    address = service.engine if tier == "engine" else service.tokenizer
    host, _, port = address.partition(":")
    for content in (b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00" + b"\xff" * 2000):
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            connection.sendall(content)
            try:
                while connection.recv(65536):
                    pass
            except ConnectionResetError:
                continue
    health: Any = health_pb2_grpc.HealthStub(channel)
    assert health.Check(health_pb2.HealthCheckRequest()).status == health_pb2.HealthCheckResponse.SERVING
