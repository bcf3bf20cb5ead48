"""Conversations as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from services.cli.chat.transcript import TranscriptError, save_transcript

MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Code?", "id": "msg_1", "siblings": ["msg_1"]},
    {"role": "assistant", "content": "```\nx\n```", "status": "partial", "usage": None},
]


def test_name_says_the_format(tmp_path: Path) -> None:
    """`.md` writes Markdown, `.json` an object whose messages a request can hold."""
    save_transcript(tmp_path / "a.md", MESSAGES, "tiny")
    assert (tmp_path / "a.md").read_text() == (
        "# Conversation with tiny\n\n## System\n\nBe brief.\n\n## User\n\nCode?\n\n"
        "## Assistant (partial)\n\n```\nx\n```\n"
    )
    save_transcript(tmp_path / "a.JSON", MESSAGES, "tiny")
    assert json.loads((tmp_path / "a.JSON").read_text()) == {
        "model": "tiny",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Code?"},
            {"role": "assistant", "content": "```\nx\n```", "status": "partial"},
        ],
    }


def test_file_is_the_users_alone_and_not_written_over(tmp_path: Path) -> None:
    """A file that is there is left as it is unless that is asked for, and others cannot read a new one."""
    path = tmp_path / "a.md"
    save_transcript(path, MESSAGES, "tiny")
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(TranscriptError, match=r"is there already; give another name, or write over it with -f"):
        save_transcript(path, [], "tiny")
    save_transcript(path, [], "tiny", replace=True)
    assert path.read_text() == "# Conversation with tiny\n"


@pytest.mark.parametrize(("name", "told"), [("a.txt", "ends with neither"), ("no/a.md", "cannot be written")])
def test_name_that_is_of_no_use_is_told(name: str, told: str, tmp_path: Path) -> None:
    """Another ending and a directory that is not there each give one line that says what to do."""
    with pytest.raises(TranscriptError, match=told) as caught:
        save_transcript(tmp_path / name, MESSAGES, "tiny")
    assert "\n" not in str(caught.value)
