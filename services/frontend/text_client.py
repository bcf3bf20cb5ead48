"""The text services behind this tier: which of them takes a generation, and what models there are."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import grpc.aio

from services.chassis.errors import ServiceError, Unavailable
from services.frontend.models import Model, ModelState, merged
from services.frontend.models_client import ModelsClient
from services.frontend.sink import Sink
from services.frontend.text_link import Generation, TextLink
from services.frontend.wire import WireRequest


class TextClient:
    """Several text services as one.

    Args:
        channels: an open channel to each, by address.
    """

    def __init__(self, channels: Mapping[str, grpc.aio.Channel]) -> None:
        self._services = [
            (TextLink(address, channel), ModelsClient(address, channel)) for address, channel in channels.items()
        ]

    @property
    def connected(self) -> int:
        """Number of text services that can be asked."""
        return sum(link.connected for link, _ in self._services)

    @property
    def live(self) -> int:
        """Number of generations under way."""
        return sum(link.live for link, _ in self._services)

    @property
    def healthy(self) -> bool:
        """Whether a text service is connected and has a model that is ready."""
        return any(
            link.connected and any(model.state is ModelState.READY for model in watch.models)
            for link, watch in self._services
        )

    def models(self) -> list[Model]:
        """Return the models of all text services, in order of name.

        Raises:
            Unavailable: none is connected, so that nobody knows.
        """
        if not self.connected:
            raise self._nobody()
        return merged(watch.models for link, watch in self._services if link.connected)

    def start(self, request: WireRequest, sink: Sink) -> Generation:
        """Start a generation at the least busy text service that has the model.

        An unknown model goes to any of them: what it says is the answer.

        Raises:
            Unavailable: none is connected.
        """
        connected = [(link, watch) for link, watch in self._services if link.connected]
        if not connected:
            raise self._nobody()
        having = [link for link, watch in connected if any(model.name == request.model for model in watch.models)]
        link = min(having or [link for link, _ in connected], key=lambda link: link.live)
        return link.start(request.message, sink)

    def fail_all(self, error: ServiceError) -> None:
        """End all generations under way with an error."""
        for link, _ in self._services:
            link.fail_all(error)

    async def run(self) -> None:
        """Keep links and lists of models up until cancelled."""
        async with asyncio.TaskGroup() as group:
            for link, watch in self._services:
                group.create_task(link.run())
                group.create_task(watch.run())

    def _nobody(self) -> Unavailable:
        addresses = ", ".join(link.address for link, _ in self._services)
        return Unavailable(f"no text service can be reached ({addresses}); try again")
