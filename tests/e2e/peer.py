"""vLLM's own OpenAI server, as the peer that answers are compared with."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.e2e.service import free_ports, wait_until

MAX_TOKENS = 40


@dataclass(frozen=True)
class PeerAnswer:
    """An answer and the ids that it and its prompt consist of."""

    text: str
    token_ids: list[int]
    prompt_token_ids: list[int]
    finish_reason: str


def peer_answers(model: Path, prompts: Sequence[str], log_file: Path) -> dict[str, PeerAnswer]:
    """Start vLLM's server, ask it each prompt as a chat at temperature 0, and end it."""
    (port,) = free_ports(1)
    arguments = ["--dtype", "float32", "--enforce-eager", "--no-enable-chunked-prefill"]
    arguments += ["--kv-cache-memory-bytes", str(2 * 1024**3), "--host", "127.0.0.1", "--port", str(port)]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), *arguments]
    with log_file.open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: _is_up(process, url), 180, "vLLM's server is not up")
        return {prompt: _ask(url, str(model), prompt) for prompt in prompts}
    finally:
        process.terminate()
        process.wait(60)


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
