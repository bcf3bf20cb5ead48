"""Tokenizer and frontend serve from installations that hold no torch and no vLLM."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx

from tests.e2e.service import Service, free_ports, wait_until


def test_slim_tiers_serve(service: Service, slim_python: Callable[[str], Path], tmp_path: Path) -> None:
    """Started each from its own list's environment, both tiers answer with the running engine's model."""
    text_port, metrics_port, http_port = free_ports(3)
    settings = {
        "tokenizer": {
            "OMNI_TOKENIZER_ENGINE": service.engine,
            "OMNI_TOKENIZER_PORT": str(text_port),
            "OMNI_TOKENIZER_METRICS_PORT": str(metrics_port),
        },
        "frontend": {
            "OMNI_FRONTEND_TOKENIZERS": f"127.0.0.1:{text_port}",
            "OMNI_FRONTEND_PORT": str(http_port),
        },
    }
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    processes = [
        subprocess.Popen([str(slim_python(tier)), "-m", f"services.{tier}"], env={**environment, **own}, cwd=tmp_path)
        for tier, own in settings.items()
    ]
    try:
        url = f"http://127.0.0.1:{http_port}"
        wait_until(lambda: _is_ready(url), 30, "the slim tiers are not ready")
        body = {
            "model": service.model,
            "messages": [{"role": "user", "content": "What is the capital of France?"}],
            "temperature": 0,
            "max_tokens": 30,
        }
        answer = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=60).raise_for_status().json()
        assert "Paris" in answer["choices"][0]["message"]["content"]
    finally:
        for process in processes:
            process.terminate()
        codes = [process.wait(20) for process in processes]
    assert codes == [0, 0]


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/ready").status_code == 200
    except httpx.TransportError:
        return False
