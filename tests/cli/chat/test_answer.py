"""What has come of an answer, and how fast."""

from __future__ import annotations

from services.cli.answer_stream import Piece
from services.cli.chat.answer import Answer

MATCH = {"action": "mask", "rule": "names", "start": 0, "length": 3}
OTHER = {"action": "report", "rule": "names", "start": 9, "length": 3}


def test_speed_counts_from_the_first_token() -> None:
    """The time to the first token is waiting, the rate is over the tokens after it."""
    times = iter([0.0, 1.0, 3.0, 3.5, 4.0])
    answer = Answer(lambda: next(times))
    answer.asked()
    answer.take(Piece(""))
    answer.take(Piece("a"))
    answer.take(Piece("b"))
    answer.take(Piece("c"))
    assert (answer.text, answer.ttft, answer.tokens_per_second) == ("abc", 2.0, None)
    answer.take(Piece("", usage={"completion_tokens": 5}))
    assert answer.tokens_per_second == 4.0


def test_reports_are_counted_once() -> None:
    """The last piece holds all filter matches again; where it holds none, those on the way stay."""
    answer, other = Answer(), Answer()
    for one in (answer, other):
        one.take(Piece("x", filter_matches=[MATCH]))
    answer.take(Piece("", "stop", filter_matches=[MATCH, OTHER]))
    other.take(Piece("", "stop"))
    assert list(answer.filter_matches) == [MATCH, OTHER]
    assert list(other.filter_matches) == [MATCH]


def test_document_holds_all_of_it() -> None:
    """What is not known is null, so that each member is always there."""
    answer = Answer()
    assert answer.document("tiny") == {
        "model": "tiny",
        "session_id": None,
        "answer_id": None,
        "content": "",
        "reasoning": None,
        "finish_reason": None,
        "usage": None,
        "stats": {"ttft_ms": None, "tokens_per_second": None},
        "context": None,
        "filter_matches": [],
        "format_faults": [],
        "error": None,
    }
    answer.take(Piece("Yes", session={"id": "sess_1", "answer_id": "msg_2"}, reasoning="hm"))
    document = answer.document("tiny")
    assert (document["session_id"], document["answer_id"], document["reasoning"]) == ("sess_1", "msg_2", "hm")
    assert document["stats"]["ttft_ms"] >= 0
