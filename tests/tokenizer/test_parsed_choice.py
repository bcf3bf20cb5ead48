"""One choice of a chat: its ids give content, reasoning and calls, with counts, stops and log probabilities right."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.tokenizer.events import Finish, FinishReason, Usage
from services.tokenizer.logprobs import Logprobs
from services.tokenizer.output_parsers.port import OutputParser
from services.tokenizer.parsed_choice import ParsedChoice
from services.tokenizer.stop_strings import StopStrings
from services.tokenizer.text_tokenizer import TextTokenizer
from services.tokenizer.tool_use import Tool, ToolMode, ToolUse
from tests.tokenizer.choice_recorder import Recorder
from tests.tokenizer.conftest import TokenizerOf

TAGS = {"<tool_call>": 151657, "</tool_call>": 151658, "<think>": 151667, "</think>": 151668}
END = 151645
USE = ToolUse(ToolMode.AUTO, (Tool("f", None, {}),))
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": "x\\n\\ny"}}\n</tool_call>'
ARGUMENTS = '{"a": "x\\n\\ny"}'


@pytest.fixture(scope="module")
def qwen3(tokenizer_of: TokenizerOf) -> TextTokenizer:
    """Qwen 3's tokenizer."""
    return tokenizer_of("qwen3")


def ids_of(tokenizer: TextTokenizer, text: str) -> list[int]:
    """Ids of a text, its tags as the tokens that the model emits for them."""
    for tag, token_id in TAGS.items():
        before, found, after = text.partition(tag)
        if found:
            return [*ids_of(tokenizer, before), token_id, *ids_of(tokenizer, after)]
    return tokenizer.encode(text, False)


def parser_of(tokenizer: TextTokenizer, use: ToolUse = USE) -> Callable[[], OutputParser]:
    """Makes the model's parsers."""
    new_parser = tokenizer.output_format.parsers(use, reasoning_opened=False)
    assert new_parser is not None
    return new_parser


def run(
    tokenizer: TextTokenizer,
    frames: list[list[int]],
    *,
    stops: list[str] | None = None,
    one_call: bool = False,
    reason: FinishReason = FinishReason.STOP,
    with_logprobs: bool = False,
) -> Recorder:
    """Give a choice these frames, the last of which ends with the end token where the reason is STOP."""
    recorder = Recorder()
    matcher = StopStrings(stops).matcher() if stops else None
    decoder = tokenizer.parsing_decoder([500])
    choice = ParsedChoice(1, recorder, decoder, matcher, False, parser_of(tokenizer)(), one_call)
    choice.cancel_stream = recorder.cancel
    choice.started(9, 4)
    for position, frame in enumerate(frames):
        numbers = [float(token_id) for token_id in frame]
        logprobs = Logprobs(numbers, [1] * len(frame)) if with_logprobs else None
        choice.delta(frame, reason is FinishReason.STOP and position == len(frames) - 1, logprobs)
        if recorder.cancelled:
            return recorder
    choice.finished(Finish(reason, None, Usage(0, 0, 0)))
    assert choice.ended
    return recorder


def reasoning(recorder: Recorder) -> str:
    """All reasoning."""
    return "".join(parsed.reasoning for parsed in recorder.parsed if parsed is not None)


def calls(recorder: Recorder) -> list[tuple[str | None, str]]:
    """Names and arguments of the calls."""
    found: list[tuple[str | None, str]] = []
    for parsed in recorder.parsed:
        for piece in parsed.tool_calls if parsed is not None else ():
            if piece.id is not None:
                found.append((piece.name, ""))
            name, arguments = found[piece.index]
            found[piece.index] = (name, arguments + piece.arguments)
    return found


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_splits_do_not_matter(qwen3: TextTokenizer, data: st.DataObject) -> None:
    """Whatever tokens come together, the parts, ids, counts and log probabilities are the same."""
    ids = [*ids_of(qwen3, f"<think>\nA llama 🦙.\n</think>\n\nI look.\n{CALL}\n{CALL}"), END]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(ids) - 1), max_size=12)))
    bounds = [0, *cuts, len(ids)]
    frames = [ids[low:high] for low, high in itertools.pairwise(bounds)]
    got = run(qwen3, frames, with_logprobs=True)
    assert (got.text, reasoning(got)) == ("\n\nI look.\n", "\nA llama 🦙.\n")
    assert calls(got) == [("f", ARGUMENTS)] * 2
    assert got.token_ids == ids
    assert [number for told in got.logprobs if told is not None for number in told.logprobs] == ids
    # The tags and the white space after them come before the answer's first token.
    before_answer = ids.index(TAGS["</think>"]) + 2
    assert got.finish == Finish(FinishReason.TOOL_CALLS, None, Usage(9, len(ids), 4, before_answer))


def test_stop_strings_are_looked_for_in_content_alone(qwen3: TextTokenizer) -> None:
    """A stop string in the reasoning or in arguments ends nothing; in the content it ends the choice."""
    ids = ids_of(qwen3, f"<think>a\n\nb</think>{CALL}Now\n\nmore")
    got = run(qwen3, [[token_id] for token_id in ids], stops=["\n\n"])
    assert (reasoning(got), calls(got), got.text) == ("a\n\nb", [("f", ARGUMENTS)], "Now")
    assert got.cancelled == 1
    assert (got.finish.reason, got.finish.matched_stop) == (FinishReason.TOOL_CALLS, "\n\n")
    plain = run(qwen3, [ids_of(qwen3, "Now\n\nmore")], stops=["\n\n"])
    assert (plain.text, plain.finish.reason, plain.finish.matched_stop) == ("Now", FinishReason.STOP, "\n\n")
    assert plain.token_ids == ids_of(qwen3, "Now\n\n")


def test_text_held_for_a_stop_string_is_kept(qwen3: TextTokenizer) -> None:
    """What might have begun a stop string comes before the call that follows, or at the end."""
    got = run(qwen3, [[*ids_of(qwen3, f"Look:\n{CALL}"), END]], stops=["\nUser"])
    assert (got.text, calls(got)) == ("Look:\n", [("f", ARGUMENTS)])
    assert run(qwen3, [[*ids_of(qwen3, "Look:\n"), END]], stops=["\nUser"]).text == "Look:\n"


def test_one_call_only(qwen3: TextTokenizer) -> None:
    """Without parallel calls the engine is stopped where a second one begins, and the first is whole."""
    ids = ids_of(qwen3, f"{CALL}\n{CALL}")
    got = run(qwen3, [[token_id] for token_id in ids], one_call=True)
    assert (calls(got), got.text, got.cancelled) == ([("f", ARGUMENTS)], "", 1)
    assert (got.finish.reason, got.finish.matched_stop) == (FinishReason.TOOL_CALLS, None)
    assert got.token_ids == ids[: len(got.token_ids)] and len(got.token_ids) < len(ids)


@pytest.mark.parametrize(
    ("text", "content"),
    [("<tool_ca", "<tool_ca"), ("a <tool_call>\n{", "a <tool_call>\n{"), ("<think", "<think")],
)
def test_a_cut_tag_is_flushed(qwen3: TextTokenizer, text: str, content: str) -> None:
    """A stream that ends inside a tag or before a call is certain gives that text as content."""
    got = run(qwen3, [[token_id] for token_id in ids_of(qwen3, text)], reason=FinishReason.LENGTH)
    assert got.text == content
    assert got.finish.reason is FinishReason.LENGTH


def test_a_cut_call_ends_with_length(qwen3: TextTokenizer) -> None:
    """max_tokens inside a call's arguments is told as such."""
    ids = ids_of(qwen3, CALL)[:-6]
    got = run(qwen3, [ids], reason=FinishReason.LENGTH)
    ((name, arguments),) = calls(got)
    assert name == "f" and ARGUMENTS.startswith(arguments)
    assert got.finish.reason is FinishReason.LENGTH


def test_answers_without_reasoning_count_none(qwen3: TextTokenizer) -> None:
    """Reasoning tokens are counted only where there is reasoning."""
    assert run(qwen3, [[*ids_of(qwen3, "Hi"), END]]).finish.usage.reasoning_tokens == 0
