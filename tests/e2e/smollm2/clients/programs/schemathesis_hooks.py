"""Makes schemathesis's requests reach the model, and keeps them short."""

from __future__ import annotations

import os
from typing import Any

import schemathesis

MODEL = os.environ["SERVED_MODEL"]
MOST = {"max_tokens": 3, "max_completion_tokens": 3, "n": 2, "min_tokens": 1}


@schemathesis.hook
def map_body(_context: object, body: Any) -> Any:
    """Ask for the served model where one is asked for at all, and for few tokens."""
    if not isinstance(body, dict):
        return body
    if isinstance(body.get("model"), str):
        body["model"] = MODEL
    if "messages" in body or "prompt" in body or "session_id" in body:
        body.setdefault("max_tokens", MOST["max_tokens"])
    for name, most in MOST.items():
        # What is too large for the API stays so.
        if isinstance(body.get(name), int) and most < body[name] < 2**32:
            body[name] = most
    return body
