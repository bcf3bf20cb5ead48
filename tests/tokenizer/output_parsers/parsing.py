"""Running a parser over pieces of text, and what came of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from services.tokenizer.output_parsers.port import Content, NewId, OutputParser, Part, Reasoning

NewParser = Callable[[NewId], OutputParser]


@dataclass
class Outcome:
    """All parts of one output, joined; `calls` are ids, names and arguments."""

    content: str = ""
    reasoning: str = ""
    calls: list[tuple[str, str, str]] = field(default_factory=list)

    def take(self, part: Part) -> None:
        """Add a part, after checking what every part promises."""
        if isinstance(part, Content):
            assert part.text
            self.content += part.text
        elif isinstance(part, Reasoning):
            assert part.text
            self.reasoning += part.text
        elif part.id is not None:
            assert part.name and part.index == len(self.calls)
            self.calls.append((part.id, part.name, part.arguments))
        else:
            assert part.name is None and part.arguments and part.index == len(self.calls) - 1
            call_id, name, arguments = self.calls[-1]
            self.calls[-1] = (call_id, name, arguments + part.arguments)

    @property
    def named(self) -> list[tuple[str, str]]:
        """Names and arguments of the calls."""
        return [(name, arguments) for _, name, arguments in self.calls]


def counted_ids() -> NewId:
    """Ids that tell their order."""
    numbers = itertools.count()
    return lambda: f"id{next(numbers)}"


def parse(new_parser: NewParser, pieces: Sequence[str]) -> Outcome:
    """What a new parser makes of these pieces."""
    parser, outcome = new_parser(counted_ids()), Outcome()
    for piece in pieces:
        for part in parser.feed(piece):
            outcome.take(part)
    for part in parser.flush():
        outcome.take(part)
    return outcome


def parsed(new_parser: NewParser, text: str) -> Outcome:
    """What a parser makes of a text, the same whole and character by character."""
    whole, characters = parse(new_parser, [text]), parse(new_parser, list(text))
    assert whole == characters
    return whole
