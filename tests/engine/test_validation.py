from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from services.chassis.errors import InvalidRequest, Unsupported
from services.engine.port import Limits, Sampling
from services.engine.validation import MAX_CHOICES, MAX_TOKEN_ID_LIST, GenerationSpec, check_generation

LIMITS = Limits(context_length=100, vocab_size=50, max_logprobs=5, supports_priority=False)


def spec(prompt: list[int] | None = None, n: int = 1, priority: int = 0, **sampling: Any) -> GenerationSpec:
    """A request with a prompt of ten tokens."""
    return GenerationSpec("r", list(range(10)) if prompt is None else prompt, Sampling(**sampling), n, priority)


def spec_with(name: str, value: Any) -> GenerationSpec:
    """A request with one field of its sampling set."""
    fields: dict[str, Any] = {name: value}
    return spec(**fields)


def refusal_of(bad: GenerationSpec, limits: Limits = LIMITS) -> InvalidRequest:
    """The error that a request is refused with."""
    with pytest.raises(InvalidRequest) as refusal:
        check_generation(bad, limits)
    assert "\n" not in refusal.value.message
    return refusal.value


# Name, the values at its bounds, values beyond them, and what the text must tell.
NUMBERS: list[tuple[str, list[Any], list[Any], str]] = [
    ("temperature", [0.0, 2.0, 1e-9], [-1e-9, -1.0, 2.0000001, 1e9], "0 to 2"),
    ("top_p", [1e-9, 1.0], [0.0, -0.1, 1.1], "above 0 and at most 1"),
    ("top_k", [-1, 0, 1, 2**31 - 1], [-2, -(2**31)], "0 or -1"),
    ("min_p", [0.0, 1.0], [-0.1, 1.1], "0 to 1"),
    ("presence_penalty", [-2.0, 2.0], [-2.1, 2.1], "-2 to 2"),
    ("frequency_penalty", [-2.0, 2.0], [-2.1, 2.1], "-2 to 2"),
    ("repetition_penalty", [1e-9, 2.0], [0.0, -1.0, 2.1], "above 0 and at most 2"),
    ("logprobs", [0, 5], [6, 2**32 - 1], "0 to 5"),
    ("prompt_logprobs", [0, 5], [6], "0 to 5"),
    ("max_tokens", [1, 90], [0, 91, 2**32 - 1], "1|90"),
    ("min_tokens", [0, 90], [91], "90"),
    ("seed", [-(2**63), -1, 0, 2**63 - 1], [], ""),
]


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, good, _, _ in NUMBERS for value in good])
def test_bounds_are_allowed(name: str, value: Any) -> None:
    """Values at the bounds pass."""
    check_generation(spec_with(name, value), LIMITS)


@pytest.mark.parametrize(
    ("name", "value", "allowed"), [(name, value, text) for name, _, bad, text in NUMBERS for value in bad]
)
def test_values_beyond_the_bounds_are_refused(name: str, value: Any, allowed: str) -> None:
    """A value beyond its bounds is refused with its name, itself, and what is allowed."""
    error = refusal_of(spec_with(name, value))
    assert error.param == name
    assert name in error.message
    assert str(value) in error.message or f"{value:g}" in error.message
    assert any(part in error.message for part in allowed.split("|"))


FLOATS = [
    "temperature",
    "top_p",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
]


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused(name: str, value: float) -> None:
    """NaN and the infinities are refused in every float."""
    assert refusal_of(spec_with(name, value)).param == name


@pytest.mark.parametrize("value", [math.nan, math.inf, -100.1, 100.1])
def test_bias_values_are_bounded(value: float) -> None:
    """A bias is a number from -100 to 100, and the refusal names the token."""
    error = refusal_of(spec(logit_bias={7: value}))
    assert error.param is not None and error.param.startswith("logit_bias")
    assert "7" in error.message and "-100 to 100" in error.message
    check_generation(spec(logit_bias={7: 100.0, 8: -100.0}), LIMITS)


@pytest.mark.parametrize("name", ["prompt_token_ids", "stop_token_ids", "allowed_token_ids", "logit_bias"])
def test_ids_outside_the_vocabulary_are_refused(name: str) -> None:
    """The last id of the vocabulary passes in every list, the next is refused with both figures."""

    def with_id(token_id: int) -> GenerationSpec:
        if name == "prompt_token_ids":
            return spec([1, token_id, 2])
        return spec_with(name, {token_id: 1.0} if name == "logit_bias" else (1, token_id))

    check_generation(with_id(49), LIMITS)
    for beyond in (50, 2**32 - 1):
        error = refusal_of(with_id(beyond))
        assert (error.param, error.reason) == (name, "TOKEN_ID_OUT_OF_VOCABULARY")
        assert str(beyond) in error.message and "0 to 49" in error.message


@pytest.mark.parametrize("name", ["stop_token_ids", "logit_bias"])
def test_lists_are_bounded(name: str) -> None:
    """A list of ids longer than allowed is refused with both figures."""
    limits = replace(LIMITS, vocab_size=2 * MAX_TOKEN_ID_LIST)

    def with_count(count: int) -> GenerationSpec:
        ids = range(count)
        return spec_with(name, dict.fromkeys(ids, 0.0) if name == "logit_bias" else tuple(ids))

    check_generation(with_count(MAX_TOKEN_ID_LIST), limits)
    error = refusal_of(with_count(MAX_TOKEN_ID_LIST + 1), limits)
    assert error.param == name
    assert str(MAX_TOKEN_ID_LIST + 1) in error.message and str(MAX_TOKEN_ID_LIST) in error.message


def test_whole_vocabulary_may_be_allowed() -> None:
    """allowed_token_ids may hold every id once, however large the vocabulary, but not more."""
    limits = replace(LIMITS, vocab_size=10_000)
    check_generation(spec(allowed_token_ids=tuple(range(10_000))), limits)
    assert refusal_of(spec(allowed_token_ids=(1,) * 10_001), limits).param == "allowed_token_ids"


def test_empty_prompt_is_refused() -> None:
    """A prompt needs a token."""
    error = refusal_of(spec([]))
    assert (error.param, error.reason) == ("prompt_token_ids", "EMPTY_PROMPT")


def test_prompt_leaves_room_for_a_token() -> None:
    """A prompt one token short of the context passes, one that fills it is refused with both figures."""
    check_generation(spec([1] * 99), LIMITS)
    check_generation(spec([1] * 99, max_tokens=1), LIMITS)
    error = refusal_of(spec([1] * 100))
    assert (error.param, error.reason) == ("prompt_token_ids", "CONTEXT_LENGTH_EXCEEDED")
    assert error.message.count("100") == 2


def test_prompt_and_output_fit_the_context() -> None:
    """max_tokens up to the rest of the context passes; the refusal beyond names all figures."""
    check_generation(spec([1] * 60, max_tokens=40), LIMITS)
    error = refusal_of(spec([1] * 60, max_tokens=41))
    assert (error.param, error.reason) == ("max_tokens", "CONTEXT_LENGTH_EXCEEDED")
    assert all(figure in error.message for figure in ("41", "60", "40", "100"))


def test_min_tokens_within_max_tokens() -> None:
    """min_tokens may reach max_tokens, or the rest of the context where that is unset, and no further."""
    check_generation(spec(min_tokens=8, max_tokens=8), LIMITS)
    assert refusal_of(spec(min_tokens=9, max_tokens=8)).param == "min_tokens"
    assert refusal_of(spec(min_tokens=91)).param == "min_tokens"


@pytest.mark.parametrize("n", [0, -1, MAX_CHOICES + 1, 16384])
def test_choices_are_bounded(n: int) -> None:
    """n is at least 1 and at most the limit, which the refusal names."""
    check_generation(spec(n=MAX_CHOICES), LIMITS)
    error = refusal_of(spec(n=n))
    assert error.param == "n" and str(n) in error.message and str(MAX_CHOICES) in error.message


def test_priority_needs_an_engine_that_heeds_it() -> None:
    """A priority is refused where the engine would ignore it, and passes where it counts; 0 always does."""
    with pytest.raises(Unsupported) as refusal:
        check_generation(spec(priority=-1), LIMITS)
    assert refusal.value.param == "priority"
    check_generation(spec(priority=-1), replace(LIMITS, supports_priority=True))
    check_generation(spec(priority=0), LIMITS)
