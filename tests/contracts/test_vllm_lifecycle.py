"""The life of vLLM's processes: what they leave behind, and what their death leaves of us."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from services.engine.port import EngineDead, Sampling
from tests.contracts.contract_requests import GREEDY, prompt
from tests.contracts.live_engine import live_engine
from tests.contracts.vllm_processes import all_gone, vllm_processes


async def test_killed_processes_are_told_and_the_model_loads_again(model_directory: Path) -> None:
    """A killed EngineCore or Worker ends `run` with EngineDead within 5 s; leaving frees all, and it loads anew.

    The engine is one that schedules by priority, which its limits tell and its requests may use. Loaded anew it
    computes prompts in one piece, which must not change a seeded request's tokens.
    """
    from services.engine.vllm_adapter.loader import VllmLoader

    arguments = {"max_model_len": 1024, "max_num_seqs": 8, "scheduling_policy": "priority"}
    in_one_piece = {"enable_chunked_prefill": False, "max_num_batched_tokens": 1024, "worker_cls": "auto"}
    seeded, long_prompt = Sampling(temperature=1.0, seed=7, max_tokens=12, ignore_eos=True), list(range(1, 1001))
    loader = VllmLoader(str(model_directory), arguments)
    assert loader.tokenizer_directory == model_directory
    async with live_engine(loader) as live:
        assert live.engine.limits.supports_priority is True
        first = await live.generate(prompt(1), GREEDY)
        in_chunks = await live.generate(long_prompt, seeded)
        running = live.start(prompt(2), Sampling(ignore_eos=True))
        await live.begin_of(running)
        processes = vllm_processes()
        assert set(processes) == {"EngineCore", "Worker"}
        os.kill(processes["EngineCore"][0], signal.SIGKILL)
        assert await live.until(lambda: live.failure is not None, 5.0)
        assert isinstance(live.failure, EngineDead) and "\n" not in str(live.failure)
        # What is asked of a dead engine is harmless.
        live.start(prompt(3), GREEDY)
        live.engine.abort([running.request_id])
    assert await all_gone([pid for pids in processes.values() for pid in pids], 5.0)

    async with live_engine(VllmLoader(str(model_directory), {**arguments, **in_one_piece})) as live:
        processes = vllm_processes()
        assert (await live.generate(prompt(1), GREEDY)).token_ids == first.token_ids
        assert (await live.generate(long_prompt, seeded)).token_ids == in_chunks.token_ids
        urgent = live.start(prompt(4), GREEDY, priority=-5)
        assert len((await live.end_of(urgent)).token_ids) == 12
        live.start(prompt(5), Sampling(ignore_eos=True))
        os.kill(processes["Worker"][0], signal.SIGKILL)
        assert await live.until(lambda: live.failure is not None, 5.0)
        assert isinstance(live.failure, EngineDead)
    assert await all_gone([pid for pids in processes.values() for pid in pids], 5.0)
    assert vllm_processes() == {}


async def test_model_that_cannot_be_loaded_is_told_in_one_line(tmp_path: Path) -> None:
    """A directory without a model raises EngineDead that names it, and leaves no process behind."""
    from services.engine.vllm_adapter.loader import VllmLoader

    with pytest.raises(EngineDead, match="cannot be loaded") as dead:
        async with asyncio.timeout(60.0), VllmLoader(str(tmp_path), {}).load():
            pass
    assert str(tmp_path) in str(dead.value) and "\n" not in str(dead.value)
    assert vllm_processes() == {}
