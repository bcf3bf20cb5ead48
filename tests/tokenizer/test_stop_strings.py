from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.chassis.errors import InvalidRequest
from services.tokenizer.stop_strings import MAX_STOP_LENGTH, MAX_STOPS, StopMatch, StopStrings

_TEXT = st.text("ab\nc", max_size=30)
_STOPS = st.lists(st.text("ab\nc", min_size=1, max_size=6), max_size=MAX_STOPS)


def feed_all(stops: list[str], chunks: list[str], include: bool = False) -> tuple[list[str], StopMatch | None]:
    """The texts that come out, with the flush last unless a stop matched, and the match."""
    matcher = StopStrings(stops).matcher(include)
    texts = []
    for chunk in chunks:
        text, match = matcher.feed(chunk)
        texts.append(text)
        if match:
            return texts, match
    return [*texts, matcher.flush()], None


def first_stop(stops: list[str], text: str) -> tuple[str, int] | None:
    """A plain reference: the stop with the earliest end, the longest of those, and that end."""
    for end in range(len(text) + 1):
        for stop in sorted(stops, key=len, reverse=True):
            if text[:end].endswith(stop):
                return stop, end
    return None


@given(_STOPS, st.lists(_TEXT, max_size=8), st.booleans())
def test_text_ends_where_the_reference_says(stops: list[str], chunks: list[str], include: bool) -> None:
    """For any stops and any split, the text, the stop and the place are those of a plain search."""
    texts, match = feed_all(stops, chunks, include)
    whole = "".join(chunks)
    expected = first_stop(stops, whole)
    if expected is None:
        assert match is None
        assert "".join(texts) == whole
        return
    stop, end = expected
    assert match is not None
    assert match.stop == stop
    assert "".join(texts) == whole[: end if include else end - len(stop)]
    before = sum(map(len, chunks[: len(texts) - 1]))
    assert before + match.end == end
    assert 1 <= match.end <= len(chunks[len(texts) - 1])


@given(_STOPS, st.lists(_TEXT, max_size=8), st.booleans(), st.integers(0, 4))
def test_what_passes_is_what_feeding_would_give(
    stops: list[str], tokens: list[str], include: bool, min_tokens: int
) -> None:
    """A token that passes has its whole text shown, changes nothing of what follows, and counts as a token."""
    compiled = StopStrings(stops)
    fed, passed = (compiled.matcher(include, min_tokens) for _ in range(2))
    for text in tokens:
        fed.begin_token()
        result = fed.feed(text)
        if passed.passes(text):
            assert result == (text, None)
        else:
            passed.begin_token()
            assert passed.feed(text) == result
        if result.match is not None:
            return
    assert fed.feed("abc") == passed.feed("abc")


@given(_STOPS, st.lists(_TEXT, max_size=8))
def test_only_a_beginning_of_a_stop_is_held_back(stops: list[str], chunks: list[str]) -> None:
    """What is held is exactly the longest suffix that is a proper prefix of a stop."""
    matcher = StopStrings(stops).matcher()
    seen = shown = ""
    for chunk in chunks:
        text, match = matcher.feed(chunk)
        if match:
            return
        seen, shown = seen + chunk, shown + text
        beginnings = [stop[:size] for stop in stops for size in range(len(stop))]
        longest = max((len(start) for start in beginnings if seen.endswith(start)), default=0)
        assert shown == seen[: len(seen) - longest]
    assert shown + matcher.flush() == seen


@pytest.mark.parametrize(
    ("stops", "chunks", "include", "texts", "match"),
    [
        # Nothing leaks of a stop that comes in pieces.
        (["\nUser:"], ["Hi", "\nUser", ":"], False, ["Hi", "", ""], StopMatch("\nUser:", 1)),
        # The stop completed first wins.
        (["abcd", "bc"], ["abcd"], False, ["a"], StopMatch("bc", 3)),
        # Of two at the same end the longest.
        (["b", "ab"], ["ab"], False, [""], StopMatch("ab", 2)),
        # The held text comes out at the end.
        (["\nUser:"], ["Hi\nUse"], False, ["Hi", "\nUse"], None),
        # The rest of the token goes, with and without the stop.
        (["###"], ["so## #", "## more"], False, ["so## ", ""], StopMatch("###", 2)),
        (["###"], ["so## #", "## more"], True, ["so## ", "###"], StopMatch("###", 2)),
        # No stops: nothing is held.
        ([], ["a", ""], False, ["a", "", ""], None),
    ],
)
def test_named_cases(
    stops: list[str], chunks: list[str], include: bool, texts: list[str], match: StopMatch | None
) -> None:
    """Each chunk gives exactly this text; without a match the flush is last."""
    assert feed_all(stops, chunks, include) == (texts, match)


def test_one_set_of_stops_serves_many_generations() -> None:
    """Matchers of one set do not see each other's text."""
    stops = StopStrings(["ab"])
    first, second = stops.matcher(), stops.matcher()
    assert first.feed("a").text == ""
    assert second.feed("b").text == "b"
    assert first.feed("b").match == StopMatch("ab", 1)


def test_characters_with_a_meaning_in_patterns_are_plain() -> None:
    """Stops made of brackets, carets, dashes and backslashes match themselves."""
    for stop in ("^]", "]-", "-a", "\\d", "[", "."):
        assert feed_all([stop], [f"x1{stop}y"]) == (["x1"], StopMatch(stop, 2 + len(stop)))


@pytest.mark.parametrize(
    ("stops", "words"),
    [
        (["a"] * (MAX_STOPS + 1), "5 stop strings; at most 4"),
        ([""], "has 0 characters; 1 to 1024"),
        (["x" * (MAX_STOP_LENGTH + 1)], "has 1025 characters"),
        (["\ud800"], "unpaired surrogate"),
    ],
)
def test_bad_stops_are_refused(stops: list[str], words: str) -> None:
    """The error names what was wrong and what is allowed."""
    with pytest.raises(InvalidRequest, match=words) as caught:
        StopStrings(stops)
    assert caught.value.param == "stop"


@pytest.mark.parametrize("piece", [1, 200_000])
@pytest.mark.parametrize("stops", [["a" * 1000 + "b"], ["b", "aab", "aaab"], ["ab" * 500, "a" * 1023 + "c"]])
def test_matching_takes_linear_time(stops: list[str], piece: int) -> None:
    """Four times the text takes about four times as long, also where nearly all of it begins a stop."""
    compiled = StopStrings(stops)

    def seconds(length: int) -> float:
        times = []
        for _ in range(3):
            text, matcher = "a" * length, compiled.matcher()
            start = time.process_time()
            for position in range(0, length, piece):
                assert matcher.feed(text[position : position + piece]).match is None
            times.append(time.process_time() - start)
        return min(times)

    # Quadratic work would take sixteen times as long; a run of a few milliseconds is noisy.
    assert seconds(200_000) < 10 * seconds(50_000) + 0.05
