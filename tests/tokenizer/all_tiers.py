"""All three tiers in this process, over a scripted engine, and requests to them over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tokenizers import Tokenizer

from services.engine.port import Limits
from services.tokenizer.tokenizer_files import TOKENIZER_JSON
from tests.fakes.scripted_engine import Shape
from tests.frontend.conftest import Frontend, running_frontend, until_ready
from tests.tokenizer.engine_fixtures import MODEL, TextTier, running_tiers, until


@dataclass
class Tiers:
    """All tiers, and Hugging Face's tokenizer of the same files."""

    text: TextTier
    frontend: Frontend
    reference: Tokenizer

    async def post(self, path: str, **fields: Any) -> httpx.Response:
        """The answer in one piece."""
        return await self.frontend.client.post(f"/v1/{path}", json={"model": MODEL, **fields})

    async def chunks(self, path: str, **fields: Any) -> list[dict[str, Any]]:
        """The chunks of a streamed answer."""
        response = await self.post(path, stream=True, **fields)
        assert response.status_code == 200, response.text
        events = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
        assert events.pop() == "[DONE]"
        return [json.loads(event) for event in events]


@asynccontextmanager
async def all_tiers(
    directory: Path, end_token_ids: tuple[int, ...] = (2,), filters_file: Path | None = None
) -> AsyncGenerator[Tiers, None]:
    """Run all tiers with the tokenizer of a directory; in the end nothing of any request is left."""
    reference = Tokenizer.from_file(str(directory / TOKENIZER_JSON))
    limits = Limits(2048, vocab_size=reference.get_vocab_size(), max_logprobs=20, supports_priority=False)
    shape = Shape(limits=limits, end_token_ids=end_token_ids)
    async with running_tiers(directory, filters_file=filters_file, shape=shape) as text:
        await until(lambda: text.models.ready, 20)
        async with running_frontend(text.port) as frontend:
            await until_ready(frontend)
            yield Tiers(text, frontend, reference)
            await until(text.idle, 1)
