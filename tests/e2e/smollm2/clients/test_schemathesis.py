"""Requests made from the API's own description, right and wrong ones, against the running service."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import httpx

from services.cli.models import models_directory
from tests.e2e.service import Service, wait_until
from tests.e2e.smollm2.clients.installed import HERE, python_environment

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
EXAMPLES = 50


def test_description_holds(service: Service, tmp_path: Path) -> None:
    """No request made from /openapi.json gets a server error, and every answer has a described shape."""
    environment = python_environment("schemathesis", models_directory(os.environ).parent / "test-clients")
    options = [f"--checks={CHECKS}", f"--max-examples={EXAMPLES}", "--generation-deterministic", "--seed=1"]
    options += ["--phases=fuzzing", "--request-timeout=60", "--no-color"]
    run = subprocess.run(
        [str(environment / "bin" / "python"), "-m", "schemathesis.cli", "run", f"{service.url}/openapi.json", *options],
        check=False,
        cwd=tmp_path,
        env={
            **os.environ,
            "SCHEMATHESIS_HOOKS": "schemathesis_hooks",
            "PYTHONPATH": str(HERE / "programs"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "SERVED_MODEL": service.model,
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
    assert httpx.get(f"{service.url}/health/ready").status_code == 200
    wait_until(service.is_idle, 1, "the engine still works")
