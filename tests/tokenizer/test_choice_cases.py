"""One choice: named cases of stop strings, end tokens and failure."""

from __future__ import annotations

import pytest

from services.chassis.errors import InternalError
from services.tokenizer.choice import Choice
from services.tokenizer.events import Finish, FinishReason, Usage
from services.tokenizer.stop_strings import StopStrings
from services.tokenizer.text_tokenizer import TextTokenizer
from tests.tokenizer.choice_recorder import END, Recorder, run
from tests.tokenizer.conftest import SMOLLM2, TokenizerOf


@pytest.fixture(scope="module")
def tokenizer(tokenizer_of: TokenizerOf) -> TextTokenizer:
    """The default model's tokenizer."""
    return tokenizer_of(SMOLLM2)


def ids_of(tokenizer: TextTokenizer, *texts: str) -> list[list[int]]:
    """A frame for each text."""
    return [tokenizer.encode(text, False) for text in texts]


def test_nothing_of_a_stop_in_pieces_leaks(tokenizer: TextTokenizer) -> None:
    """Of `\\nUser` and `:` nothing is shown, yet all their ids are reported."""
    frames = ids_of(tokenizer, "Hi", "\nUser", ":")
    got = run(tokenizer, [*frames, *ids_of(tokenizer, " more")], stops=["\nUser:"])
    assert got.text == "Hi"
    assert got.token_ids == [token_id for frame in frames for token_id in frame]
    assert got.finish.matched_stop == "\nUser:"
    assert got.finish.usage.completion_tokens == len(got.token_ids)


def test_the_stop_completed_first_wins(tokenizer: TextTokenizer) -> None:
    """Of abcd and bc in abcd, bc is complete first, so `a` remains."""
    got = run(tokenizer, ids_of(tokenizer, "abcd"), stops=["abcd", "bc"])
    assert (got.text, got.finish.matched_stop) == ("a", "bc")


@pytest.mark.parametrize("reason", list(FinishReason))
def test_a_held_beginning_of_a_stop_comes_at_the_end(tokenizer: TextTokenizer, reason: FinishReason) -> None:
    """What looked like a stop is flushed whatever the finish reason, with its ids."""
    ids = [*tokenizer.encode("Hi\nUse", False), *([END] if reason is FinishReason.STOP else [])]
    got = run(tokenizer, [[token_id] for token_id in ids], stops=["\nUser:"], reason=reason)
    assert (got.text, got.token_ids) == ("Hi\nUse", ids)
    assert got.finish == Finish(reason, None, Usage(9, len(ids), 4))


def test_only_a_beginning_of_a_stop_is_held(tokenizer: TextTokenizer) -> None:
    """Text that cannot become a stop goes out with its own token, and held text with the next."""
    frames = ids_of(tokenizer, "one", " #", " two")
    got = run(tokenizer, frames, stops=["##"])
    assert got.deltas == list(zip(frames, ["one", " ", "# two"], strict=True))


@pytest.mark.parametrize(("include", "text"), [(False, "so "), (True, "so th")])
def test_a_stop_inside_a_token_drops_the_rest_of_it(tokenizer: TextTokenizer, include: bool, text: str) -> None:
    """A token that carries more than the stop counts whole, and its rest is no text."""
    frames = ids_of(tokenizer, "so", " there", " is")
    assert [len(frame) for frame in frames] == [1, 1, 1]
    got = run(tokenizer, frames, stops=["th"], include_stop=include)
    assert (got.text, got.token_ids) == (text, [*frames[0], *frames[1]])
    assert got.finish == Finish(FinishReason.STOP, "th", Usage(9, 2, 4))


def test_a_stop_in_the_middle_of_a_frame_leaves_the_later_tokens_out(tokenizer: TextTokenizer) -> None:
    """Tokens of the same frame after the stop are neither reported nor counted, and the stream is cancelled
    once."""
    (frame,) = ids_of(tokenizer, "so there is more")
    got = run(tokenizer, [frame], stops=["ere"])
    assert (got.text, got.token_ids, got.cancelled) == ("so th", frame[:2], 1)


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("stops", [None, ["never"]])
def test_the_end_token_is_text_only_where_asked_for(
    tokenizer: TextTokenizer, stops: list[str] | None, include: bool, skip: bool
) -> None:
    """The token that stops is no text but with include_stop_str_in_output, and a special one is hidden even then
    unless special tokens are shown. As an id it is always there."""
    ids = [*tokenizer.encode("Hello", False), END]
    got = run(tokenizer, [ids], stops=stops, include_stop=include, skip_special_tokens=skip, reason=FinishReason.STOP)
    assert got.text == ("Hello<|im_end|>" if include and not skip else "Hello")
    assert (got.token_ids, got.finish.usage.completion_tokens) == (ids, len(ids))
    assert got.finish.matched_stop is None


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("stops", [None, ["never"]])
def test_a_stop_token_is_treated_as_the_end_token(
    tokenizer: TextTokenizer, stops: list[str] | None, include: bool
) -> None:
    """A caller's stop_token_ids token is text only with include_stop_str_in_output, and is named as what ended it."""
    frames = ids_of(tokenizer, "a quick", " dog")
    got = run(
        tokenizer,
        frames,
        stops=stops,
        include_stop=include,
        reason=FinishReason.STOP,
        stop_token_id=frames[1][0],
    )
    assert got.text == ("a quick dog" if include else "a quick")
    assert got.token_ids == [*frames[0], *frames[1]]
    assert got.finish.matched_stop == frames[1][0]


def test_an_end_token_in_mid_text_is_text_like_any_other(tokenizer: TextTokenizer) -> None:
    """With ignore_eos the end token does not stop; it is shown or hidden as a special token, with no spaces."""
    ids = [*tokenizer.encode("Hello", False), END, *tokenizer.encode(" world", False)]
    assert run(tokenizer, [ids]).text == "Hello world"
    assert run(tokenizer, [ids], skip_special_tokens=False).text == "Hello<|im_end|> world"


def test_a_stop_completed_by_the_last_broken_character(tokenizer: TextTokenizer) -> None:
    """A stop of U+FFFD is found where the text ends inside a character; the finish then is the stop's."""
    ids = tokenizer.encode("ok \N{LLAMA}", False)[:-1]
    got = run(tokenizer, [ids], stops=["\ufffd"])
    assert (got.text, got.token_ids) == ("ok ", ids)
    assert got.finish == Finish(FinishReason.STOP, "\ufffd", Usage(9, len(ids), 4))


def test_a_failure_ends_it(tokenizer: TextTokenizer) -> None:
    """A failed stream gives its error and no finish; what was held back is not shown."""
    recorder = Recorder()
    choice = Choice(1, recorder, tokenizer.decoder([500]), StopStrings(["\nUser:"]).matcher(), False)
    choice.delta(tokenizer.encode("Hi\nUse", False), False)
    error = InternalError()
    choice.failed(error)
    assert (recorder.errors, recorder.finishes, recorder.text) == ([error], [], "Hi")
    assert choice.ended
