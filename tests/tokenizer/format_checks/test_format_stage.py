"""Between a choice and its generation: faults are told with the text that shows them, and end it where asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.tokenizer.choice import Choice
from services.tokenizer.events import Finish, FinishReason, Usage
from services.tokenizer.findings import MAX_FINDINGS, Findings, FormatCheck, FormatFault
from services.tokenizer.format_checks.format_stage import FormatStage
from services.tokenizer.output_stage import staged
from services.tokenizer.text_tokenizer import TextTokenizer
from tests.tokenizer.choice_recorder import Recorder
from tests.tokenizer.conftest import SMOLLM2, TokenizerOf

JSON, BLOCKS = FormatCheck.JSON, FormatCheck.CODE_BLOCKS
TEXTS = st.lists(
    st.sampled_from(
        ['{"a": ', "[1, ", "]", "}", "true", '"é🦙"', "x", "\n", "```python\n", "```\n", "f(", ")", "🦙", "'"]
    ),
    max_size=12,
).map("".join)


@pytest.fixture(scope="module")
def tokenizer(tokenizer_of: TokenizerOf) -> TextTokenizer:
    """The default model's tokenizer."""
    return tokenizer_of(SMOLLM2)


def run(
    tokenizer: TextTokenizer,
    frames: Sequence[list[int]],
    checks: Sequence[FormatCheck],
    *,
    stops: bool = False,
    reason: FinishReason = FinishReason.LENGTH,
) -> Recorder:
    """What a choice's reader is told of these frames; nothing follows the cancellation of the engine's stream."""
    recorder = Recorder()
    (stage,) = staged(1, recorder, [lambda i, reader, findings: FormatStage(i, reader, findings, checks, stops)])
    choice = Choice(1, stage, tokenizer.decoder([500]), None, False)
    choice.cancel_stream = recorder.cancel
    stage.choice = choice
    choice.started(1, 0)
    for frame in frames:
        choice.delta(frame, False)
        if recorder.cancelled:
            return recorder
    choice.finished(Finish(reason, None, Usage(0, 0, 0)))
    return recorder


def told(recorder: Recorder) -> list[FormatFault]:
    """The faults of all deltas."""
    return [fault for parsed in recorder.parsed if parsed is not None for fault in parsed.format_faults]


def frames_of(token_ids: list[int], cuts: Sequence[int]) -> list[list[int]]:
    """The ids cut at these places."""
    places = [0, *sorted({cut % (len(token_ids) + 1) for cut in cuts} - {0}), len(token_ids)]
    return [token_ids[begin:end] for begin, end in pairwise(places)]


@settings(max_examples=60)
@given(TEXTS, st.lists(st.integers(0, 1 << 20), max_size=8), st.booleans())
def test_any_steps(tokenizer: TextTokenizer, text: str, cuts: list[int], stops: bool) -> None:
    """However the ids come, text, faults and reason are the same; without a stop the text is the model's own, and with
    one it is the part of it that shows no fault."""
    token_ids = tokenizer.encode(text, False)
    whole = run(tokenizer, [token_ids], [JSON, BLOCKS], stops=stops)
    steps = run(tokenizer, frames_of(token_ids, cuts), [JSON, BLOCKS], stops=stops)
    for recorder in (whole, steps):
        assert list(recorder.finish.format_faults)[: len(told(recorder))] == told(recorder)
        assert (
            recorder.cancelled
            == (recorder.finish.reason is FinishReason.CONTENT_FILTER)
            == (stops and bool(told(recorder)))
        )
    assert steps.text == whole.text
    assert (steps.finish.reason, steps.finish.format_faults) == (whole.finish.reason, whole.finish.format_faults)
    assert text.startswith(whole.text)
    if stops:
        assert told(run(tokenizer, [tokenizer.encode(whole.text, False)], [JSON, BLOCKS])) == []
    else:
        assert whole.text == text


def test_a_fault_comes_with_its_text(tokenizer: TextTokenizer) -> None:
    """The delta whose text shows the fault tells it, others none, and the end tells it again."""
    recorder = run(tokenizer, [[token_id] for token_id in tokenizer.encode('{"a": 1} So', False)], [JSON])
    fault = FormatFault(JSON, 9, "'S' stands after the value, where the text must end")
    with_fault = [position for position, parsed in enumerate(recorder.parsed) if parsed is not None]
    assert len(with_fault) == 1
    assert "S" in recorder.deltas[with_fault[0]][1]
    assert (told(recorder), list(recorder.finish.format_faults)) == ([fault], [fault])
    assert (recorder.finish.reason, recorder.cancelled) == (FinishReason.LENGTH, 0)


def test_stop_leaves_what_is_right(tokenizer: TextTokenizer) -> None:
    """With a stop the engine is cancelled, the text ends before the fault, and usage counts what was generated."""
    token_ids = tokenizer.encode('{"a": 1} So it is', False)
    recorder = run(tokenizer, [[token_id] for token_id in token_ids], [JSON], stops=True)
    assert json.loads(recorder.text) == {"a": 1}
    assert (recorder.cancelled, recorder.finish.reason) == (1, FinishReason.CONTENT_FILTER)
    assert [fault.position for fault in recorder.finish.format_faults] == [9]
    assert recorder.token_ids == token_ids[: len(recorder.token_ids)]
    assert recorder.finish.usage.completion_tokens == len(recorder.token_ids) < len(token_ids)


def test_a_fault_of_the_end(tokenizer: TextTokenizer) -> None:
    """What only the end shows is told with it. There is nothing to stop then: the reason stays the engine's."""
    for stops in (False, True):
        recorder = run(tokenizer, [tokenizer.encode("```js\nf(", False)], [JSON, BLOCKS][1:], stops=stops)
        assert told(recorder) == []
        assert list(recorder.finish.format_faults) == [FormatFault(BLOCKS, 0, "the code block is not closed")]
        assert (recorder.cancelled, recorder.finish.reason) == (0, FinishReason.LENGTH)


def test_both_checks(tokenizer: TextTokenizer) -> None:
    """Two checks tell their faults by themselves."""
    recorder = run(tokenizer, [tokenizer.encode("```js\n)\n```", False)], [JSON, BLOCKS])
    assert [(fault.check, fault.position) for fault in recorder.finish.format_faults] == [(JSON, 0), (BLOCKS, 6)]


def test_calls_alone_have_no_form(tokenizer: TextTokenizer) -> None:
    """An answer that calls tools and says nothing is no broken JSON; one that says nothing at all is."""
    assert run(tokenizer, [], [JSON], reason=FinishReason.TOOL_CALLS).finish.format_faults == ()
    assert len(run(tokenizer, [], [JSON]).finish.format_faults) == 1


def test_findings_are_bounded(tokenizer: TextTokenizer) -> None:
    """Each fault is told when it shows; the end tells the first of very many again."""
    recorder = Recorder()
    findings = Findings()
    stage = FormatStage(1, recorder, findings, [BLOCKS], False)
    for _ in range(MAX_FINDINGS + 5):
        stage.choice_delta(1, [1], "```\n)\n```\n", None)
    stage.choice_finished(1, Finish(FinishReason.STOP, None, Usage(0, 0, 0)))
    assert len(told(recorder)) == MAX_FINDINGS + 5
    assert len(findings.format_faults) == len(recorder.finish.format_faults) == MAX_FINDINGS
