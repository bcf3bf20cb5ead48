"""Loading a model with vLLM, and ending its processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import structlog
from vllm.config import StructuredOutputsConfig, VllmConfig
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.platforms import current_platform
from vllm.v1.engine.core_client import AsyncMPClient, EngineCoreClient
from vllm.v1.engine.exceptions import EngineDeadError
from vllm.v1.engine.input_processor import InputProcessor
from vllm.v1.executor import Executor

from services.engine.port import Engine, EngineDead
from services.engine.vllm_adapter.constraints import BACKEND, ConstraintCompiler
from services.engine.vllm_adapter.engine import VllmEngine
from services.engine.vllm_adapter.output_reader import OutputReader
from services.engine.vllm_adapter.process import first_line

log = structlog.get_logger(__name__)

# What a CPU engine needs beyond vLLM's own defaults: bfloat16 gives wrong text
# there, and compiling gains nothing. The budget of tokens bounds a step to about
# half a second, so that a long prompt neither holds up streams nor outlives its caller.
_CPU_ARGUMENTS: Mapping[str, Any] = {
    "dtype": "float32",
    "enforce_eager": True,
    "enable_chunked_prefill": True,
    "max_num_batched_tokens": 256,
    "kv_cache_memory_bytes": 2 * 1024**3,
    "worker_cls": "services.engine.vllm_adapter.cpu_worker.SeededCPUWorker",
}
# Else the first request with log probabilities waits 15 s for a compiler.
_CPU_ENVIRONMENT = {"TORCH_COMPILE_DISABLE": "1"}

_SHUTDOWN_SECONDS = 5.0


class VllmLoader:
    """Loads a model with vLLM.

    Args:
        source: directory or hub id of the model.
        arguments: vLLM's engine arguments by their own names, over the defaults.
    """

    def __init__(self, source: str, arguments: Mapping[str, Any]) -> None:
        self._source = source
        self._arguments = arguments
        self._tokenizer_directory = Path(source)

    @property
    def tokenizer_directory(self) -> Path:
        """Where the tokenizer's files lie; for a hub id, in the hub's cache once loaded."""
        return self._tokenizer_directory

    @asynccontextmanager
    async def load(self) -> AsyncGenerator[Engine, None]:
        """Load the model; leaving the block ends vLLM's processes.

        Raises:
            EngineDead: it cannot be loaded.
        """
        # vLLM blocks for the whole load.
        config, client = await asyncio.to_thread(self._start)
        processor = InputProcessor(config)
        constraints = ConstraintCompiler(config, processor.tokenizer)
        try:
            await asyncio.to_thread(constraints.prepare)
            reader = OutputReader(client)
            try:
                tasks = await client.get_supported_tasks_async()
            except EngineDeadError:
                raise EngineDead(f"{self._source} cannot be loaded: vLLM's engine core died at once") from None
            yield VllmEngine(client, reader, processor, constraints, tasks)
        finally:
            constraints.close()
            await asyncio.shield(asyncio.to_thread(client.shutdown, _SHUTDOWN_SECONDS))
            processor.renderer.shutdown()

    def _start(self) -> tuple[VllmConfig, AsyncMPClient]:
        arguments = dict(self._arguments)
        if current_platform.is_cpu():
            arguments = {**_CPU_ARGUMENTS, **arguments}
            os.environ.update(_CPU_ENVIRONMENT)
        try:
            arguments["structured_outputs_config"] = _structured_outputs(arguments.get("structured_outputs_config"))
            config = AsyncEngineArgs(model=self._source, **arguments).create_engine_config()
            client = EngineCoreClient.make_async_mp_client(
                vllm_config=config, executor_class=Executor.get_class(config), log_stats=True
            )
        except Exception as error:
            log.exception("model failed to load", source=self._source)
            raise EngineDead(f"{self._source} cannot be loaded: {first_line(error)}") from error
        self._tokenizer_directory = _directory_of(self._source)
        return config, client


def _structured_outputs(given: Any) -> StructuredOutputsConfig:
    return StructuredOutputsConfig(**{"backend": BACKEND, **(given or {})})


def _directory_of(source: str) -> Path:
    if os.path.isdir(source):
        return Path(source)
    # Loading has put the files into the hub's cache.
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(source, local_files_only=True))
