"""Traces: files that say what to send and when."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.cli.arguments import UsageError
from services.cli.bench.trace import TraceEntry, read_trace


def written(directory: Path, *lines: str) -> Path:
    """A trace file of these lines."""
    path = directory / "trace.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_entries_are_sorted_by_time(tmp_path: Path) -> None:
    """Lines may come in any order, with empty ones between."""
    path = written(
        tmp_path,
        '{"at_s": 1.5, "prompt": "later"}',
        "",
        '{"at_s": 0, "prompt_tokens": 30, "max_tokens": 8}',
        '{"at_s": 0.5, "messages": [{"role": "user", "content": "hi"}]}',
    )
    assert read_trace(path, "chat") == [
        TraceEntry(0.0, 30, 8),
        TraceEntry(0.5, [{"role": "user", "content": "hi"}], None),
        TraceEntry(1.5, "later", None),
    ]


def test_completions_take_token_ids(tmp_path: Path) -> None:
    """A prompt may be token ids where the endpoint takes them."""
    path = written(tmp_path, '{"at_s": 0, "prompt": [1, 2, 3]}')
    assert read_trace(path, "completions") == [TraceEntry(0.0, [1, 2, 3], None)]


@pytest.mark.parametrize(
    ("line", "endpoint", "message"),
    [
        ("{", "chat", "it is no JSON object"),
        ("[]", "chat", "it is no JSON object"),
        ('{"prompt": "x"}', "chat", "at_s must be a number of seconds from 0 up"),
        ('{"at_s": -1, "prompt": "x"}', "chat", "at_s must be"),
        ('{"at_s": true, "prompt": "x"}', "chat", "at_s must be"),
        ('{"at_s": NaN, "prompt": "x"}', "chat", "at_s must be"),
        ('{"at_s": 0}', "chat", "give exactly one of messages, prompt, prompt_tokens"),
        ('{"at_s": 0, "prompt": "x", "prompt_tokens": 4}', "chat", "give exactly one of"),
        ('{"at_s": 0, "promt": "x"}', "chat", "'promt' is not known; allowed are at_s, max_tokens, messages"),
        ('{"at_s": 0, "prompt": "x", "max_tokens": 0}', "chat", "max_tokens must be a whole number from 1 up"),
        ('{"at_s": 0, "prompt_tokens": 0}', "chat", "prompt_tokens must be a whole number from 1 up"),
        ('{"at_s": 0, "prompt": [1]}', "chat", "token ids need --endpoint completions"),
        ('{"at_s": 0, "prompt": []}', "completions", "prompt must be a text or a list of token ids"),
        ('{"at_s": 0, "prompt": ["a"]}', "completions", "prompt must be a text or a list of token ids"),
        ('{"at_s": 0, "prompt": 5}', "completions", "prompt must be a text or a list of token ids"),
        ('{"at_s": 0, "messages": [{}]}', "completions", "messages need --endpoint chat"),
        ('{"at_s": 0, "messages": []}', "chat", "messages must be a list of objects"),
    ],
)
def test_wrong_line_is_named(tmp_path: Path, line: str, endpoint: str, message: str) -> None:
    """The error is one line with the number of the wrong one and what is allowed."""
    path = written(tmp_path, '{"at_s": 0, "prompt_tokens": 5}', line)
    with pytest.raises(UsageError) as refused:
        read_trace(path, endpoint)
    assert f"line 2 of the trace {path}: " in str(refused.value)
    assert message in str(refused.value) and "\n" not in str(refused.value)


def test_unreadable_trace_is_one_line(tmp_path: Path) -> None:
    """A file that is missing, empty or no text is refused."""
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_trace(tmp_path / "missing", "chat")
    with pytest.raises(UsageError, match="is empty"):
        read_trace(written(tmp_path, "", " "), "chat")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="it is not UTF-8"):
        read_trace(tmp_path / "binary", "chat")
