"""Answers that grow on a terminal in memory."""

from __future__ import annotations

import asyncio
import io
import random

import pytest

from services.cli.answer_stream import Piece
from services.cli.chat.live_lines import Size
from services.cli.chat.markdown_display import MarkdownDisplay
from tests.cli.screen import Screen

ANSWER = """# Sorting

There are **many** ways to sort; two of them are well known, and both are stable, which sometimes matters.

1. merge sort
2. insertion sort

```python
def sort(items):
    return sorted(items)
```

| name | steps |
|------|-------|
| merge | n log n |

Done.
"""


class ScreenStream(io.StringIO):
    """A stream that ends at a screen."""

    def __init__(self, screen: Screen) -> None:
        super().__init__()
        self.screen = screen

    def write(self, text: str) -> int:
        self.screen.write(text)
        return len(text)


async def shown(pieces: list[str], columns: int = 50, rows: int = 30, pause: float = 0.0) -> list[str]:
    """What a terminal holds when an answer has come in these pieces."""
    screen = Screen(columns, rows)
    display = MarkdownDisplay(ScreenStream(screen), lambda: Size(screen.columns, screen.rows))
    view = display.answer()
    for text in pieces:
        view.take(Piece(text))
        await asyncio.sleep(pause)
    view.close()
    return screen.lines


@pytest.mark.parametrize("seed", range(5))
async def test_any_pieces_end_as_the_whole(seed: int) -> None:
    """However the answer is cut, the terminal ends up with what it would show of the whole at once."""
    chance, pieces, rest = random.Random(seed), [], ANSWER
    while rest:
        cut = chance.randint(1, 12)
        pieces.append(rest[:cut])
        rest = rest[cut:]
    assert await shown(pieces, pause=0.003) == await shown([ANSWER])


async def test_long_answer_is_in_the_scrollback_once() -> None:
    """An answer much longer than the terminal leaves each line once, in order."""
    paragraphs = [f"Paragraph {number} says a few words." for number in range(40)]
    code = [f"line_{number} = {number}" for number in range(300)]
    text = "\n\n".join(paragraphs) + "\n\n```python\n" + "\n".join(code) + "\n```\n"
    pieces = [text[at : at + 25] for at in range(0, len(text), 25)]
    lines = await shown(pieces, rows=8, pause=0.001)
    assert [line for line in lines if line] == paragraphs + code


async def test_last_words_are_shown_while_nothing_follows() -> None:
    """What came just after a rendering is shown a moment later, though the answer has not gone on."""
    screen = Screen(50, 20)
    display = MarkdownDisplay(ScreenStream(screen), lambda: Size(50, 20))
    view = display.answer()
    view.take(Piece("Hello "))
    view.take(Piece("world"))
    await asyncio.sleep(0.3)
    assert screen.lines == ["Hello world", ""]
    view.close()
    assert screen.lines == ["Hello world", ""]


async def test_thinking_stands_before_the_answer() -> None:
    """What the model thinks is shown as it comes, apart from the answer, with no control characters either."""
    screen = Screen(50, 20)
    display = MarkdownDisplay(ScreenStream(screen), lambda: Size(50, 20))
    view = display.answer()
    view.take(Piece("", reasoning="Let me "))
    view.take(Piece("", reasoning="see\x1b[2J"))
    view.take(Piece("Yes."))
    view.close()
    display.note("stopped")
    assert screen.lines == ["Let me see�[2J", "", "Yes.", "[stopped]", ""]
