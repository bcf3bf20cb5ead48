"""Findings of filters and format checks in answers: where they stand, and that they are absent without any."""

from __future__ import annotations

import json

import pytest

from services.frontend.chunks import Chunks
from services.frontend.findings import FilterMatch, FormatFault, finding_objects
from services.frontend.findings_wire import filter_matches, format_faults
from services.frontend.shapes import Answer, ChatShape, Choice, CompletionShape, Shape
from services.frontend.sink import Detail, Finished, Usage
from services.frontend.wire import detail_of, finished_of
from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import text_pb2

MATCH, FAULT = FilterMatch("mask", "r", 3, 4), FormatFault("json", 7, "no value")
TOLD = {
    "filter_matches": [{"action": "mask", "rule": "r", "start": 3, "length": 4}],
    "format_faults": [{"check": "json", "position": 7, "message": "no value"}],
}
MATCH_MESSAGE = text_pb2.FilterMatch(action=text_pb2.FilterMatch.ACTION_MASK, rule="r", start=3, length=4)
FAULT_MESSAGE = text_pb2.FormatFault(check=text_pb2.FORMAT_CHECK_JSON, position=7, message="no value")
SHAPES = [ChatShape(), CompletionShape()]


def finished(*, found: bool) -> Finished:
    """An end, with findings or without."""
    usage = Usage(1, 1)
    return Finished(0, "stop", None, usage, (MATCH,), (FAULT,)) if found else Finished(0, "stop", None, usage)


def choice_of(event: bytes) -> dict[str, object]:
    """The choice of an event."""
    (choice,) = json.loads(event.removeprefix(b"data: "))["choices"]
    assert isinstance(choice, dict)
    return choice


def test_objects() -> None:
    """Each kind is a member where there are any of it."""
    assert finding_objects((MATCH,), (FAULT,)) == TOLD
    assert finding_objects((), ()) == {}
    assert set(finding_objects((), (FAULT,))) == {"format_faults"}


@pytest.mark.parametrize("shape", SHAPES)
def test_in_chunks(shape: Shape) -> None:
    """A chunk of its own tells what was found, with empty text; the closing chunk tells all again."""
    chunks = Chunks(shape, Answer("id", 1, "m"), 1, with_usage=False)
    told = choice_of(chunks.findings(0, Detail("", filter_matches=(MATCH,), format_faults=(FAULT,))))
    assert told == shape.piece(0, "") | TOLD
    closing = choice_of(chunks.closing(finished(found=True)))
    assert TOLD.items() <= closing.items()
    assert not TOLD.keys() & choice_of(chunks.closing(finished(found=False))).keys()


@pytest.mark.parametrize("shape", SHAPES)
def test_in_whole_answers(shape: Shape) -> None:
    """A choice of a whole answer has them beside its finish reason, and none where nothing was found."""
    assert TOLD.items() <= shape.whole_choice(Choice("a", "", finished(found=True))).items()
    assert not TOLD.keys() & shape.whole_choice(Choice("a", "", finished(found=False))).keys()


def test_from_messages() -> None:
    """An entry's detail and an end bring them; an action that is unknown here counts as a mask, and a check that is
    unknown cannot have been asked for."""
    detail = detail_of(text_pb2.EntryDetail(filter_matches=[MATCH_MESSAGE], format_faults=[FAULT_MESSAGE]))
    assert (tuple(detail.filter_matches), tuple(detail.format_faults)) == ((MATCH,), (FAULT,))
    end = finished_of(
        text_pb2.Finished(
            reason=sampling_pb2.FINISH_REASON_CONTENT_FILTER,
            filter_matches=[MATCH_MESSAGE],
            format_faults=[FAULT_MESSAGE],
        )
    )
    assert (end.reason, tuple(end.filter_matches), tuple(end.format_faults)) == ("content_filter", (MATCH,), (FAULT,))
    assert filter_matches([text_pb2.FilterMatch(rule="r", start=3, length=4)]) == (MATCH,)
    assert format_faults([text_pb2.FormatFault(position=1)]) == ()
