"""What `up` prints when the service is ready."""

from __future__ import annotations

import json
import re
import subprocess

from tests.e2e.service import Service


def test_curl_of_the_ready_line_works(service: Service) -> None:
    """The one line that `up` prints names the URL, and its curl works as it stands."""
    assert service.url in service.ready_line
    command = re.search(r"curl .*", service.ready_line)
    assert command is not None
    done = subprocess.run(command.group(0), shell=True, capture_output=True, text=True, timeout=120, check=True)
    payload = [line.removeprefix("data: ") for line in done.stdout.splitlines() if line.strip()]
    assert json.loads(payload[0])["model"] == service.model
