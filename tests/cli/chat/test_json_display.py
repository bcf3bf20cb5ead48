"""Answers as JSON."""

from __future__ import annotations

import json
from typing import Any

from services.cli.answer_stream import Piece
from services.cli.chat.answer import Answer
from services.cli.chat.json_display import JsonDisplay

MATCH = {"action": "mask", "rule": "names", "start": 0, "length": 3}
OTHER = {"action": "report", "rule": "names", "start": 9, "length": 3}
PIECES = [
    Piece("", session={"id": "sess_1", "message_ids": [], "answer_id": "msg_2"}, context={"dropped_messages": 2}),
    Piece("", reasoning="hm"),
    Piece("é\x1b\x9b", filter_matches=[MATCH]),
    Piece("", "stop", filter_matches=[MATCH, OTHER]),
]


def written(with_events: bool) -> tuple[str, list[dict[str, Any]]]:
    """What an answer becomes, as text and as its lines' objects."""
    lines: list[str] = []
    display = JsonDisplay(lines.append, lambda line: None, with_events)
    answer, view = Answer(), display.answer()
    for piece in PIECES:
        answer.take(piece)
        view.take(piece)
    view.close()
    display.finish(answer, "tiny")
    text = "".join(lines)
    return text, [json.loads(line) for line in text.splitlines()]


def test_document_is_one_line() -> None:
    """Without events there is one object for the answer."""
    _, (document,) = written(with_events=False)
    assert document["content"] == "é\x1b\x9b"
    assert document["filter_matches"] == [MATCH, OTHER]


def test_events_come_in_order_and_end_with_the_document() -> None:
    """Each thing that happens is one line, a filter match once, and the last line has the whole."""
    _, events = written(with_events=True)
    kinds = [event["event"] for event in events]
    assert kinds == ["session", "context", "reasoning", "text", "filter_match", "filter_match", "end"]
    assert [event["rule"] + event["action"] for event in events[4:6]] == ["namesmask", "namesreport"]
    assert events[-1]["content"] == events[3]["text"]


def test_only_ascii_is_written() -> None:
    """Whatever the model wrote, nothing in the output can command a terminal."""
    text, _ = written(with_events=True)
    assert text.isascii()
    assert not set(text) & {"\x1b", "\x07", "\r"}
