from __future__ import annotations

from functools import partial

from services.chassis.errors import InternalError, InvalidRequest, NotFound, ServiceError
from services.chassis.live_streams import LiveStreams


class Work:
    """Remembers how often it was cancelled."""

    def __init__(self) -> None:
        self.cancels = 0

    def cancel(self) -> None:
        self.cancels += 1


def streams() -> tuple[LiveStreams[Work], list[tuple[int, ServiceError]]]:
    """Streams, and the failures that they report."""
    reported: list[tuple[int, ServiceError]] = []
    return LiveStreams[Work](lambda stream_id, error: reported.append((stream_id, error))), reported


def same(work: Work) -> Work:
    """Begins nothing but gives the work."""
    return work


def test_cancel_ends_one_and_cancel_all_the_rest() -> None:
    """Each stream is cancelled once, a forgotten or unknown one never."""
    live, reported = streams()
    works = [Work() for _ in range(4)]
    for number, work in enumerate(works):
        live.start(number, "r", partial(same, work))
    live.cancel(0)
    live.cancel(0)
    live.cancel(99)
    live.forget(1)
    live.cancel_all()
    live.cancel_all()
    assert [work.cancels for work in works] == [1, 0, 1, 1]
    assert reported == []


def test_failures_to_start_are_reported_alone() -> None:
    """An error of ours is told as it is, any other as a fixed text; the other streams go on."""
    live, reported = streams()
    good = Work()
    live.start(1, "r", lambda: good)
    missing = NotFound("no such model")

    def fail(error: Exception) -> Work:
        raise error

    live.start(2, "r", lambda: fail(missing))
    live.start(3, "r", lambda: fail(ZeroDivisionError("secret")))
    assert reported[0] == (2, missing)
    assert reported[1][0] == 3 and isinstance(reported[1][1], InternalError)
    assert "secret" not in reported[1][1].message
    assert good.cancels == 0


def test_a_number_in_use_ends_its_stream() -> None:
    """The second start of a live number is refused, and the first stream ends with it."""
    live, reported = streams()
    first, second = Work(), Work()
    live.start(7, "r", lambda: first)
    live.start(7, "r", lambda: second)
    assert first.cancels == 1
    assert [(number, type(error)) for number, error in reported] == [(7, InvalidRequest)]
    live.cancel_all()
    assert second.cancels == 0
