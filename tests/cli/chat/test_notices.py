"""What readers are told beside an answer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from services.cli.answer_stream import Piece
from services.cli.chat.answer import Answer
from services.cli.chat.notices import notices, stats_lines

STOP = {"action": "stop", "rule": "secret\x1b[2J", "start": 4, "length": 6}
FAULT = {"check": "json", "position": 7, "message": "a bracket\nis not closed"}


def after(*pieces: Piece) -> Answer:
    """An answer that came in these pieces."""
    answer = Answer()
    for piece in pieces:
        answer.take(piece)
    return answer


@pytest.mark.parametrize(
    ("piece", "lines"),
    [
        (Piece("", "stop"), []),
        (Piece("", "length"), ["cut off: the answer reached its token limit"]),
        (Piece("", "content_filter"), ["stopped by an output filter"]),
        (
            Piece("", "content_filter", filter_matches=[STOP]),
            ["filter secret�[2J stopped the answer before 6 characters at 4"],
        ),
        (
            Piece("", "content_filter", format_faults=[FAULT]),
            ["json fault at character 7: a bracket is not closed", "stopped at the first fault"],
        ),
        (
            Piece("", "stop", context={"dropped_messages": 4, "dropped_tokens": 90, "summary": "They met."}),
            ["history trimmed: 4 earlier messages (90 tokens) were summarized so that the rest fits"],
        ),
    ],
)
def test_each_thing_is_one_line(piece: Piece, lines: Sequence[str]) -> None:
    """An ordinary answer needs no words; whatever differs gets one printable line."""
    assert notices(after(piece)) == lines


def test_stats_say_what_is_known() -> None:
    """Counts come from the service, cached tokens among them; what nobody told is unknown, not 0."""
    assert stats_lines(None) == ["no answer yet"]
    usage = {"prompt_tokens": 40, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 32}}
    lines = "\n".join(stats_lines(after(Piece("a"), Piece("", "stop", usage=usage))))
    assert "40 (32 of them cached)" in lines
    assert "answer tokens        9" in lines
    assert "tokens a second      unknown" in "\n".join(stats_lines(after(Piece("a"))))
