"""vLLM's own OpenAI server, as the peer that answers are compared with."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.e2e.service import free_ports, wait_until

MAX_TOKENS = 40

# What our engine gives vLLM on a CPU, so that both compute the same numbers in the same steps.
_ARGUMENTS = (
    "--dtype=float32",
    "--enforce-eager",
    "--enable-chunked-prefill",
    "--max-num-batched-tokens=256",
    f"--kv-cache-memory-bytes={2 * 1024**3}",
    "--worker-cls=services.engine.vllm_adapter.cpu_worker.SeededCPUWorker",
    '--structured-outputs-config={"backend": "guidance"}',
    "--disable-uvicorn-access-log",
)
# Calls as our tokenizer reads them where a template shows no tools; tools shown only where they may be used.
TOOLS = ("--enable-auto-tool-choice", "--tool-call-parser=hermes", "--exclude-tools-when-tool-choice-none")
# Reasoning between <think> and </think>, but only of requests that ask for it by the template's variable.
REASONING = ("--reasoning-parser=deepseek_v3",)
_ENVIRONMENT = {
    "TORCH_COMPILE_DISABLE": "1",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "VLLM_NO_USAGE_STATS": "1",
    # Calls are enforced by a JSON schema; the grammar that vLLM 0.32 prefers is none that its guidance backend reads.
    "VLLM_ENFORCE_STRICT_TOOL_CALLING": "0",
}


@dataclass(frozen=True)
class PeerAnswer:
    """An answer and the ids that it and its prompt consist of."""

    text: str
    token_ids: list[int]
    prompt_token_ids: list[int]
    finish_reason: str


@contextmanager
def running_peer(model: Path, log_file: Path, *options: str) -> Iterator[str]:
    """Start vLLM's server on a model, under the name that our service gives it, yield its URL, and end it."""
    with peer_process(model, log_file, *options) as (url, _):
        yield url


@contextmanager
def peer_process(model: Path, log_file: Path, *options: str) -> Iterator[tuple[str, int]]:
    """The same, and its process id."""
    (port,) = free_ports(1)
    where = [f"--model={model}", f"--served-model-name={model.name}", "--host=127.0.0.1", f"--port={port}"]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *where, *_ARGUMENTS, *options]
    with log_file.open("w") as log:
        environment = {**os.environ, **_ENVIRONMENT}
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: _is_up(process, url), 180, "vLLM's server is not up")
        yield url, process.pid
    finally:
        process.terminate()
        process.wait(60)


def peer_answers(url: str, model: str, prompts: Sequence[str]) -> dict[str, PeerAnswer]:
    """Ask a running peer each prompt as a chat at temperature 0."""
    return {prompt: _ask(url, model, prompt) for prompt in prompts}


def _is_up(process: subprocess.Popen[bytes], url: str) -> bool:
    assert process.poll() is None, "vLLM's server ended"
    try:
        return httpx.get(f"{url}/health").status_code == 200
    except httpx.TransportError:
        return False


def _ask(url: str, model: str, prompt: str) -> PeerAnswer:
    body = {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "temperature": 0,
        "max_tokens": MAX_TOKENS,
        "return_token_ids": True,
    }
    answer = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=120).raise_for_status().json()
    choice = answer["choices"][0]
    return PeerAnswer(
        choice["message"]["content"], choice["token_ids"], answer["prompt_token_ids"], choice["finish_reason"]
    )
