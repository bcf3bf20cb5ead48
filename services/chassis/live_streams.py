"""The streams that one link started, by the numbers that its client gave them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import structlog

from services.chassis.errors import InternalError, InvalidRequest, ServiceError

log = structlog.get_logger(__name__)


class Cancellable(Protocol):
    """Work under way."""

    def cancel(self) -> None:
        """End it. Work that is over is left alone."""


Live = TypeVar("Live", bound=Cancellable)


class LiveStreams(Generic[Live]):
    """Starts and cancels a link's streams; a failure to start becomes an event of its stream.

    Args:
        report: tells the link's reader that the stream of this number failed.
    """

    def __init__(self, report: Callable[[int, ServiceError], None]) -> None:
        self._report = report
        self._live: dict[int, Live] = {}

    def start(self, stream_id: int, request_id: str, begin: Callable[[], Live]) -> None:
        """Start a stream with `begin`; what that raises is reported, and harms no other stream."""
        try:
            if stream_id in self._live:
                # The failure ends the stream of this number for its reader, so it ends here too.
                self._live.pop(stream_id).cancel()
                raise InvalidRequest(
                    f"stream {stream_id} is in use on this link; choose a new number", param="stream_id"
                )
            self._live[stream_id] = begin()
        except ServiceError as error:
            self._report(stream_id, error)
        except Exception:
            log.exception("stream failed to start", request_id=request_id)
            self._report(stream_id, InternalError())

    def cancel(self, stream_id: int) -> None:
        """End a stream; an unknown or ended one is left alone."""
        stream = self._live.pop(stream_id, None)
        if stream is not None:
            stream.cancel()

    def cancel_all(self) -> None:
        """End all: the link's client is gone."""
        while self._live:
            self._live.popitem()[1].cancel()

    def forget(self, stream_id: int) -> None:
        """A stream is over."""
        self._live.pop(stream_id, None)
