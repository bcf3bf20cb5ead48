"""Structured outputs are compiled without vLLM's core: bad ones are refused in time, whatever else is under way."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from services.chassis.errors import InvalidRequest, Overloaded
from services.engine.structured_output import Choice, JsonSchema, Regex, StructuralTag
from services.engine.vllm_adapter.process import prepare_environment

if TYPE_CHECKING:
    from services.engine.vllm_adapter.constraints import ConstraintCompiler

# Half a second of work each, at the first token.
HEAVY = Regex("((a{100}){100}){100}")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def compiler(tiny_model: Path) -> AsyncGenerator[ConstraintCompiler, None]:
    """A compiler for the tiny model."""
    prepare_environment()
    from vllm.config import StructuredOutputsConfig
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.tokenizers import cached_tokenizer_from_config

    from services.engine.vllm_adapter.constraints import BACKEND, ConstraintCompiler

    structured = StructuredOutputsConfig(backend=BACKEND)
    config = AsyncEngineArgs(model=str(tiny_model), structured_outputs_config=structured).create_engine_config()
    compiler = ConstraintCompiler(config, cached_tokenizer_from_config(config.model_config))
    compiler.prepare()
    yield compiler
    compiler.close()


@pytest.mark.asyncio(loop_scope="module")
class TestConstraints:
    async def test_good_ones_become_vllms_parameters(self, compiler: ConstraintCompiler) -> None:
        """They carry what was asked and the one backend, so that the core need not look again."""
        params = await compiler.compile(Choice(("a", "b")))
        assert (params.choice, params._backend) == (["a", "b"], "guidance")
        schema = {"type": "object", "properties": {"z": {}, "a": {}}}
        params = await compiler.compile(JsonSchema(json.dumps(schema)))
        assert isinstance(params.json, str)
        assert list(json.loads(params.json)["properties"]) == ["z", "a"]

    async def test_structural_tags(self, compiler: ConstraintCompiler) -> None:
        """Tags with a schema each compile; another form is refused."""
        tag = {"structures": [{"begin": "[f]", "schema": {"type": "object"}, "end": "[/f]"}], "triggers": ["[f]"]}
        assert (await compiler.compile(StructuralTag(json.dumps(tag)))).structural_tag is not None
        with pytest.raises(InvalidRequest, match="refused"):
            await compiler.compile(StructuralTag('{"type": "structural_tag", "format": {}}'))

    async def test_the_loop_goes_on_meanwhile(self, compiler: ConstraintCompiler) -> None:
        """While heavy ones are compiled, the event loop is never held up for long."""
        longest = 0.0

        async def watch() -> None:
            nonlocal longest
            while True:
                last = time.monotonic()
                await asyncio.sleep(0.001)
                longest = max(longest, time.monotonic() - last)

        watching = asyncio.create_task(watch())
        for _ in range(2):
            with pytest.raises(InvalidRequest):
                await compiler.compile(HEAVY)
        watching.cancel()
        assert longest < 0.2

    async def test_heavy_ones_in_a_row(self, compiler: ConstraintCompiler) -> None:
        """Each is refused in bounded time, and a good one is served right after, while the heavy one is worked off."""
        for _ in range(2):
            begin = time.monotonic()
            with pytest.raises(InvalidRequest):
                await compiler.compile(HEAVY)
            assert time.monotonic() - begin < 5.0
            await compiler.compile(Choice(("a",)))

    async def test_memory_does_not_grow_with_the_number_of_schemas(self, compiler: ConstraintCompiler) -> None:
        """10,000 different schemas in a row leave less than 100 MB behind: whatever is kept of them is bounded."""

        async def compile_all(numbers: range) -> None:
            for number in numbers:
                schema = {"type": "object", "properties": {f"name{number}": {"const": number}}}
                await compiler.compile(JsonSchema(json.dumps(schema)))

        await compile_all(range(1000))
        before = _resident_kib()
        await compile_all(range(1000, 11_000))
        assert _resident_kib() - before < 100 * 1024

    async def test_leaving_frees_its_place_when_its_work_is_done(self, compiler: ConstraintCompiler) -> None:
        """Callers who leave at once gather no threads: those who come next wait their turn."""
        leaving = [asyncio.create_task(compiler.compile(HEAVY)) for _ in range(40)]
        await asyncio.sleep(0.01)
        for task in leaving:
            task.cancel()
        ends = await asyncio.gather(*leaving, return_exceptions=True)
        assert all(isinstance(end, (asyncio.CancelledError, InvalidRequest, Overloaded)) for end in ends)
        assert (await compiler.compile(Choice(("a",)))).choice == ["a"]


def _resident_kib() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
