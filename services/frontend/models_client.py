"""The models of one text service, as it tells them."""

from __future__ import annotations

import asyncio

import grpc.aio
import structlog

from services.chassis.status import error_of_call
from services.frontend import wire
from services.frontend.models import Model
from streamomni.text.v1 import text_pb2, text_pb2_grpc

log = structlog.get_logger(__name__)

_RECONNECT_SECONDS = 0.5


class ModelsClient:
    """Follows `WatchModels` of one text service; `models` is its present list, empty while it is away."""

    def __init__(self, address: str, channel: grpc.aio.Channel) -> None:
        self._address = address
        self._stub = text_pb2_grpc.TextServiceStub(channel)
        self._told: str | None = None
        self.models: tuple[Model, ...] = ()

    async def run(self) -> None:
        """Follow the list until cancelled."""
        while True:
            call = self._stub.WatchModels(text_pb2.WatchModelsRequest())
            try:
                async for response in call:
                    self.models = tuple(wire.model_of(model) for model in response.models)
                    self._told = None
                self._tell_lost("it ended the call")
            except grpc.aio.AioRpcError as call_error:
                self._tell_lost(error_of_call(call_error).message)
            finally:
                call.cancel()
                self.models = ()
            await asyncio.sleep(_RECONNECT_SECONDS)

    def _tell_lost(self, cause: str) -> None:
        # Once for each cause, not at each attempt.
        if cause != self._told:
            log.warning("models unknown", peer=self._address, error=cause)
            self._told = cause
