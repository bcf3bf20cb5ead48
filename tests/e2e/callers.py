"""Callers of a running service that can leave at any moment, one kind for each way in."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack
from typing import Any, Protocol
from urllib.parse import urlsplit

import grpc
from websockets.sync.client import connect

from streamomni.engine.v1 import engine_pb2, engine_pb2_grpc, sampling_pb2
from streamomni.text.v1 import text_pb2, text_pb2_grpc
from tests.e2e.service import Service


class Caller(Protocol):
    """Someone who waits for an answer."""

    def first_token(self) -> None:
        """Wait until the answer has begun."""

    def leave(self) -> None:
        """Go away without a word."""


class HttpCaller:
    """A completion over HTTP, streamed or not; leaving closes the connection."""

    def __init__(
        self, service: Service, prompt_token_ids: list[int] | list[list[int]], max_tokens: int, *, stream: bool
    ) -> None:
        body = json.dumps(
            {
                "model": service.model,
                "prompt": prompt_token_ids,
                "max_tokens": max_tokens,
                "ignore_eos": True,
                "stream": stream,
            }
        ).encode()
        address = urlsplit(service.url)
        self._socket = socket.create_connection((address.hostname, address.port))
        head = f"POST /v1/completions HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n"
        self._socket.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        self._stream = stream

    def first_token(self) -> None:
        """Wait for the first event of a stream. One piece gives no sign before its end."""
        if self._stream:
            received = b""
            while b"data: " not in received:
                received += self._socket.recv(4096)
                assert received, "the connection was closed"

    def leave(self) -> None:
        """Close the connection."""
        self._socket.close()


class WebSocketCaller:
    """A completion over a WebSocket; leaving loses the connection."""

    def __init__(self, service: Service, prompt_token_ids: list[int], max_tokens: int) -> None:
        self._opened = ExitStack()
        self._connection = self._opened.enter_context(
            connect(f"{service.url.replace('http', 'ws', 1)}/v1/stream", proxy=None)
        )
        body = {"model": service.model, "prompt": prompt_token_ids, "max_tokens": max_tokens, "ignore_eos": True}
        start = {"type": "start", "id": "a", "endpoint": "completions", "body": body}
        self._connection.send(json.dumps(start))

    def first_token(self) -> None:
        """Wait for the first event."""
        while json.loads(self._connection.recv(30))["type"] != "event":
            pass

    def leave(self) -> None:
        """Lose the connection."""
        self._connection.socket.shutdown(socket.SHUT_RDWR)
        self._opened.close()


class RpcCaller:
    """A call that streams; leaving cancels it."""

    def __init__(self, channel: grpc.Channel, call: Any) -> None:
        # grpc's stubs give a call no type that is both an iterator and a call.
        self._channel = channel
        self._call = call

    def first_token(self) -> None:
        """Wait for the start and the first delta."""
        next(self._call)
        next(self._call)

    def leave(self) -> None:
        """Cancel the call."""
        self._call.cancel()
        self._channel.close()


def sampling(max_tokens: int) -> sampling_pb2.SamplingParams:
    """Parameters of a generation that ends by its length only."""
    return sampling_pb2.SamplingParams(max_tokens=max_tokens, ignore_eos=True)


def http_streamed(service: Service, prompt_token_ids: list[int], max_tokens: int) -> Caller:
    """A streamed completion over HTTP."""
    return HttpCaller(service, prompt_token_ids, max_tokens, stream=True)


def http_in_one_piece(service: Service, prompt_token_ids: list[int], max_tokens: int) -> Caller:
    """A completion over HTTP in one piece."""
    return HttpCaller(service, prompt_token_ids, max_tokens, stream=False)


def websocket(service: Service, prompt_token_ids: list[int], max_tokens: int) -> Caller:
    """A completion over a WebSocket."""
    return WebSocketCaller(service, prompt_token_ids, max_tokens)


def text_rpc(service: Service, prompt_token_ids: list[int], max_tokens: int) -> Caller:
    """A call of the text service."""
    channel = grpc.insecure_channel(service.tokenizer)
    tokens = text_pb2.TokenPrompt(token_ids=prompt_token_ids)
    request = text_pb2.GenerateRequest(tokens=tokens, sampling_params=sampling(max_tokens))
    return RpcCaller(channel, text_pb2_grpc.TextServiceStub(channel).Generate(request))


def engine_rpc(service: Service, prompt_token_ids: list[int], max_tokens: int) -> Caller:
    """A call of the engine service."""
    channel = grpc.insecure_channel(service.engine)
    request = engine_pb2.GenerateRequest(prompt_token_ids=prompt_token_ids, sampling_params=sampling(max_tokens))
    return RpcCaller(channel, engine_pb2_grpc.EngineServiceStub(channel).Generate(request))


WAYS = {
    "http streamed": http_streamed,
    "http in one piece": http_in_one_piece,
    "websocket": websocket,
    "text rpc": text_rpc,
    "engine rpc": engine_rpc,
}
