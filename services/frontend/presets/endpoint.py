"""GET /v1/presets and /v1/presets/{name}."""

from __future__ import annotations

from dataclasses import dataclass

import orjson
from starlette.types import Receive, Scope, Send

from services.frontend.presets.library import Presets
from services.frontend.responses import send_body


@dataclass(frozen=True, slots=True)
class PresetList:
    """Lists all presets."""

    presets: Presets

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Serve one request."""
        shown = [preset.public() for preset in self.presets.all()]
        await send_body(send, orjson.dumps({"object": "list", "data": shown}))


@dataclass(frozen=True, slots=True)
class PresetCard:
    """Shows one preset."""

    presets: Presets

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Serve one request.

        Raises:
            NotFound: there is no such preset.
        """
        await send_body(send, orjson.dumps(self.presets.named(scope["path_params"]["name"]).public()))
