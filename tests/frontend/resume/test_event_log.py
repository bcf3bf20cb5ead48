"""Numbered events within a bound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.frontend.resume.event_log import EVENT_OVERHEAD_BYTES, EventLog


def test_events_get_ids_from_one() -> None:
    """Each event gets the next number as its id, in front, and is otherwise untouched."""
    log = EventLog()
    assert (log.first, log.last, log.after(0)) == (1, 0, [])
    assert log.append(b"data: a\n\n") == b"id: 1\ndata: a\n\n"
    assert log.append(b"data: b\n\n") == b"id: 2\ndata: b\n\n"
    assert log.after(0) == [b"id: 1\ndata: a\n\n", b"id: 2\ndata: b\n\n"]
    assert log.after(1) == [b"id: 2\ndata: b\n\n"]
    assert log.after(2) == []


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=60), st.integers(0, 5000))
def test_trimmed_logs_keep_the_newest(events: list[bytes], limit: int) -> None:
    """Whatever comes and however little is kept: the newest event stays, what is kept is the end of what came, in
    order, it takes at most the limit unless it is one event, and the size told is that of what is kept."""
    log, sent = EventLog(), []
    for event in events:
        sent.append(log.append(event))
        log.trim(limit)
        kept = log.after(log.first - 1)
        assert kept == sent[log.first - 1 :] != []
        assert log.size_bytes == sum(len(event) + EVENT_OVERHEAD_BYTES for event in kept)
        assert log.size_bytes <= limit or len(kept) == 1
    assert log.last == len(events)
