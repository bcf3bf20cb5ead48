"""What the tiers log of a request."""

from __future__ import annotations

import httpx

from tests.e2e.service import Service, wait_until

SECRET = "Zanzibar peppercorn"


def test_request_id_is_in_all_tiers_and_text_in_none(service: Service) -> None:
    """Each tier logs the request with the caller's id; neither prompt nor answer is in any log."""
    request_id = "trace-me-through-all-tiers"
    answer = httpx.post(
        f"{service.url}/v1/chat/completions",
        headers={"x-request-id": request_id},
        json={
            "model": service.model,
            "messages": [{"role": "user", "content": f"Say the words {SECRET}."}],
            "max_tokens": 8,
            "temperature": 0,
        },
        timeout=60,
    )
    assert answer.headers["x-request-id"] == request_id
    text = answer.json()["choices"][0]["message"]["content"]

    def tiers() -> set[object]:
        return {line["service"] for line in service.log() if line.get("request_id") == request_id}

    wait_until(lambda: tiers() == {"frontend", "tokenizer", "engine"}, 2, f"logged by {tiers()} only")
    log = service.log_file.read_text()
    assert SECRET not in log
    assert text.strip() not in log
