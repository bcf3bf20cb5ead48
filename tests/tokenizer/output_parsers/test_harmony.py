"""gpt-oss' messages in channels."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.tokenizer.output_parsers.harmony import MARKS, Harmony, HarmonyParser
from services.tokenizer.output_parsers.port import NewId, OutputParser
from tests.tokenizer.output_parsers.parsing import Outcome, parse, parsed

ANALYSIS = "<|channel|>analysis<|message|>Look it up 🦙.<|end|>"
CALL = "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
FINAL = "<|start|>assistant<|channel|>final<|message|>"

NewParser = Callable[[NewId], OutputParser]


@pytest.fixture(scope="module")
def harmony() -> NewParser:
    """Makes parsers that share the vocabulary."""
    vocabulary = Harmony()
    return lambda new_id: HarmonyParser(vocabulary, new_id)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (f"{ANALYSIS}{FINAL}Sunny.", Outcome("Sunny.", "Look it up 🦙.")),
        (f"{ANALYSIS}{FINAL}Sunny.<|return|>", Outcome("Sunny.", "Look it up 🦙.")),
        (
            f'{ANALYSIS}<|start|>assistant{CALL}{{"city": "Paris"}}<|call|>',
            Outcome("", "Look it up 🦙.", [("id0", "get_weather", '{"city": "Paris"}')]),
        ),
        (
            f"{CALL}<|call|><|start|>assistant{CALL}{{}}",
            Outcome("", "", [("id0", "get_weather", "{}"), ("id1", "get_weather", "{}")]),
        ),
        ("<|channel|>commentary<|message|>First this.<|end|>", Outcome("First this.")),
        (f"{FINAL}a<|channel|>b", Outcome("a<|channel|>b")),
        (f"{FINAL}a <|retu", Outcome("a <|retu")),
    ],
)
def test_channels(harmony: NewParser, text: str, outcome: Outcome) -> None:
    """Analysis is reasoning, messages to functions are calls with an object of arguments, the rest is content."""
    assert parsed(harmony, text) == outcome


@pytest.mark.parametrize(
    "text", ["Hello there", "<|channel|>final Hi", "<|chan", "word " * 400 + "<|message|>Hi", "<|channel|>final" + CALL]
)
def test_what_has_no_header_is_content(harmony: NewParser, text: str) -> None:
    """Text that is no message is not lost."""
    outcome = parse(harmony, [text])
    assert outcome.content == text or outcome.calls


def test_text_between_messages_is_content(harmony: NewParser) -> None:
    """Where the format is broken, all that follows is content."""
    outcome = parsed(harmony, f"{FINAL}Yes.<|end|>more {FINAL}No.")
    assert outcome.content == f"Yes.more {FINAL}No."


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_splits_do_not_matter(harmony: NewParser, data: st.DataObject) -> None:
    """Any split gives the same parts."""
    fragments = st.sampled_from([ANALYSIS, CALL, FINAL, *MARKS, "analysis", "final", "assistant", " é 🦙", "{}", "<|"])
    text = "".join(data.draw(st.lists(fragments, max_size=8)))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    pieces = [text[low:high] for low, high in itertools.pairwise([0, *cuts, len(text)])]
    assert parse(harmony, [text]) == parse(harmony, pieces)
