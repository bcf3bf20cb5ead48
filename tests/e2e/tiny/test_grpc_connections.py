"""What the gRPC ports of the running service take: idle connections with pings, and large messages."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
import pytest

from streamomni.engine.v1 import engine_pb2
from streamomni.text.v1 import text_pb2
from tests.e2e.callers import sampling
from tests.e2e.service import Service

LIMIT = 64 * 1024 * 1024
PING_SECONDS = 0.2
# gRPC's servers end a connection at its third ping without a call, unless they are told otherwise.
IDLE_SECONDS = 4.0
PINGING = [
    ("grpc.keepalive_time_ms", round(PING_SECONDS * 1000)),
    ("grpc.keepalive_timeout_ms", 5000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.use_local_subchannel_pool", 1),
]
LARGE = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
ENGINE = "/streamomni.engine.v1.EngineService/Generate"
TEXT = "/streamomni.text.v1.TextService/Generate"


def engine_request() -> bytes:
    """A small generation on the engine's port."""
    return engine_pb2.GenerateRequest(prompt_token_ids=[1, 500], sampling_params=sampling(3)).SerializeToString()


def text_request() -> bytes:
    """The same on the tokenizer's port."""
    tokens = text_pb2.TokenPrompt(token_ids=[1, 500])
    return text_pb2.GenerateRequest(tokens=tokens, sampling_params=sampling(3)).SerializeToString()


PORTS: list[tuple[Callable[[Service], str], str, Callable[[], bytes]]] = [
    (lambda service: service.engine, ENGINE, engine_request),
    (lambda service: service.tokenizer, TEXT, text_request),
]


def call(channel: grpc.Channel, method: str, request: bytes) -> list[bytes]:
    """All messages that a call answers with."""
    # Without codecs the messages are bytes, which grpc's stubs do not know.
    generate: Any = channel.unary_stream(method)
    return list(generate(request, timeout=60))


def padded(request: bytes, size: int) -> bytes:
    """The same request in a message of this size: a field that only a newer service knows fills it."""
    length = size - len(request) - 6
    digits = [length >> shift & 127 for shift in (0, 7, 14, 21)]
    header = bytes([0xFA, 0x7F, *(digit | 128 for digit in digits[:3]), digits[3]])
    assert len(request) + len(header) + length == size
    return request + header + bytes(length)


@contextmanager
def watched(address: str) -> Iterator[tuple[grpc.Channel, list[grpc.ChannelConnectivity]]]:
    """A connected channel that pings, and the states that it goes through from here on."""
    with grpc.insecure_channel(address, options=PINGING) as channel:
        grpc.channel_ready_future(channel).result(timeout=10)
        states: list[grpc.ChannelConnectivity] = []
        channel.subscribe(states.append)
        yield channel, states


@contextmanager
def plain_server() -> Iterator[str]:
    """A gRPC server with gRPC's own defaults."""
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def test_idle_channels_may_ping(service: Service) -> None:
    """Channels that ping far more often than each 10 s, without a call for as long as 20 pings, keep their
    connections on both ports and then serve a call; a server with gRPC's defaults ends such a connection."""
    with (
        plain_server() as plain,
        watched(service.engine) as (engine, engine_states),
        watched(service.tokenizer) as (tokenizer, tokenizer_states),
        watched(plain) as (_, plain_states),
    ):
        time.sleep(IDLE_SECONDS)
        assert call(engine, ENGINE, engine_request()) and call(tokenizer, TEXT, text_request())
        assert set(engine_states) == set(tokenizer_states) == {grpc.ChannelConnectivity.READY}
        assert set(plain_states) != {grpc.ChannelConnectivity.READY}, "the pings were not sent"


@pytest.mark.parametrize(("address", "method", "request_"), PORTS, ids=["engine", "tokenizer"])
def test_large_messages(
    service: Service, address: Callable[[Service], str], method: str, request_: Callable[[], bytes]
) -> None:
    """A message above gRPC's usual 4 MB is served up to the limit, to the byte; the next one is
    RESOURCE_EXHAUSTED with both sizes, and the channel serves on."""
    request = request_()
    with grpc.insecure_channel(address(service), options=LARGE) as channel:
        usual = len(call(channel, method, request))
        for size in (5_000_000, LIMIT):
            assert len(call(channel, method, padded(request, size))) >= usual - 2
        with pytest.raises(grpc.RpcError) as refused:
            call(channel, method, padded(request, LIMIT + 1))
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        details = refused.value.details() or ""
        assert str(LIMIT) in details and str(LIMIT + 1) in details
        assert call(channel, method, request)
