from __future__ import annotations

from typing import Any

import pytest

from services.chassis.errors import InvalidRequest, Overloaded, Unsupported
from services.chassis.status import error_of
from services.engine import wire
from services.engine.generation import Usage
from services.engine.models import ModelState, ModelStatus
from services.engine.port import Finish, FinishReason, Limits, Load, Logprobs, Prefilled, Sampling
from services.engine.structured_output import (
    Choice,
    Grammar,
    JsonObject,
    JsonSchema,
    Regex,
    StructuralTag,
    StructuredOutput,
)
from services.engine.validation import GenerationSpec
from streamomni.engine.v1 import engine_pb2, models_pb2, sampling_pb2
from streamomni.engine.v1.sampling_pb2 import StructuredOutput as StructuredOutputMessage
from tests.engine.engine_service import generate_request

COLUMNS = Logprobs([-0.5, -1.5], [1, 7], 2, [1, 2, 3, 4], [-0.5, -2.0, -0.25, -0.75])


def test_unset_fields_mean_the_models_defaults() -> None:
    """What a request leaves out is None, or the neutral value where the contract names one."""
    spec = wire.generation_spec(engine_pb2.GenerateRequest(request_id="r", prompt_token_ids=[1]))
    assert spec == GenerationSpec("r", [1], Sampling(), n=1)


ZEROS: dict[str, Any] = {
    "temperature": 0.0, "top_p": 0.0, "top_k": 0, "min_p": 0.0, "presence_penalty": 0.0, "frequency_penalty": 0.0,
    "repetition_penalty": 0.0, "seed": 0, "max_tokens": 0, "logprobs": 0, "prompt_logprobs": 0,
}  # fmt: skip


@pytest.mark.parametrize("name", ZEROS)
def test_zero_is_not_unset(name: str) -> None:
    """A field that was set to zero arrives as zero, so that it can be checked and obeyed."""
    sampling = wire.generation_spec(generate_request(**{name: 0})).sampling
    assert getattr(sampling, name) == 0 and getattr(sampling, name) is not None


def test_zero_choices_and_no_time_are_not_unset() -> None:
    """n = 0 and a deadline of 0 ms arrive as such."""
    spec = wire.generation_spec(generate_request(n=0, deadline_ms=0))
    assert (spec.n, spec.deadline_seconds) == (0, 0.0)


def test_every_sampling_field_is_read_or_refused() -> None:
    """No field of SamplingParams can be set without effect: each one changes what is read, or is refused."""
    values: dict[str, Any] = {
        **dict.fromkeys(ZEROS, 1),
        "min_tokens": 1,
        "ignore_eos": True,
        "stop_token_ids": [1],
        "logit_bias": {1: 1.0},
        "allowed_token_ids": [1],
        "structured_output": sampling_pb2.StructuredOutput(regex="a"),
    }
    assert set(values) == {field.name for field in sampling_pb2.SamplingParams.DESCRIPTOR.fields}
    plain = engine_pb2.GenerateRequest(request_id="r", prompt_token_ids=[1])
    for name, value in values.items():
        request = engine_pb2.GenerateRequest()
        request.CopyFrom(plain)
        request.sampling_params.CopyFrom(sampling_pb2.SamplingParams(**{name: value}))
        try:
            assert wire.generation_spec(request) != wire.generation_spec(plain), name
        except Unsupported as refusal:
            assert refusal.param == name


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (StructuredOutputMessage(json_schema_json="{}"), JsonSchema("{}")),
        (StructuredOutputMessage(json_object=StructuredOutputMessage.AnyJsonObject()), JsonObject()),
        (StructuredOutputMessage(regex="a"), Regex("a")),
        (StructuredOutputMessage(grammar="g"), Grammar("g")),
        (StructuredOutputMessage(choice=StructuredOutputMessage.Choices(values=["a", "b"])), Choice(("a", "b"))),
        (StructuredOutputMessage(structural_tag_json="{}"), StructuralTag("{}")),
    ],
)
def test_structured_output_keeps_its_kind(message: StructuredOutputMessage, expected: StructuredOutput) -> None:
    """Each kind of the message is a type of its own, with the text as it was sent."""
    request = generate_request()
    request.sampling_params.structured_output.CopyFrom(message)
    assert wire.generation_spec(request).sampling.structured_output == expected


def test_structured_output_without_a_constraint_is_refused() -> None:
    """A message that constrains nothing is no message that allows all."""
    request = generate_request()
    request.sampling_params.structured_output.SetInParent()
    with pytest.raises(InvalidRequest) as refused:
        wire.generation_spec(request)
    assert refused.value.param == "structured_output"


def test_every_request_field_is_read_or_refused() -> None:
    """Nor can a field of GenerateRequest."""
    values: dict[str, Any] = {
        "request_id": "other", "prompt_token_ids": [2], "n": 2, "priority": 3, "cache_salt": "s", "lora_name": "l",
        "deadline_ms": 5, "traceparent": "t", "sampling_params": sampling_pb2.SamplingParams(seed=1),
    }  # fmt: skip
    # The model is looked up before the rest is read.
    assert {*values, "model"} == {field.name for field in engine_pb2.GenerateRequest.DESCRIPTOR.fields}
    plain = wire.generation_spec(engine_pb2.GenerateRequest(request_id="r", prompt_token_ids=[1]))
    for name, value in values.items():
        fields = {"request_id": "r", "prompt_token_ids": [1], name: value}
        try:
            assert wire.generation_spec(engine_pb2.GenerateRequest(**fields)) != plain, name
        except Unsupported as refusal:
            assert refusal.param == name


def test_missing_request_ids_are_made() -> None:
    """Each request without an id gets one of its own; one that is too long for logs is refused."""
    made = {wire.generation_spec(generate_request()).request_id for _ in range(3)}
    assert len(made) == 3 and all(request_id.startswith("req-") for request_id in made)
    assert wire.generation_spec(generate_request(request_id="x" * 256)).request_id == "x" * 256
    with pytest.raises(InvalidRequest):
        wire.generation_spec(generate_request(request_id="x" * 257))


def test_events_carry_what_they_tell() -> None:
    """Started, Delta and Finished hold their values, and optional parts only when there are any."""
    started = wire.started(9, Prefilled(4, COLUMNS), "m")
    assert (started.prompt_tokens, started.cached_tokens, started.model) == (9, 4, "m")
    assert list(started.prompt_logprobs.top_token_ids) == [1, 2, 3, 4]
    assert not wire.started(9, Prefilled(4), "m").HasField("prompt_logprobs")
    delta = wire.delta(1, [5, 6], COLUMNS)
    assert (delta.index, list(delta.token_ids)) == (1, [5, 6]) and delta.HasField("logprobs")
    assert not wire.delta(1, [5], None).HasField("logprobs")
    usage = Usage(9, 3, 4)
    stopped = wire.finished(2, Finish(FinishReason.STOP, 0), usage)
    assert (stopped.index, stopped.reason) == (2, sampling_pb2.FINISH_REASON_STOP)
    assert stopped.HasField("stop_token_id") and stopped.stop_token_id == 0
    assert stopped.usage == sampling_pb2.Usage(prompt_tokens=9, completion_tokens=3, cached_tokens=4)
    assert not wire.finished(0, Finish(FinishReason.STOP), usage).HasField("stop_token_id")


@pytest.mark.parametrize("reason", FinishReason)
def test_every_finish_reason_has_its_word(reason: FinishReason) -> None:
    """No reason of the port is without one on the wire."""
    name = sampling_pb2.FinishReason.Name(wire.finished(0, Finish(reason), Usage(1, 1, 0)).reason)
    assert name == f"FINISH_REASON_{reason.name}"


def test_logprobs_stay_in_columns() -> None:
    """Columns go out as they are."""
    message = sampling_pb2.Logprobs()
    wire.fill_logprobs(message, COLUMNS)
    assert (list(message.logprobs), list(message.ranks), message.top_count) == ([-0.5, -1.5], [1, 7], 2)
    assert list(message.top_token_ids) == [1, 2, 3, 4]
    assert list(message.top_logprobs) == [-0.5, -2.0, -0.25, -0.75]


def test_failures_keep_their_details() -> None:
    """A failure on the link comes back as the same error."""
    event = wire.failed(7, Overloaded("full", retry_after=2.0))
    error = error_of(event.failed)
    assert (event.stream_id, error.message, error.reason, error.retry_after) == (7, "full", "OVERLOADED", 2.0)


@pytest.mark.parametrize("state", ModelState)
def test_every_model_state_has_its_word(state: ModelState) -> None:
    """No state is without one on the wire; limits are left out while they are unknown."""
    status = ModelStatus("m", state, 17, None, 64, Load(1, 2, 0.5), "why", "d1")
    message = wire.model_message(status)
    assert models_pb2.ModelState.Name(message.state) == f"MODEL_STATE_{state.name}"
    assert (message.name, message.created_unix_s, message.failure, message.tokenizer_sha256) == ("m", 17, "why", "d1")
    assert message.load == models_pb2.ModelLoad(running=1, waiting=2, kv_cache_usage=0.5)
    assert not message.HasField("limits")


def test_limits_are_those_that_requests_are_checked_against() -> None:
    """Limits name context, vocabulary and log probabilities, and no more choices than there are places."""
    for places, most in ((1000, 128), (16, 16)):
        status = ModelStatus("m", ModelState.READY, 0, Limits(2048, 50, 20, False), places, Load(0, 0, 0.0), "", "")
        limits = wire.model_message(status).limits
        assert limits == models_pb2.ModelLimits(
            context_length=2048, vocab_size=50, max_logprobs=20, max_n=most, max_generations=places
        )
