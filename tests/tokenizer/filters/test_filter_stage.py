"""The filter's stage: what a choice's reader gets of text, ids, log probabilities, calls and matches."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from services.chassis.errors import InternalError
from services.tokenizer.events import Finish, FinishReason, Parsed, Usage
from services.tokenizer.filters.filter_stage import FilterStage
from services.tokenizer.filters.metrics import FilterMetrics
from services.tokenizer.findings import FilterAction, FilterMatch, Findings
from services.tokenizer.output_parsers.port import ToolCallPiece
from services.tokenizer.text_tokenizer import TextTokenizer
from tests.tokenizer.choice_recorder import Recorder
from tests.tokenizer.conftest import SMOLLM2, TokenizerOf
from tests.tokenizer.filters.reference import Written, filtered
from tests.tokenizer.filters.rule_sets import active_rules, new_filter_stage
from tests.tokenizer.filters.staged_choice import numbers_of, run_staged

MASK, STOP, REPORT = FilterAction.MASK, FilterAction.STOP, FilterAction.REPORT
TEXTS = ("the cat sat on the mat", "a naïve café, a CAFÉ 猫猫 cat", "no damned thing 12345 67", "stop the cats here")
RULES = (
    Written(MASK, ("cat",), whole_words=True),
    Written(MASK, ("café", "damn"), fold=True),
    Written(REPORT, ("the", "mat")),
    Written(MASK, patterns=(r"\d{3,6}",), mask="#"),
    Written(STOP, ("sat on",)),
    Written(MASK, ("猫",)),
)


@pytest.fixture(scope="module")
def tokenizer(tokenizer_of: TokenizerOf) -> TextTokenizer:
    """The default model's."""
    return tokenizer_of(SMOLLM2)


class Asked:
    """The choice behind a stage whose pieces a test gives itself."""

    def __init__(self, behind: int | None = None) -> None:
        self._behind = behind
        self.cuts = 0

    def cut(self) -> Usage:
        """Count it."""
        self.cuts += 1
        return Usage(9, 5, 4)

    def behind(self) -> int | None:
        """As it was made."""
        return self._behind


def stage_of(rules: Sequence[Written], behind: int | None = None) -> tuple[FilterStage, Recorder, Asked]:
    """A stage, its reader and its choice."""
    reader, choice = Recorder(), Asked(behind)
    stage = FilterStage(
        1, reader, Findings(), active_rules(rules), "r-1", FilterMetrics(CollectorRegistry()), lambda _: None
    )
    stage.choice = choice
    return stage, reader, choice


@st.composite
def case(draw: st.DrawFn) -> tuple[list[Written], str, list[int]]:
    """Rules, a text, and the sizes of frames."""
    rules = draw(st.lists(st.sampled_from(RULES), min_size=1, max_size=4, unique=True))
    text = " ".join(draw(st.lists(st.sampled_from([*" ".join(TEXTS).split(), "ca", "t", "\u0301"]), max_size=12)))
    return rules, text, draw(st.lists(st.integers(1, 4), min_size=40, max_size=40))


@settings(max_examples=150, deadline=None)
@given(case())
def test_text_matches_and_tokens_of_any_split(
    tokenizer: TextTokenizer, given_case: tuple[list[Written], str, list[int]]
) -> None:
    """From real ids in frames of any sizes: the text is the reference's; all ids and counts are those of the choice;
    the ids and log probabilities that went out are in order, aligned, and of no text that was masked or cut off."""
    rules, text, sizes = given_case
    ids = tokenizer.encode(text, False)
    frames, rest = [], ids
    for size in sizes:
        if rest:
            frames.append(rest[:size])
            rest = rest[size:]
    frames += [[one] for one in rest]
    withheld: list[int] = []
    for logprobs_of in (None, numbers_of):
        withheld.clear()
        got = run_staged(tokenizer, frames, [new_filter_stage(rules, withheld.append)], logprobs_of=logprobs_of)
        guards = [rule if rule.action is not REPORT else Written(REPORT, ("\x00",)) for rule in rules]
        expected, told, stopped = filtered(guards, text)
        assert got.text == expected
        mine = [match for match in got.finish.filter_matches if match.action is not REPORT]
        assert mine == told
        assert [match for parsed in got.parsed if parsed for match in parsed.filter_matches] == list(
            got.finish.filter_matches
        )
        assert (got.finish.reason is FinishReason.CONTENT_FILTER) is stopped
        assert got.finish.usage.completion_tokens == len(got.token_ids) + sum(withheld)
        rest_of = iter(ids)
        assert all(one in rest_of for one in got.token_ids)
        if logprobs_of is not None:
            numbers = [value for run in got.logprobs if run is not None for value in run.logprobs]
            assert numbers == [-float(one) for one in got.token_ids]
        if not told:
            assert got.token_ids == ids
            assert got.finish.usage.completion_tokens == len(ids)


def test_ids_of_masked_text_never_go_out(tokenizer: TextTokenizer) -> None:
    """Token by token, exactly the ids of tokens that hold a masked character are withheld."""
    text = "my number is 123456 and yours"
    ids = tokenizer.encode(text, False)
    got = run_staged(tokenizer, [[one] for one in ids], [new_filter_stage([Written(MASK, patterns=(r"\d{6}",))])])
    assert got.text == "my number is ██████ and yours"
    assert got.token_ids == [one for one in ids if not any(map(str.isdigit, tokenizer.decode([one])))]
    assert got.finish.usage.completion_tokens == len(ids)


def test_an_id_goes_out_with_the_last_of_its_text() -> None:
    """A token whose last letters may begin a word waits for them, while the rest of its text is out at once."""
    stage, reader, _ = stage_of([Written(MASK, ("rat",))], behind=0)
    stage.choice_delta(1, [7], " ear", None)
    assert reader.deltas == [([], " ea")]
    stage.choice_delta(1, [8], "ly", None)
    assert reader.deltas[1:] == [([7, 8], "rly")]


@pytest.mark.parametrize(("first", "second"), [("Hell", "o you"), ("He", "llo you"), ("xHell", "o")])
def test_ids_whose_text_a_stop_string_holds_back(tokenizer: TextTokenizer, first: str, second: str) -> None:
    """Where a stop string holds back a part of a token's text, its id waits for that part too, so that the id does not
    tell what is masked."""
    frames = [tokenizer.encode(first, False), tokenizer.encode(second, False)]
    got = run_staged(tokenizer, frames, [new_filter_stage([Written(MASK, ("llo",))])], stops=["llx"])
    assert got.text == (first + second).replace("llo", "███")
    masked = [one for frame in frames for one in frame if set(tokenizer.decode([one])) & set("l")]
    assert masked and not set(masked) & set(got.token_ids)


def test_ids_of_what_a_stop_string_cut_off_are_withheld(tokenizer: TextTokenizer) -> None:
    """No filter saw the text that a stop string cut off, so its ids do not go out; they count as used."""
    ids = tokenizer.encode("all is damned", False)
    got = run_staged(tokenizer, [ids], [new_filter_stage([Written(MASK, ("damned",))])], stops=["mned"])
    assert got.text == "all is da"
    assert (got.finish.matched_stop, got.token_ids) == ("mned", [])
    assert got.finish.usage.completion_tokens == len(ids)


def test_a_stop_cancels_at_once_and_counts_what_was_generated(tokenizer: TextTokenizer) -> None:
    """At the token that completes a stopping match the engine's stream is cancelled; nothing of the match is out;
    usage counts all tokens taken in; the end tells the match."""
    ids = tokenizer.encode("we sat on the mat", False)
    got = run_staged(tokenizer, [[one] for one in ids], [new_filter_stage([Written(STOP, ("sat on",))])])
    assert got.text == "we "
    assert (got.cancelled, got.finish.reason, got.finish.matched_stop) == (1, FinishReason.CONTENT_FILTER, None)
    assert got.finish.usage == Usage(9, 3, 4)
    assert got.finish.filter_matches == (FilterMatch(STOP, "0", 3, 6),)
    assert got.token_ids == ids[:1]


def test_reports_hold_back_nothing(tokenizer: TextTokenizer) -> None:
    """Where rules only report, each delta goes out as it came, ids with it, and the match is told with its last."""
    ids = tokenizer.encode("the cat sat", False)
    got = run_staged(tokenizer, [[one] for one in ids], [new_filter_stage([Written(REPORT, ("cat s",))])])
    assert got.deltas == [([one], tokenizer.decode([one])) for one in ids]
    assert [parsed and list(parsed.filter_matches) for parsed in got.parsed] == [
        None,
        None,
        [FilterMatch(REPORT, "0", 4, 5)],
    ]


def test_reports_are_of_what_was_there_when_the_text_stopped() -> None:
    """A reporting rule sees what the model said up to the match that stops, and nothing behind it."""
    stage, reader, _ = stage_of([Written(REPORT, ("b", "d")), Written(STOP, ("c",))], behind=0)
    stage.choice_delta(1, [5], "abcd", None)
    assert reader.finish.filter_matches == (FilterMatch(STOP, "1", 2, 1), FilterMatch(REPORT, "0", 1, 1))


def test_reasoning_and_calls_are_texts_of_their_own() -> None:
    """Words do not reach from reasoning to content or from call to call, but do through the pieces of each; ids do not
    go out, as nobody knows whose they are."""
    stage, reader, _ = stage_of([Written(MASK, ("damn",))])
    stage.choice_delta(1, [1], "", None, Parsed("oh da", ()))
    stage.choice_delta(1, [2], "mn da", None, Parsed("mn ", (ToolCallPiece(0, '{"a": "da', "call_1", "f"),)))
    stage.choice_delta(1, [3], "", None, Parsed("", (ToolCallPiece(0, 'mn"}'), ToolCallPiece(1, "mn", "call_2", "g"))))
    stage.choice_finished(1, Finish(FinishReason.TOOL_CALLS, None, Usage(9, 3, 4)))
    told = [parsed for parsed in reader.parsed if parsed is not None]
    assert "".join(parsed.reasoning for parsed in told) == "oh ████ "
    assert reader.text == "mn da"
    pieces = [piece for parsed in told for piece in parsed.tool_calls]
    assert "".join(piece.arguments for piece in pieces if piece.index == 0) == '{"a": "████"}'
    assert "".join(piece.arguments for piece in pieces if piece.index == 1) == "mn"
    assert [piece.name for piece in pieces if piece.name] == ["f", "g"]
    assert reader.token_ids == []
    assert [match.start for match in reader.finish.filter_matches] == [3, 7]
    assert reader.finish.reason is FinishReason.TOOL_CALLS


def test_a_match_in_a_call_stops_the_choice() -> None:
    """A stopping match in arguments ends the choice with what was before it, and what other texts held back."""
    stage, reader, choice = stage_of([Written(STOP, ("damn",))])
    stage.choice_delta(1, [1], "all d", None, Parsed("rea d", (ToolCallPiece(0, '{"a": "damn"}', "call_1", "f"),)))
    assert choice.cuts == 1
    assert reader.text == "all d"
    assert "".join(parsed.reasoning for parsed in reader.parsed if parsed) == "rea d"
    assert [piece.arguments for parsed in reader.parsed if parsed for piece in parsed.tool_calls] == ['{"a": "']
    stage.choice_delta(1, [2], "more", None)
    stage.choice_finished(1, Finish(FinishReason.STOP, None, Usage(0, 0, 0)))
    assert reader.finish == Finish(FinishReason.CONTENT_FILTER, None, Usage(9, 5, 4), (FilterMatch(STOP, "0", 7, 4),))


def test_a_fault_of_the_filter_ends_the_choice_with_an_error() -> None:
    """Where the filter itself fails, the reader gets a failure and neither the text nor an end; the log has the
    request's id and not the text."""
    stage, reader, _ = stage_of([Written(MASK, ("damn",))], behind=0)
    with structlog.testing.capture_logs() as lines:
        stage.choice_delta(1, [1], object(), None)  # type: ignore[arg-type]  # no text at all: a fault
    stage.choice_delta(1, [2], "secret", None)
    stage.choice_finished(1, Finish(FinishReason.STOP, None, Usage(0, 0, 0)))
    assert isinstance(reader.errors[0], InternalError)
    assert (reader.deltas, reader.finishes, len(reader.errors)) == ([], [], 1)
    assert [(line["event"], line["request_id"]) for line in lines] == [("output filter failed", "r-1")]


def test_matches_are_counted_and_logged_without_text(tokenizer: TextTokenizer) -> None:
    """A choice with matches gives one line, with rules and actions and no text, and each match counts for its rule."""
    registry = CollectorRegistry()
    ids = tokenizer.encode("damn the damn thing", False)
    with structlog.testing.capture_logs() as lines:
        run_staged(tokenizer, [ids], [new_filter_stage([Written(MASK, ("damn",))], registry=registry)])
    assert lines == [
        {
            "event": "output filter matched",
            "log_level": "info",
            "request_id": "r-1",
            "choice": 1,
            "matches": {"0: mask": 2},
        }
    ]
    labels = {"rule": "0", "action": "mask"}
    assert registry.get_sample_value("streamomni:text_filter_matches_total", labels) == 2
