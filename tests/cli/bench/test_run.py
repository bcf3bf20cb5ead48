"""Whole runs against the real frontend and the real tokenizer, before a scripted engine."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from services.cli.bench.run import run_bench
from tests.cli.bench.run_options import options
from tests.frontend.conftest import Frontend, running_frontend, until_ready
from tests.tokenizer.engine_fixtures import EngineTier, running_engine, running_text, until

ENDLESS = ("--extra-body", '{"ignore_eos": true}')


@pytest_asyncio.fixture
async def stack(smollm2: Path) -> AsyncGenerator[tuple[Frontend, EngineTier]]:
    """All tiers, the engine's steps 2 ms apart."""
    async with (
        running_engine(smollm2, tick_seconds=0.002) as engine,
        running_text(engine) as text,
        running_frontend(text.port) as frontend,
    ):
        await until_ready(frontend)
        yield frontend, engine


async def bench(frontend: Frontend, *arguments: str) -> dict[str, Any]:
    """Run a load against a frontend."""
    return await run_bench(options(*arguments, *ENDLESS, url=frontend.url), quiet=True)


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
async def test_every_token_is_counted(stack: tuple[Frontend, EngineTier], endpoint: str) -> None:
    """Tokens, requests and latencies of a run add up, whichever endpoint is asked."""
    arguments = ("--endpoint", endpoint, "--concurrency", "8", "--requests", "24", "--output-tokens", "30")
    found = await bench(stack[0], *arguments, "--pid", f"all={os.getpid()}", "--warmup", "3")
    assert found["model"] == "scripted"
    assert found["requests"]["completed"] == found["requests"]["sent"] == 24
    assert (found["tokens"]["completion"], found["tokens"]["completion_estimated"]) == (24 * 30, 0)
    assert found["errors"] == []
    assert found["ttft_ms"]["count"] == found["e2e_ms"]["count"] == 24
    # Tokens whose text is held back have no chunk of their own, and none has two.
    assert 0.8 * 24 * 30 <= found["tokens"]["chunks"] <= 24 * 30
    assert found["gap_per_token_ms"]["p50"] >= 1.5
    assert found["e2e_ms"]["p50"] >= 30 * 2
    assert found["cpu"]["total"]["cpu_s"] > 0


async def test_prompt_ids_are_exact(stack: tuple[Frontend, EngineTier]) -> None:
    """Where token ids are sent, the server counts as many prompt tokens as were asked for."""
    ids = ("--endpoint", "completions", "--prompt-ids", "--vocabulary", "49152", "--prompt-tokens", "50")
    found = await bench(stack[0], *ids, "--shared-prefix", "20/1", "--requests", "5", "--output-tokens", "4")
    assert found["tokens"]["prompt"] == 5 * 70


async def test_words_are_about_as_many_tokens(stack: tuple[Frontend, EngineTier]) -> None:
    """A text prompt of the default model has the wanted number of tokens within a tenth."""
    arguments = ("--endpoint", "completions", "--prompt-tokens", "300", "--requests", "5", "--output-tokens", "4")
    found = await bench(stack[0], *arguments)
    assert found["tokens"]["prompt"] == pytest.approx(5 * 300, rel=0.1)


async def test_several_choices_are_apart(stack: tuple[Frontend, EngineTier]) -> None:
    """With n, the tokens of all choices count, and gaps are those within a choice: not shorter than a step."""
    arguments = ("--requests", "3", "--output-tokens", "20", "--extra-body", '{"n": 3, "ignore_eos": true}')
    found = await run_bench(options(*arguments, url=stack[0].url), quiet=True)
    assert found["tokens"]["completion"] == 3 * 3 * 20
    assert found["itl_ms"]["p50"] >= 1.0


async def test_left_streams_leave_nothing_behind(stack: tuple[Frontend, EngineTier]) -> None:
    """Requests that are left, and those that the end of the time cuts off, end in the engine, too."""
    frontend, engine = stack
    arguments = ("--cancel-share", "0.5", "--output-tokens", "200", "--concurrency", "16", "--duration", "1.5")
    found = await bench(frontend, *arguments)
    requests = found["requests"]
    assert requests["failed"] == 0
    assert requests["cancelled"] > 0 and requests["unfinished"] > 0
    await until(engine.idle, 1)
