"""The scripted text service and the tokenizer tier take answers apart alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from services.tokenizer.__main__ import serve
from services.tokenizer.settings import TokenizerSettings
from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2
from tests.contracts.live_text import LiveText, live_text
from tests.contracts.text_parts_contract import Saying, TextPartsContract
from tests.e2e.service import free_ports
from tests.fakes.scripted_text_service import ScriptedTextService
from tests.tokenizer.engine_fixtures import MODEL, EngineTier, running_engine


def chat(words: str, seed: int | None = None) -> text_pb2.GenerateRequest:
    """A chat of one message."""
    return text_pb2.GenerateRequest(
        chat=chat_pb2.ChatPrompt(messages=[chat_pb2.ChatMessage(role="user", text=words)]),
        sampling_params=sampling_pb2.SamplingParams(seed=seed),
    )


class TestScriptedTextService(TextPartsContract):
    @pytest_asyncio.fixture
    async def text(self) -> AsyncGenerator[LiveText, None]:
        """A scripted text service of its own for each test."""
        service = ScriptedTextService()
        async with (
            service.serve() as port,
            live_text(f"127.0.0.1:{port}", "scripted", lambda: service.live == 0) as live,
        ):
            yield live

    @pytest.fixture
    def saying(self) -> Saying:
        """It says the message back."""
        return chat


class TestTextTier(TextPartsContract):
    @pytest_asyncio.fixture
    async def engine(self, smollm2: Path) -> AsyncGenerator[EngineTier, None]:
        """A scripted engine behind the real engine tier."""
        async with running_engine(smollm2) as engine:
            yield engine

    @pytest_asyncio.fixture
    async def text(self, engine: EngineTier) -> AsyncGenerator[LiveText, None]:
        """The tier as its process composes it, told by its settings how the model writes."""
        (port,) = free_ports(1)
        settings = TokenizerSettings(
            engine=f"127.0.0.1:{engine.port}",
            port=port,
            metrics_port=0,
            drain_seconds=0.0,
            tool_parser="hermes",
            reasoning_parser="think",
        )
        stopping = asyncio.Event()
        serving = asyncio.create_task(serve(settings, stopping))
        try:
            async with live_text(f"127.0.0.1:{port}", MODEL, engine.idle) as live:
                yield live
        finally:
            stopping.set()
            await serving

    @pytest.fixture
    def saying(self, engine: EngineTier) -> Saying:
        """The engine says what it was given under the request's seed."""

        def request(answer: str) -> text_pb2.GenerateRequest:
            engine.lines.by_seed[7] = list(engine.loader.shape.encode(answer))
            return chat("Go on.", seed=7)

        return request
