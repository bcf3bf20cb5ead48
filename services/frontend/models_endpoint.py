"""GET /v1/models and /v1/models/{name}."""

from __future__ import annotations

from dataclasses import dataclass

import orjson
from starlette.types import Receive, Scope, Send

from services.chassis.errors import Loading, NotFound, Unavailable
from services.frontend.models import ModelState
from services.frontend.responses import send_body
from services.frontend.shapes import model_object
from services.frontend.text_client import TextClient


@dataclass(frozen=True, slots=True)
class ModelList:
    """Lists the models that are ready."""

    texts: TextClient

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Serve one request.

        Raises:
            Unavailable: no text service is connected.
        """
        ready = [model_object(model) for model in self.texts.models() if model.state is ModelState.READY]
        await send_body(send, orjson.dumps({"object": "list", "data": ready}))


@dataclass(frozen=True, slots=True)
class ModelCard:
    """Describes one model."""

    texts: TextClient

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Serve one request.

        Raises:
            NotFound: there is no such model.
            Loading: it is not ready yet.
            Unavailable: it does not serve, or no text service is connected.
        """
        name = scope["path_params"]["name"]
        model = next((model for model in self.texts.models() if model.name == name), None)
        if model is None:
            raise NotFound("there is no model of this name; GET /v1/models lists the names", param="model")
        if model.state is ModelState.LOADING:
            raise Loading("the model is being loaded; try again", param="model")
        if model.state is not ModelState.READY:
            raise Unavailable(f"the model is {model.state.value}; choose another one or try again", param="model")
        await send_body(send, orjson.dumps(model_object(model)))
