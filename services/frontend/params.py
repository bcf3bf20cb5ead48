"""How tokens are chosen and what is told of them: what chat and completion requests share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from services.chassis.errors import InvalidRequest
from services.frontend.fields import INT32, INT64, UINT32, Fields
from services.frontend.findings import FormatCheck
from services.frontend.structured_output import StructuredOutput, parse_structured_output

MAX_N = 128
MAX_STOPS = 4
MAX_STOP_CHARS = 1024
MAX_STOP_TOKEN_IDS = 1024
MAX_LOGIT_BIASES = 1024
MAX_ALLOWED_TOKEN_IDS = 1 << 18
FORMAT_CHECKS: tuple[FormatCheck, ...] = get_args(FormatCheck)


@dataclass(frozen=True, slots=True)
class Sampling:
    """Fields of the same names in `streamomni.engine.v1.SamplingParams`; None is unset."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    min_tokens: int | None = None
    ignore_eos: bool | None = None
    stop_token_ids: tuple[int, ...] | None = None
    logit_bias: dict[int, float] | None = None
    allowed_token_ids: tuple[int, ...] | None = None
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    structured_output: StructuredOutput | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """What becomes of the tokens: fields of the same names in `streamomni.text.v1.GenerateRequest`."""

    n: int | None = None
    stop: tuple[str, ...] = ()
    include_stop_str_in_output: bool | None = None
    skip_special_tokens: bool | None = None
    format_checks: tuple[FormatCheck, ...] = ()
    stop_at_format_fault: bool = False

    @property
    def choices(self) -> int:
        """Number of choices."""
        return self.n if self.n is not None else 1


@dataclass(frozen=True, slots=True)
class Delivery:
    """Whether the answer is streamed, which chunks of it carry the usage, and whether it can be picked up again."""

    stream: bool = False
    include_usage: bool = False
    continuous_usage_stats: bool = False
    resumable: bool = False


def parse_sampling(fields: Fields, max_tokens: int | None) -> Sampling:
    """Read the sampling parameters.

    Raises:
        InvalidRequest: one has a wrong type or is out of range.
    """
    min_tokens = fields.integer("min_tokens", 0, UINT32)
    if min_tokens is not None and max_tokens is not None and min_tokens > max_tokens:
        raise InvalidRequest(
            f"min_tokens ({min_tokens}) must not be above max_tokens ({max_tokens})", param=fields.path("min_tokens")
        )
    return Sampling(
        temperature=fields.number("temperature", 0, 2),
        top_p=fields.number("top_p", 0, 1, above=True),
        top_k=fields.integer("top_k", -1, INT32),
        min_p=fields.number("min_p", 0, 1),
        presence_penalty=fields.number("presence_penalty", -2, 2),
        frequency_penalty=fields.number("frequency_penalty", -2, 2),
        repetition_penalty=fields.number("repetition_penalty", 0, 2, above=True),
        seed=fields.integer("seed", -INT64 - 1, INT64),
        max_tokens=max_tokens,
        min_tokens=min_tokens,
        ignore_eos=fields.boolean("ignore_eos"),
        stop_token_ids=fields.token_ids("stop_token_ids", MAX_STOP_TOKEN_IDS),
        logit_bias=_parse_logit_bias(fields),
        allowed_token_ids=_parse_allowed_token_ids(fields),
        structured_output=parse_structured_output(fields),
    )


def parse_output(fields: Fields) -> Output:
    """Read number of choices, stop strings, what the text keeps and what its form is checked for.

    Raises:
        InvalidRequest: one has a wrong type or is out of range.
    """
    format_checks = _parse_format_checks(fields)
    stops_at_fault = fields.boolean("stop_on_format_fault") or False
    if stops_at_fault and not format_checks:
        raise InvalidRequest(
            "stop_on_format_fault needs format_checks; set them, or leave it out",
            param=fields.path("stop_on_format_fault"),
        )
    return Output(
        n=fields.integer("n", 1, MAX_N),
        stop=_parse_stop(fields),
        include_stop_str_in_output=fields.boolean("include_stop_str_in_output"),
        skip_special_tokens=fields.boolean("skip_special_tokens"),
        format_checks=format_checks,
        stop_at_format_fault=stops_at_fault,
    )


def parse_delivery(fields: Fields) -> Delivery:
    """Read `stream` and `stream_options`.

    Raises:
        InvalidRequest: one has a wrong type, or there are options without a stream.
    """
    stream = fields.boolean("stream") or False
    options = fields.nested("stream_options")
    if options is None:
        return Delivery(stream=stream)
    if not stream:
        raise InvalidRequest(
            "stream_options is allowed only with stream: true; set stream or leave stream_options out",
            param=fields.path("stream_options"),
        )
    return Delivery(
        stream=True,
        include_usage=options.boolean("include_usage") or False,
        continuous_usage_stats=options.boolean("continuous_usage_stats") or False,
        resumable=options.boolean("resumable") or False,
    )


def check_labels(fields: Fields) -> None:
    """Check the types of what is accepted for OpenAI's sake and changes nothing.

    Raises:
        InvalidRequest: one has a wrong type.
    """
    fields.string("user")
    fields.nested("metadata")
    fields.boolean("store")


def _parse_allowed_token_ids(fields: Fields) -> tuple[int, ...] | None:
    allowed = fields.token_ids("allowed_token_ids", MAX_ALLOWED_TOKEN_IDS)
    if allowed == ():
        raise InvalidRequest(
            "allowed_token_ids must not be empty, as no token would be left; leave it out to allow all",
            param=fields.path("allowed_token_ids"),
        )
    return allowed


def _parse_format_checks(fields: Fields) -> tuple[FormatCheck, ...]:
    # At most as many as there are, twice over: nobody means more.
    asked = fields.array("format_checks", 2 * len(FORMAT_CHECKS)) or []
    checks = tuple(check for check in FORMAT_CHECKS if check in asked)
    if any(check not in FORMAT_CHECKS for check in asked):
        raise InvalidRequest(
            f"format_checks must hold some of {', '.join(FORMAT_CHECKS)}", param=fields.path("format_checks")
        )
    return checks


def _parse_stop(fields: Fields) -> tuple[str, ...]:
    value = fields.value("stop")
    if value is None:
        return ()
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(stop, str) for stop in value):
        raise InvalidRequest("stop must be a string or a list of strings", param=fields.path("stop"))
    if len(value) > MAX_STOPS:
        raise InvalidRequest(
            f"stop may have at most {MAX_STOPS} strings, but it has {len(value)}", param=fields.path("stop")
        )
    for stop in value:
        if not 1 <= len(stop) <= MAX_STOP_CHARS:
            raise InvalidRequest(
                f"each stop string must have 1 to {MAX_STOP_CHARS} characters, but one has {len(stop)}",
                param=fields.path("stop"),
            )
    return tuple(value)


def _parse_logit_bias(fields: Fields) -> dict[int, float] | None:
    biases = fields.nested("logit_bias")
    if biases is None:
        return None
    if len(biases) > MAX_LOGIT_BIASES:
        raise InvalidRequest(
            f"logit_bias may have at most {MAX_LOGIT_BIASES} members, but it has {len(biases)}",
            param=fields.path("logit_bias"),
        )
    parsed: dict[int, float] = {}
    for key in biases:
        # isdecimal alone would take other scripts' digits too.
        if not (key.isascii() and key.isdecimal() and len(key) <= 10 and int(key) <= UINT32):
            raise InvalidRequest(
                "each key of logit_bias must be a token id written in digits", param=fields.path("logit_bias")
            )
        bias = biases.number(key, -100, 100)
        if bias is None:
            raise InvalidRequest("logit_bias must not hold null", param=fields.path("logit_bias"))
        if int(key) in parsed:
            raise InvalidRequest(f"logit_bias names token id {int(key)} twice", param=fields.path("logit_bias"))
        parsed[int(key)] = bias
    return parsed
