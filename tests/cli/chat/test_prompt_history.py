"""What was typed, from one conversation to the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.cli.chat.prompt_history import PromptHistory


def test_entries_outlive_the_process(tmp_path: Path) -> None:
    """Texts of several lines come back as they were, oldest first; a repeated one is kept once."""
    history = PromptHistory(tmp_path / "state")
    for text in ("one", "two\nlines", "two\nlines", "drei €"):
        history.add(text)
    assert list(PromptHistory(tmp_path / "state").entries) == ["one", "two\nlines", "drei €"]


def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    """Directory and file are the user's alone, also where the file was readable before."""
    PromptHistory(tmp_path / "state").add("secret")
    (file,) = (tmp_path / "state").iterdir()
    assert (file.parent.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
    file.chmod(0o644)
    PromptHistory(tmp_path / "state")
    assert file.stat().st_mode & 0o777 == 0o600


def test_it_does_not_grow_without_end(tmp_path: Path) -> None:
    """The oldest entries go, and the file shrinks with them."""
    history = PromptHistory(tmp_path)
    for number in range(2100):
        history.add(f"question {number}")
    entries = PromptHistory(tmp_path).entries
    assert (len(entries), entries[0], entries[-1]) == (1000, "question 1100", "question 2099")
    (file,) = tmp_path.iterdir()
    assert len(file.read_text().splitlines()) == 1000
    assert file.stat().st_mode & 0o777 == 0o600


def test_broken_lines_are_passed_over(tmp_path: Path) -> None:
    """A line that was cut short costs itself only."""
    PromptHistory(tmp_path).add("one")
    (file,) = tmp_path.iterdir()
    file.write_text(file.read_text() + '"tw\n[1]\n"three"\n')
    assert list(PromptHistory(tmp_path).entries) == ["one", "three"]


def test_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """A directory that cannot be made raises; without one, entries are kept for this process."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        PromptHistory(tmp_path / "file" / "state")
    history = PromptHistory(None)
    history.add("one")
    assert list(history.entries) == ["one"]
