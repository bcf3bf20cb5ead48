"""Filters of a chat with reasoning and calls, and of plain text: all tiers over a scripted engine, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import text_pb2
from tests.tokenizer.all_tiers import Tiers, all_tiers
from tests.tokenizer.conftest import DirectoryOf
from tests.tokenizer.engine_fixtures import MODEL
from tests.tokenizer.test_parts_through_tiers import END, Streamed, say

pytestmark = pytest.mark.asyncio(loop_scope="module")

RULES = r"""
[[rule]]
name = "swearing"
action = "mask"
words = ["damned"]
[[rule]]
name = "secrets"
action = "stop"
patterns = ['key-\d{4}']
[[rule]]
name = "weather"
action = "report"
words = ["rain"]
"""
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": "a damned x"}}\n</tool_call>'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tiers(directory_of: DirectoryOf, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Tiers]:
    """All tiers, with filters."""
    path = tmp_path_factory.mktemp("filters") / "filters.toml"
    path.write_text(RULES)
    async with all_tiers(directory_of("qwen3"), (END,), path) as running:
        yield running


def matches_of(choice: dict[str, Any]) -> list[tuple[str, int, int]]:
    """Rule, start and length of a choice's matches."""
    return [(match["rule"], match["start"], match["length"]) for match in choice.get("filter_matches", [])]


async def test_reasoning_content_and_arguments(tiers: Tiers) -> None:
    """Each part is filtered, streamed as in one piece; no log probabilities are told, since they tell the text; the
    end tells all matches, each counted in its own text."""
    fields = say(tiers, f"<think>A damned thing.</think>It is damned rain.{CALL}")
    answer = (await tiers.post("chat/completions", **fields)).json()
    (choice,) = answer["choices"]
    assert choice["message"]["reasoning"] == "A ██████ thing."
    assert choice["message"]["content"] == "It is ██████ rain."
    assert choice["message"]["tool_calls"][0]["function"]["arguments"] == '{"a": "a ██████ x"}'
    assert (choice["finish_reason"], choice["logprobs"]) == ("tool_calls", None)
    told = [("swearing", 2, 6), ("swearing", 6, 6), ("weather", 13, 4), ("swearing", 9, 6)]
    assert sorted(matches_of(choice)) == sorted(told)
    chunks = await tiers.chunks("chat/completions", **fields)
    streamed = Streamed(chunks)
    assert (streamed.reasoning, streamed.content) == ("A ██████ thing.", "It is ██████ rain.")
    assert (streamed.arguments, streamed.told, streamed.reasons) == ('{"a": "a ██████ x"}', [], ["tool_calls"])
    pieces = [match for chunk in chunks[:-1] for match in matches_of(chunk["choices"][0])]
    assert sorted(pieces) == sorted(matches_of(chunks[-1]["choices"][0])) == sorted(told)


async def test_a_stop_in_reasoning_ends_the_choice(tiers: Tiers) -> None:
    """A stopping match in the reasoning ends the choice there: no content follows, and the engine is cancelled."""
    fields = say(tiers, "<think>It rains. The key-1234 is</think>all of the content, and more of it")
    (choice,) = (await tiers.post("chat/completions", **fields)).json()["choices"]
    assert (choice["message"]["reasoning"], choice["message"]["content"]) == ("It rains. The ", "")
    assert (choice["finish_reason"], matches_of(choice)) == (
        "content_filter",
        [("weather", 3, 4), ("secrets", 14, 8)],
    )


async def test_choices_are_filtered_one_by_one(tiers: Tiers) -> None:
    """With several choices a stop ends one alone; the others go on to their own ends."""
    said = say(tiers, "the key-1234", ends=False)
    tiers.text.engine.lines.by_seed[8] = tiers.text.encode("no harm in it, damned")
    asked = {"prompt": "Hi", "n": 2, "seed": 7, "max_tokens": said["max_tokens"] + 4}
    choices = (await tiers.post("completions", **asked)).json()["choices"]
    assert choices[0]["text"] == "the "
    assert choices[0]["finish_reason"] == "content_filter"
    assert choices[1]["text"].startswith("no harm in it, ██████")
    assert choices[1]["finish_reason"] == "length"


async def test_over_grpc(tiers: Tiers) -> None:
    """The public call tells text, matches and the reason; ids of masked text are not among those that it tells, but
    count."""
    ids = tiers.text.encode("so damned cold")
    tiers.text.engine.lines.by_seed[7] = ids
    request = text_pb2.GenerateRequest(
        model=MODEL,
        text=text_pb2.TextPrompt(text="Hi"),
        sampling_params=sampling_pb2.SamplingParams(max_tokens=len(ids), seed=7),
    )
    events = [event async for event in tiers.text.stub.Generate(request)]
    deltas = [event.delta for event in events if event.HasField("delta")]
    (finished,) = [event.finished for event in events if event.HasField("finished")]
    assert "".join(delta.text for delta in deltas) == "so ██████ cold"
    told = [match for delta in deltas for match in delta.filter_matches]
    assert list(finished.filter_matches) == told
    assert [(match.rule, match.start, match.length) for match in told] == [("swearing", 3, 6)]
    shown = [token_id for delta in deltas for token_id in delta.token_ids]
    assert tiers.reference.decode(shown) == "so cold"
    assert finished.usage.completion_tokens == len(ids)


async def test_continuous_usage_ends_with_all_tokens(tiers: Tiers) -> None:
    """Usage told while streaming counts the tokens told so far; at the end it counts those withheld too."""
    ids = tiers.text.encode("so damned cold")
    tiers.text.engine.lines.by_seed[7] = ids
    options = {"include_usage": True, "continuous_usage_stats": True}
    chunks = await tiers.chunks("completions", prompt="Hi", seed=7, max_tokens=len(ids), stream_options=options)
    assert chunks[-1]["usage"]["completion_tokens"] == len(ids)
